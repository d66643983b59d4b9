"""What a live run tells of its savings, where stopped rollouts have no known length."""

from dataclasses import replace

import pytest

from fot.core.policy import Fate
from fot.core.vote import Verdict
from fot.online.result import Result, RolloutResult, Usage


def rollout(at, tokens, generated, reason, failure=None):
    fate = {"abort": Fate.PRUNED, None: Fate.FAILED}.get(reason, Fate.FINISHED)
    return RolloutResult(at, tokens, fate, None, reason, generated, failure, "", 0, "")


def result_with(*rollouts):
    usage = Usage(0, 0, 0, 0, 0, 0)
    return Result(Verdict(None, {}), rollouts, usage, "fot", "stream", "exact", 1.0, False, (0,) * len(rollouts))


def test_lengths_are_known_where_all_came_to_their_own_end():
    result = result_with(rollout(0, 50, 80, "stop"), rollout(1, 120, 120, "length"))  # banked at 50, and had ended
    assert result.full_lengths() == ([80, 120], True)
    saved, basis = result.savings()
    assert saved.tokens == 0
    assert basis == "known lengths"


def test_a_stopped_rollout_becomes_as_long_as_the_others_and_never_shorter_than_it_was():
    result = result_with(
        rollout(0, 100, 100, "stop"),
        rollout(1, 200, 200, "stop"),
        rollout(2, 60, 70, "abort"),
        rollout(3, 300, 310, "abort"),
        rollout(4, 20, 20, None, failure="lost"),
    )
    assert result.full_lengths() == ([100, 200, 150, 310, 20], False)


def test_without_any_known_length_all_become_as_long_as_the_longest():
    result = result_with(rollout(0, 40, 50, "abort"), rollout(1, 90, 100, "abort"))
    assert result.full_lengths() == ([100, 100], False)
    saved, basis = result.savings()
    assert saved.tokens == pytest.approx(1 - 150 / 200)
    assert saved.attention == pytest.approx(1 - (50**2 + 100**2) / (2 * 100**2))
    assert "estimated" in basis


def test_an_interrupted_run_claims_no_savings():
    result = replace(result_with(rollout(0, 40, 50, "abort")), is_interrupted=True)
    assert result.as_json()["savings"]["tokens"] is None
