"""What holds for every method on every problem."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fot.core.policy import Fate
from fot.core.vote import tally
from fot.methods import Context, parse
from fot.replay.simulator import simulate
from tests.methods.script import Script, play, problems

BOUNDED = [
    "sc", "first-n:n=3", "fot:checkpoints=5/12/20", "fot:checkpoints=5/12/20,eager=on", "oracle:checkpoints=5/12",
    "fot:checkpoints=5/12/20,early_voting=off", "random:checkpoints=6/12", "ac", "ac:mode=cancel", "ac:window=3",
    "ac+fot:checkpoints=5/12", "ac:window=3+fot:checkpoints=5/12", "esc:window=2", "esc:window=3,remainder=on",
    "esc:window=2,failures=off", "dsc", "dsc+fot:checkpoints=5/12", "adaptive:settle=0", "adaptive:settle=2,stop=none",
    "adaptive:first=1,stop=none,fallback=6/12,share=1", "waves:first=2,more=2,settle=1",
    "waves:first=3,more=2,stop=none",
    "waves:first=3,more=3+fot:checkpoints=5/12", "certaindex:chunk=3", "certaindex:probe=on,chunk=4",
    "parallel-probe:interval=4,warmup=1,patience=1,stable=2", "sc+bayes:posterior=0.9", "fot:checkpoints=5/12+bayes",
]  # fmt: skip
OTHERS = ["deepconf:warmup=2,window=3,interval=1", "cisc", "pass"]


@pytest.mark.parametrize("spec", BOUNDED)
@given(problems)
def test_the_lossless_stop_never_changes_an_answer(spec, lines):
    _, alone = play(spec, lines)
    _, stopped = play(f"{spec}+decided", lines)
    assert stopped.verdict.answer == alone.verdict.answer
    assert all(a.tokens <= b.tokens for a, b in zip(stopped.charges, alone.charges, strict=True))


@pytest.mark.parametrize("spec", [*BOUNDED, *OTHERS])
@settings(max_examples=30)
@given(problems)
def test_nobody_costs_more_than_running_to_the_end_and_no_pruned_rollout_votes(spec, lines):
    policy, outcome = play(spec, lines)
    assert all(0 <= stop <= line.tokens for stop, line in zip(outcome.stops, lines, strict=True))
    voters = [ballot.rollout for ballot in policy.ballots()]
    assert len(voters) == len(set(voters))
    silent = {Fate.PRUNED, Fate.UNUSED, Fate.FAILED}
    assert not any(outcome.fates[rollout] in silent for rollout in voters)
    assert tally(policy.ballots()) == dict(outcome.verdict.votes)


@given(problems, st.randoms(use_true_random=False))
def test_the_order_of_rollouts_does_not_matter_to_the_counts_of_self_consistency(lines, random):
    shuffled = random.sample(lines, len(lines))
    assert play("sc", lines)[1].verdict.votes == play("sc", shuffled)[1].verdict.votes


@given(problems, st.randoms(use_true_random=False))
def test_nor_to_those_of_the_funnels_where_no_two_rollouts_are_alike(lines, random):
    told_apart = [line.__class__(line.tokens, line.steps, at, line.text) for at, line in enumerate(lines)]
    shuffled = random.sample(told_apart, len(told_apart))
    for spec in ("fot:checkpoints=5/12/20", "fot:checkpoints=5/12/20,eager=on", "certaindex:chunk=3"):
        assert play(spec, told_apart)[1].verdict.votes == play(spec, shuffled)[1].verdict.votes


@given(problems)
def test_keeping_all_is_early_voting_alone(lines):
    _, outcome = play("fot:checkpoints=5/12/20,keep=1", lines)
    assert Fate.PRUNED not in outcome.fates
    banked = [stop in (5, 12, 20) or stop == line.tokens for stop, line in zip(outcome.stops, lines, strict=True)]
    assert all(banked)


@given(problems)
def test_checkpoints_past_every_length_are_self_consistency(lines):
    _, sc = play("sc", lines)
    for spec in ("fot:checkpoints=100", "random:checkpoints=50/60"):
        _, outcome = play(spec, lines)
        assert outcome.stops == sc.stops
        assert outcome.verdict.votes == sc.verdict.votes
    _, paced = play("adaptive:first=1,keep=1,stop=none,limit=none,settle=99,fallback=", lines)
    assert all(a <= b for a, b in zip(paced.stops, sc.stops, strict=True))
    assert set(paced.verdict.votes) <= set(sc.verdict.votes)


@given(problems)
def test_a_policy_decides_the_same_twice(lines):
    for spec in ("adaptive:signal=random", "random:checkpoints=5/12", "waves:signal=random"):
        runs = [simulate(parse(spec).build(Context(k=len(lines), problem="p")), Script(lines)) for _ in range(2)]
        assert runs[0] == runs[1]
