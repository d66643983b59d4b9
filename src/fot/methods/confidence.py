"""Methods that weigh votes by how sure the model was of its tokens: DeepConf and CISC.

A token's confidence is minus the mean log-probability of its likeliest candidates: higher where the model is surer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from fot.core.policy import Action, Conclude, Event, Launch, Need, Observation, Policy, Prune, Watch
from fot.core.vote import Ballot, Seat, tally
from fot.methods.spec import Context, Method, parameter

__all__ = ["CISC", "DEEPCONF", "CiscPlan", "DeepConfPlan", "lowest_group", "percentile", "weights"]


def lowest_group(confidences: Sequence[float], window: int) -> float:
    """The least mean over `window` tokens in a row; of fewer tokens, their mean; of none, 0."""
    size = min(window, len(confidences))
    if not size:
        return 0.0
    sums = [0.0, *accumulate(confidences)]
    return min(sums[end] - sums[end - size] for end in range(size, len(sums))) / size


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie, linear between neighbours."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


@dataclass(frozen=True)
class DeepConfPlan:
    """DeepConf's parameters; keep_top 0.1 is its `low`, 0.9 its `high`."""

    warmup: int = parameter(16, "rollouts that run to their end and set the bar")
    keep_top: float = parameter(0.1, "share of them whose lowest group clears the bar")
    window: int = parameter(2048, "tokens of a group")
    interval: int = parameter(64, "tokens between looks at a running rollout (the paper: every token)")
    consensus: float | None = parameter(0.95, "share of the weight that ends everything; none: never")

    def __post_init__(self) -> None:
        if min(self.warmup, self.window, self.interval) < 1 or not 0 < self.keep_top <= 1:
            raise ValueError("warmup, window and interval must be at least 1, keep_top above 0 and at most 1")


class DeepConf:
    """Warm up, set the bar, start the others, and stop each at the first whole group below it."""

    def __init__(self, k: int, plan: DeepConfPlan) -> None:
        self.k = k
        self.plan = plan
        self.bar: float | None = None
        self._running: set[int] = set()
        self._warm = min(plan.warmup, k)
        self._lowest: dict[int, float] = {}
        self._answers: dict[int, str] = {}

    def start(self) -> Sequence[Action]:
        self._running = set(range(self._warm))
        return [Launch(self._warm)]

    def observe(self, observation: Observation) -> Sequence[Action]:
        prefix = observation.prefix
        if prefix.rollout not in self._running:
            return []
        if observation.event is Event.REACHED:
            return self._look(prefix.rollout, prefix.tokens, prefix.confidences)
        if observation.event not in (Event.ENDED, Event.FAILED):
            return []
        self._running.discard(prefix.rollout)
        if observation.event is Event.ENDED:
            self._lowest[prefix.rollout] = lowest_group(prefix.confidences, self.plan.window)
            if prefix.answer is not None:
                self._answers[prefix.rollout] = prefix.answer
        if self.bar is None:
            return [] if self._running else self._raise_bar()
        return [Conclude()] if self._has_consensus() else []

    def _raise_bar(self) -> list[Action]:
        """The warm-up is over: from now on there is a bar to clear."""
        self.bar = percentile(list(self._lowest.values()), 1 - self.plan.keep_top) if self._lowest else 0.0
        if self._has_consensus() or self._warm == self.k:
            return [Conclude()]
        self._running = set(range(self._warm, self.k))
        return [Launch(len(self._running)), *(Watch(r, self.plan.window) for r in sorted(self._running))]

    def _look(self, rollout: int, tokens: int, confidences: Sequence[float]) -> list[Action]:
        fresh = confidences[max(0, tokens - self.plan.window - self.plan.interval) :]
        if self.bar is not None and lowest_group(fresh, self.plan.window) < self.bar:
            self._running.discard(rollout)
            return [Prune(rollout)]
        return [Watch(rollout, tokens + self.plan.interval)]

    def _has_consensus(self) -> bool:
        votes = tally(self.ballots())
        total = sum(votes.values())
        return self.plan.consensus is not None and total > 0 and max(votes.values()) / total >= self.plan.consensus

    def ballots(self) -> Sequence[Ballot]:
        """Warm-up rollouts below the bar do not vote."""
        bar = -math.inf if self.bar is None else self.bar
        voters = [r for r in sorted(self._answers) if r >= self._warm or self._lowest[r] >= bar]
        return [Ballot(rollout, self._answers[rollout], self._lowest[rollout]) for rollout in voters]

    def seats(self) -> Sequence[Seat] | None:
        return None  # votes have weights that are not known ahead

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        return ()


@dataclass(frozen=True)
class CiscPlan:
    """CISC's parameters. There is no temperature for all models: choose it on data that is not reported."""

    temperature: float = parameter(1.0, "how flat the weights are; large: plurality, small: the surest rollout decides")
    variant: str = parameter("softmax", "softmax, linear, or tie: confidences only break ties")

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError("temperature must lie above 0")
        if self.variant not in ("softmax", "linear", "tie"):
            raise ValueError("variant is softmax, linear or tie")


def weights(confidences: Sequence[float], plan: CiscPlan) -> list[float]:
    """The weight of each vote."""
    if not confidences:
        return []
    if plan.variant == "linear":
        least = min(confidences)
        return [plan.temperature * (confidence - least) + 1.0 for confidence in confidences]
    most = max(confidences)
    shares = [math.exp((confidence - most) / plan.temperature) for confidence in confidences]
    total = sum(shares)
    # One vote outweighs all ties together: a sum of shares stays below one.
    return [share / total if plan.variant == "softmax" else 1.0 + share / total / 2 for share in shares]


class Cisc:
    """All rollouts to their end; each vote weighs what the mean confidence of its tokens says."""

    def __init__(self, k: int, plan: CiscPlan) -> None:
        self.k = k
        self.plan = plan
        self._votes: dict[int, tuple[str, float]] = {}

    def start(self) -> Sequence[Action]:
        return [Launch(self.k)]

    def observe(self, observation: Observation) -> Sequence[Action]:
        answer, confidences = observation.prefix.answer, observation.prefix.confidences
        if observation.event is Event.ENDED and answer is not None and confidences:
            mean = math.fsum(confidences) / len(confidences)
            if math.isfinite(mean):
                self._votes[observation.prefix.rollout] = (answer, mean)
        return []

    def ballots(self) -> Sequence[Ballot]:
        votes = sorted(self._votes.items())
        shares = weights([confidence for _, (_, confidence) in votes], self.plan)
        return [Ballot(rollout, answer, share) for (rollout, (answer, _)), share in zip(votes, shares, strict=True)]

    def seats(self) -> Sequence[Seat] | None:
        return None  # votes have weights that are not known ahead

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        return ()


def _deepconf(plan: DeepConfPlan, context: Context) -> Policy:
    return DeepConf(context.k, plan)


def _cisc(plan: CiscPlan, context: Context) -> Policy:
    return Cisc(context.k, plan)


DEEPCONF = Method(
    name="deepconf",
    summary="stop rollouts whose confidence falls below a bar set by the first ones; votes weighted by confidence",
    plan=DeepConfPlan,
    build=_deepconf,
    needs=lambda plan: frozenset({Need.LOGPROBS}),
)
CISC = Method(
    name="cisc",
    summary="self-consistency with votes weighted by the model's confidence in each rollout",
    plan=CiscPlan,
    build=_cisc,
    needs=lambda plan: frozenset({Need.LOGPROBS}),
)
