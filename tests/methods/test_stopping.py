"""Methods on the token axis, against decisions worked out by hand."""

import pytest

from fot.core.policy import Fate, Need
from fot.errors import ConfigError
from fot.methods import Context, parse
from fot.methods.certaindex import probed_answer
from fot.methods.confidence import CiscPlan, lowest_group, percentile, weights
from tests.methods.script import Line, line, play, said

BANKED, PRUNED, CANCELLED, FINISHED = Fate.BANKED, Fate.PRUNED, Fate.CANCELLED, Fate.FINISHED


def adaptive(**changed):
    options = {"first": 1, "least": 1, "stop": "none", "settle": 0, "limit": "none", "keep": 0.5, "fallback": ""}
    return "adaptive:" + ",".join(f"{key}={value}" for key, value in (options | changed).items())


def test_the_pace_is_set_when_a_quarter_has_committed_and_pruning_follows_it():
    lines = [Line(400, ((100, "a"),)), Line(400, ((120, "b"),))] + [line(1000, "c", density=d) for d in range(6)]
    _, outcome = play(adaptive(share=0.25, at="1/2"), lines)
    # Two of eight have committed at 120, the pace: 6 run on, 3 are kept at 121 (the next token), 2 at 240.
    assert outcome.stops == (100, 120, 1000, 1000, 240, 121, 121, 121)
    assert outcome.fates == (BANKED, BANKED, BANKED, BANKED, PRUNED, PRUNED, PRUNED, PRUNED)
    assert outcome.verdict.votes == {"a": 1, "b": 1, "c": 2}


def test_without_a_pace_the_fallback_checkpoints_hold():
    lines = [line(1000, None, density=d) for d in range(8)]
    _, outcome = play(adaptive(fallback="300/600"), lines)
    assert outcome.stops == (1000, 1000, 600, 600, 300, 300, 300, 300)
    assert outcome.verdict.answer is None


def test_a_limit_ends_everything():
    lines = [line(100, "a"), line(900, "b"), line(900, "b"), line(900, "b")]
    _, outcome = play(adaptive(share=0.25, at="", limit=2), lines)
    assert outcome.stops == (100, 200, 200, 200)
    assert outcome.verdict.answer == "a"


def test_the_vote_ends_everything_once_it_is_clear():
    _, outcome = play(adaptive(stop=0.93, at=""), said(*"aaabbbbbb"))
    assert outcome.stops == (10, 20, 30, 30, 30, 30, 30, 30, 30)
    assert outcome.verdict.answer == "a"


def test_an_answer_must_stand_before_it_is_banked():
    fickle = Line(100, ((50, "a"), (52, None), (60, "b")))
    others = [line(1000, None)] * 2
    _, settled = play(adaptive(settle=8, at=""), [fickle, *others])
    assert settled.stops[0] == 68
    assert settled.verdict.answer == "b"
    _, hasty = play(adaptive(settle=0, at=""), [fickle, *others])
    assert hasty.stops[0] == 50
    assert hasty.verdict.answer == "a"
    _, late = play(adaptive(settle=8, at=""), [Line(100, ((97, "c"),)), *others])
    assert late.stops[0] == 100  # ended before it had stood for 8 tokens: it counts all the same


def test_without_a_limit_those_that_pruning_leaves_run_to_their_end():
    lines = [line(100, "a"), line(900, "b", 2), line(900, "b", 0), line(900, "b", 1)]
    _, outcome = play("adaptive:first=1,settle=0,stop=none", lines)
    # The pace is 100: at 101 three run, and two are kept; nothing ends them before their time.
    assert outcome.stops == (100, 101, 900, 900)
    assert outcome.verdict.answer == "b"


def test_only_a_share_is_started():
    _, outcome = play("adaptive", said(*"abcdefghij" * 2))
    assert [fate is Fate.UNUSED for fate in outcome.fates] == [False] * 10 + [True] * 10
    _, small = play("adaptive", said(*"abcdefgh"))
    assert sum(fate is not Fate.UNUSED for fate in small.fates) == 6


def test_the_bayesian_stop():
    _, certain = play("sc+bayes:posterior=0.9", said(*"aaaaaaaaaa"))
    _, careful = play("sc+bayes:posterior=1", said(*"aaaaaaaaaa"))
    _, decided = play("sc+decided", said(*"aaaaaaaaaa"))
    assert max(certain.stops) < max(decided.stops) <= max(careful.stops)
    _, least = play("sc+bayes:posterior=0.5,least=4", said(*"aaaaaaaaaa"))
    assert max(least.stops) == 40


def test_certaindex_banks_after_looks_that_agree():
    lines = [Line(500, ((33, "a"),)), Line(500, ((33, "a"), (70, "b"))), Line(80, ((70, "a"),)), line(500, None)]
    _, outcome = play("certaindex:threshold=2,chunk=32", lines)
    # Looks at 64 and 96; the second turns at 70 and is looked at again at 96 and 128; the third ends before.
    assert outcome.stops == (96, 128, 80, 500)
    assert outcome.fates == (BANKED, BANKED, FINISHED, FINISHED)
    assert outcome.verdict.votes == {"a": 2, "b": 1}
    assert outcome.probe_tokens == 0


def test_certaindex_probes_are_asked_and_charged():
    steady = Line(100, (), probes={10: ("x}", 4), 20: ("7}", 4), 30: ("7}.", 4)})
    doubting = Line(40, (), probes={10: ("7}", 4), 20: ("7} hmm", 4), 30: ("7}", 4)})
    _, outcome = play("certaindex:probe=on,chunk=10", [steady, doubting])
    assert outcome.stops == (30, 40)
    assert outcome.verdict.votes == {"7": 1}
    assert outcome.probe_tokens == 6 * 4
    assert [probe.start for probe in outcome.probes] == [10, 10, 20, 20, 30, 30]
    assert parse("certaindex:probe=on").needs == {Need.PROBES}


@pytest.mark.parametrize(
    ("text", "answer"),
    [("7} and", "7"), (r"\frac{1}{2}}", r"\frac{1}{2}"), ("{7", None), ("}", None), ("no brace", None)],
)
def test_a_probe_answers_up_to_the_brace_that_closes_it(text, answer):
    assert probed_answer(text) == answer


def test_parallel_probe_prunes_who_keeps_disagreeing_and_stops_when_the_vote_is_stable():
    a, b = (dict.fromkeys(range(10, 400, 10), (f"{answer}}}", 2)) for answer in "ab")
    lines = [Line(400, (), probes=probes) for probes in (a, a, a, b)]
    _, outcome = play("parallel-probe:interval=10,warmup=2,patience=3,stable=6", lines)
    # Disagreeing at 10, 20 and 30, and the warm-up over after 20: pruned at 30. The vote of 10 is unchanged until 70.
    assert outcome.stops == (70, 70, 70, 30)
    assert outcome.fates == (BANKED, BANKED, BANKED, PRUNED)
    assert outcome.verdict.votes == {"a": 3}
    assert outcome.probe_tokens == 2 * (3 * 7 + 3)


def test_parallel_probe_without_probes_reads_commitments():
    lines = [Line(400, ((5, "a"),)), Line(400, ((5, "a"),)), Line(400, ((5, "b"),)), line(400, None)]
    _, outcome = play("parallel-probe:interval=10,warmup=1,patience=2,stable=5,probe=off", lines)
    assert outcome.fates[:3] == (BANKED, BANKED, PRUNED)
    assert outcome.fates[3] is CANCELLED  # nothing is known of it: no disagreement, and no vote


def sure(tokens, answer, *stretches):
    confidences = [value for value, count in stretches for _ in range(count)]
    return Line(tokens, ((tokens, answer),), confidences=tuple(confidences))


def test_deepconf_sets_a_bar_and_stops_what_falls_below_it():
    warm = [sure(20, "a", (5.0, 20)), sure(20, "b", (3.0, 20))]
    fresh = [sure(20, "b", (4.0, 10), (1.0, 10)), sure(20, "a", (4.0, 20))]
    spec = "deepconf:warmup=2,window=4,interval=1,consensus=none,keep_top=0.5"
    policy, outcome = play(spec, [*warm, *fresh])
    # The bar is the middle of 5 and 3: 4. The third falls below it with its first unsure token.
    assert policy.bar == 4.0
    assert outcome.stops == (20, 20, 11, 20)
    assert outcome.fates[2] is PRUNED
    assert outcome.verdict.votes == {"a": 9.0}  # the second lies below the bar and does not vote
    assert outcome.charges[2].start == 20


def test_deepconfs_high_keeps_nine_of_ten():
    warm = [sure(20, "a", (float(level), 20)) for level in range(1, 12)]
    policy, outcome = play("deepconf:warmup=11,window=4,interval=1,consensus=none,keep_top=0.9", warm)
    assert policy.bar == pytest.approx(2.0)  # the tenth part from below of 1 to 11
    assert outcome.verdict.votes == {"a": sum(range(2, 12))}


def test_deepconf_ends_with_consensus():
    warm = [sure(20, "a", (5.0, 20)) for _ in range(2)]
    _, outcome = play("deepconf:warmup=2,window=4", [*warm, *warm])
    assert outcome.fates[2:] == (Fate.UNUSED, Fate.UNUSED)


def test_groups_and_percentiles():
    assert lowest_group([1, 2, 3, 0], 2) == 1.5
    assert lowest_group([1, 2], 5) == 1.5  # a short one: its mean
    assert lowest_group([], 5) == 0.0
    assert [percentile([4, 1, 3, 2], share) for share in (0, 0.5, 0.9, 1)] == [1, 2.5, pytest.approx(3.7), 4]


def test_cisc_weights_votes():
    lines = [sure(4, "a", (1.0, 4)), sure(4, "a", (1.0, 4)), sure(4, "b", (9.0, 4)), sure(4, None, (99.0, 4))]
    assert play("cisc:temperature=1000", lines)[1].verdict.answer == "a"  # flat weights: plurality
    assert play("cisc:temperature=0.1", lines)[1].verdict.answer == "b"  # sharp ones: the surest rollout
    assert play("cisc:variant=tie", lines)[1].verdict.answer == "a"
    assert play("cisc:variant=tie", lines[1:])[1].verdict.answer == "b"
    unknown = sure(4, "b", (float("nan"), 4))
    assert play("cisc", [*lines[:2], unknown])[1].verdict.votes == {"a": 1.0}  # the weights of two sum to one
    assert weights([1.0, 3.0], CiscPlan(variant="linear", temperature=2)) == [1.0, 5.0]
    assert weights([], CiscPlan()) == []


def test_signals_by_name():
    assert parse("fot:signal=agreement/density").needs == {Need.TEXT}
    assert parse("fot:signal=agreement/density").text == "fot:signal=agreement/density"
    assert parse("adaptive:signal=random").draws(30) == 10
    with pytest.raises(ConfigError, match="Did you mean 'repetition'"):
        parse("adaptive:signal=repetitio")


def test_repetition_and_agreement_rank_as_they_say():
    circles = Line(100, (), text="so it is so it is " * 40)
    news = Line(100, (), text="".join(chr(97 + at * at % 26) for at in range(720)))
    lines = [circles, news, news]
    _, outcome = play("fot:checkpoints=50,keep=0.7,signal=repetition", lines)
    assert outcome.fates == (PRUNED, FINISHED, FINISHED)
    agreeing, other = (Line(100, (), text=f"I would say the answer is {letter} but " * 3) for letter in "AB")
    voted = Line(10, ((10, "A"),))
    _, outcome = play("fot:checkpoints=50,keep=0.7,signal=agreement", [voted, other, agreeing, agreeing])
    assert outcome.fates == (BANKED, PRUNED, FINISHED, FINISHED)


@pytest.mark.parametrize(
    "spec",
    [
        "ac:mode=both", "ac:window=0", "ac:criterion=quorum", "esc:window=0", "first-n:n=0", "dsc:ranking=model",
        "dsc:window=0", "certaindex:chunk=0", "parallel-probe:interval=0", "deepconf:keep_top=0", "cisc:temperature=0",
        "cisc:variant=square", "adaptive:share=0", "adaptive:at=2/1", "adaptive:limit=0.5", "adaptive:stop=0.5",
        "adaptive:first=0", "adaptive:settle=-1", "waves:more=0", "slimsc:threshold=0", "slimsc:strategy=best",
        "slimsc:embedder=none", "slimsc:interval=0", "sc+bayes:posterior=0", "fot:signal=none",
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused(spec):
    with pytest.raises(ConfigError) as error:
        parse(spec)
    assert error.value.hint


def test_what_cannot_be_bounded_cannot_be_stopped():
    for method in ("deepconf", "cisc"):
        for stop in ("decided", "bayes"):
            with pytest.raises(ConfigError, match="ahead"):
                parse(f"{method}+{stop}")


def test_every_plan_is_built_with_its_defaults():
    for name in ("slimsc", "deepconf", "cisc", "parallel-probe", "certaindex"):
        assert parse(name).build(Context(k=4)).start()
