"""Methods on the sample axis, against decisions worked out by hand."""

import pytest

from fot.core.policy import Fate
from fot.errors import ConfigError
from fot.methods import Context, Recorded, parse
from fot.methods.dsc import Grant, allot
from fot.methods.sequential import shuffled
from tests.methods.script import line, play, said


def used(outcome):
    return sum(fate is not Fate.UNUSED for fate in outcome.fates)


@pytest.mark.parametrize(
    ("answers", "launched", "answer"),
    [
        ("aaaaaa", 4, "a"),  # 4 against 0
        ("abaaaaaa", 7, "a"),  # 6 against 1
        ("ababab", 6, "a"),  # never: all are read, and a tie goes to the answer that came first
        ("b", 1, "b"),
    ],
)
def test_adaptive_consistency_reads_until_it_is_sure(answers, launched, answer):
    _, outcome = play("ac", said(*answers))
    assert used(outcome) == launched
    assert outcome.verdict.answer == answer
    starts = [charge.start for charge in outcome.charges[:launched]]
    assert starts == [sum(10 * (at + 1) for at in range(before)) for before in range(launched)]  # one after the other


@pytest.mark.parametrize(
    ("spec", "answers", "launched"),
    [
        ("ac:criterion=majority", "aabb", 2),  # never on one vote; then 2 of 2
        ("ac:criterion=majority", "abaaab", 5),  # 1/2, 2/3, 3/4, 4/5: 0.8 is enough
        ("ac:criterion=entropy", "aaaaa", 4),  # against one vote for another: 1 - H(4/5) = 0.278, H(3/4) leaves 0.189
        ("ac:criterion=dirichlet", "aaaaa", 4),  # one answer: as beta
        ("ac:criterion=dirichlet", "abaaaaaa", 7),
        ("ac:threshold=0.93", "aaaa", 3),  # 1 - 2^-4 = 0.9375
        ("ac:threshold=0.96875", "aaaaaa", 4),  # 1 - 2^-5 exactly: reached is enough
    ],
)
def test_other_criteria_and_thresholds(spec, answers, launched):
    assert used(play(spec, said(*answers))[1]) == launched


def test_an_answerless_rollout_is_no_vote():
    _, outcome = play("ac", [line(10, None), *said(*"aaaaa")])
    assert used(outcome) == 5


def test_adaptive_consistency_in_parallel_cancels_the_rest():
    _, outcome = play("ac:mode=cancel", said(*"aabaaaaaaa"))
    assert outcome.stops == (10, 20, 30, 40, 50, 60, 70, 70, 70, 70)  # 6 against 1 at 70 tokens
    assert [charge.start for charge in outcome.charges] == [0] * 10
    assert outcome.fates[-1] is Fate.CANCELLED


def test_windows_of_adaptive_consistency_start_together():
    _, outcome = play("ac:window=4", said(*"aabaaaaa"))
    assert [charge.start for charge in outcome.charges] == [0, 0, 0, 0, 40, 40, 40, 40]


@pytest.mark.parametrize(
    ("spec", "answers", "launched", "answer"),
    [
        ("esc:window=3", "aaabbb", 3, "a"),
        ("esc:window=3", "aabbbb", 6, "b"),  # the unanimous window decides, whatever came before
        ("esc:window=3", "aabaabaa", 6, "a"),  # 8 is no multiple of 3: two are dropped, as released
        ("esc:window=3,remainder=on", "aabaabbb", 8, "a"),
        ("esc:window=3", [None] * 6, 3, None),  # three failures agree, as released
        ("esc:window=3,failures=off", [None] * 3 + ["a"] * 3, 6, "a"),
        ("esc:window=5", "aa", 2, "a"),  # a window is no larger than k
    ],
)
def test_esc_stops_at_a_unanimous_window(spec, answers, launched, answer):
    _, outcome = play(spec, said(*answers))
    assert used(outcome) == launched
    assert outcome.verdict.answer == answer


def test_a_fixed_budget():
    _, outcome = play("first-n:n=3", said(*"abbbb"))
    assert used(outcome) == 3
    assert outcome.verdict.answer == "b"
    assert parse("first-n").draws(30) == 10


def test_reading_orders_are_seeded():
    orders = [tuple(shuffled(None, Context(k=30, problem="p", draw=draw))) for draw in range(10)]
    assert len(set(orders)) == 10
    assert orders[3] == tuple(shuffled(None, Context(k=30, problem="p", draw=3)))
    assert sorted(orders[0]) == list(range(30))
    assert parse("ac").order(Context(k=4)) is not None
    assert parse("ac:mode=cancel").order(Context(k=4)) is None


def test_waves_start_more_only_while_the_vote_is_open():
    _, agreed = play("waves:first=4,more=4,settle=0,limit=none,keep=1", said(*"aaaaaaaa"))
    assert used(agreed) == 4
    assert agreed.stops[:4] == (10, 20, 30, 30)  # three agree: 0.9375
    _, split = play("waves:first=4,more=4,settle=0,limit=none,keep=1", said(*"ababaaaaaaa"))
    assert used(split) > 4
    assert split.charges[4].start == 40


def test_compositions_name_the_sampler_first():
    assert parse("ac+fot").name == parse("fot+ac").name == "ac+fot"
    assert parse("dsc+fot:keep=0.5+decided").text == "dsc+fot:keep=0.5+decided"
    assert parse("waves+fot").name == "waves+fot"
    with pytest.raises(ConfigError, match="bounded"):
        parse("cisc+decided")


def test_the_funnel_inside_adaptive_consistency_stops_with_the_bank():
    lines = [line(100, "a") for _ in range(4)] + [line(1000, "b", density=at) for at in range(6)]
    _, outcome = play("ac+fot:checkpoints=100/200", lines)
    assert outcome.stops == (100,) * 10  # four are banked at 100: enough
    _, rounds = play("ac:window=5+fot:checkpoints=100", lines)
    assert [charge.start for charge in rounds.charges] == [0] * 5 + [1000] * 5  # 4 against 1 is not enough


def recorded(name, answers, tokens, difficulty=None):
    context = Context(k=len(answers), problem=name)
    return Recorded(context=context, answers=list(answers), tokens=[tokens] * len(answers), difficulty=difficulty)


def test_dsc_gives_one_rollout_to_what_lies_below_a_run_of_easy_problems():
    hard = [recorded(f"h{at}", "abababab", 900 - at) for at in range(2)]
    easy = [recorded(f"e{at}", "aaaaaaaa", 100 - at) for at in range(14)]
    prepared = allot(parse("dsc:run=2").parts[0][1], [*easy, *hard])
    grants = list(prepared.briefs)
    assert grants[14:] == [Grant(4, 4), Grant(8, 4)]  # the second starts with what the first needed
    assert grants[:2] == [Grant(8, 4), Grant(8, 4)]  # the hardest two of the easy ones end the walk
    assert grants[2:14] == [Grant(1)] * 12
    assert "length of each problem's first rollout" in prepared.notes[0]


def test_dsc_says_when_its_run_cannot_come():
    problems = [recorded(str(at), "abab", at) for at in range(30)]
    prepared = allot(parse("dsc").parts[0][1], problems)
    assert any("scaled to a run of 3" in note for note in prepared.notes)
    assert any("every problem was treated as hard" in note for note in prepared.notes)


def test_dsc_takes_a_given_order():
    problems = [recorded(str(at), "ab" * 4, 50, difficulty=at) for at in range(3)]
    prepared = allot(parse("dsc:ranking=given").parts[0][1], problems)
    assert [grant.first for grant in prepared.briefs] == [8, 8, 4]  # the hardest knows nothing before it
    unknown = [recorded(str(at), "abab", at) for at in range(3)]
    notes = allot(parse("dsc:ranking=given").parts[0][1], unknown).notes
    assert "no difficulty is given" in notes[0]


def test_dsc_charges_what_it_judges():
    _, single = play("dsc", said(*"aaaaaa"), brief=Grant(1))
    assert used(single) == 1
    _, judged = play("dsc", said(*"aaaaaa"), brief=Grant(8, 4))
    assert used(judged) == 4  # four that agree are enough, whatever was granted
    _, hard = play("dsc", said(*"abababababab"), brief=Grant(8, 4))
    assert [charge.start for charge in hard.charges] == [0] * 4 + [40] * 4 + [120] * 4
