from hypothesis import given, settings
from hypothesis import strategies as st

from fot.core.funnel import Funnel
from fot.core.sampling import Majority
from fot.replay.recording import TextRecording
from fot.replay.simulator import simulate
from tests.replay import naive, pools


@settings(max_examples=3000, deadline=None)
@given(pools.problems, pools.checkpoints, pools.keeps, st.integers(1, 4), st.booleans())
def test_the_funnel_is_algorithm_1(rows, checkpoints, keep, minimum, early_voting):
    expected = naive.funnel(rows, checkpoints, keep, minimum, early_voting)
    policy = Funnel(len(rows), checkpoints, keep, minimum=minimum, early_voting=early_voting)
    outcome = simulate(policy, TextRecording(pools.as_rollouts(rows), "boxed"))
    assert list(outcome.stops) == expected["stops"]
    assert [fate.value for fate in outcome.fates] == expected["fates"]
    assert list(outcome.verdict.votes.items()) == list(expected["votes"].items())  # order is the tie rule
    assert outcome.verdict.answer == expected["answer"]


@given(pools.problems)
def test_checkpoints_past_every_length_with_nothing_kept_back_are_self_consistency(rows):
    recording = TextRecording(pools.as_rollouts(rows), "boxed")
    majority = simulate(Majority(len(rows)), recording)
    funnel = simulate(Funnel(len(rows), [100], 1.0), recording)
    assert funnel.stops == majority.stops
    assert funnel.verdict == majority.verdict


@given(pools.problems, pools.checkpoints, pools.keeps)
def test_eager_banking_never_costs_more(rows, checkpoints, keep):
    recording = TextRecording(pools.as_rollouts(rows), "boxed")
    eager = simulate(Funnel(len(rows), checkpoints, 1.0, eager=True), recording, follow_commitments=True)
    plain = simulate(Funnel(len(rows), checkpoints, 1.0), recording)
    assert all(e <= p for e, p in zip(eager.stops, plain.stops, strict=True))
