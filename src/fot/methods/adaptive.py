"""The adaptive funnel: checkpoints that place themselves by when the rollouts of the problem commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from fot.core.funnel import kept
from fot.core.markers import PAPER_KERNEL, Kernel
from fot.core.policy import Action, Bank, Conclude, Event, Launch, Need, Observation, Policy, Prefix, Prune, Watch
from fot.core.signals import Signal
from fot.core.vote import Ballot, Seat, is_decided
from fot.methods.criteria import beta, counts_of
from fot.methods.funnel import draws_of_signal
from fot.methods.signals import signal_for
from fot.methods.spec import Context, Method, parameter

__all__ = ["ADAPTIVE", "Adaptive", "AdaptivePlan", "PacedPlan"]


@dataclass(frozen=True)
class PacedPlan:
    """How a funnel paces itself. Its unit of time is the pace: when `share` of its rollouts have committed."""

    share: float = parameter(0.25, "share of the rollouts whose commitment sets the pace")
    at: tuple[float, ...] = parameter((1.0, 1.5), "when to prune, in units of the pace")
    keep: float = parameter(0.67, "share of the running rollouts that a checkpoint keeps")
    minimum: int = parameter(2, "rollouts that pruning leaves running")
    limit: float | None = parameter(None, "when to end everything, in units of the pace; none: never")
    fallback: tuple[int, ...] = parameter((16000, 24000), "token counts at which to prune while there is no pace")
    stop: float | None = parameter(0.93, "end when the leader is the more frequent answer this surely; none: never")
    settle: int = parameter(8, "tokens for which an answer must stand before it is banked")
    kernel: Kernel = parameter(PAPER_KERNEL, "markers: paper, top-N, or a list")
    signal: str = parameter("density", "what pruning ranks by")

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or not 0 < self.keep <= 1:
            raise ValueError("share and keep must lie above 0 and at most at 1")
        for name, times in (("at", self.at), ("fallback", self.fallback)):
            if any(not b > a for a, b in zip((0, *times), times, strict=False)):
                raise ValueError(f"{name} must be positive and rise")
        if self.limit is not None and not self.limit >= 1:
            raise ValueError("limit must be at least 1")
        if self.minimum < 1 or self.settle < 0:
            raise ValueError("minimum must be at least 1, and settle not negative")
        if self.stop is not None and not 0.5 < self.stop <= 1:
            raise ValueError("stop must lie above 0.5 and at most at 1")
        signal_for(self.signal, Context(k=1))

    def is_enough(self, ballots: Sequence[Ballot]) -> bool:
        """Does the vote satisfy the stopping criterion (Adaptive Consistency's)?"""
        return self.stop is not None and bool(ballots) and beta(counts_of(ballots)) >= self.stop

    def needs(self) -> frozenset[Need]:
        """What a driver must give."""
        return frozenset({Need.COMMITMENTS}) | signal_for(self.signal, Context(k=1)).needs


@dataclass(frozen=True)
class AdaptivePlan(PacedPlan):
    """The adaptive funnel's parameters."""

    first: float = parameter(0.5, "share of k that is started; the others are never needed")
    least: int = parameter(6, "rollouts that are started at least, where k allows")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.first <= 1 or self.least < 1:
            raise ValueError("first must lie above 0 and at most at 1, and least be at least 1")


class Adaptive:
    """Starts k rollouts at once, banks each when it has committed, and prunes and ends by their own pace.

    Votes stand in the order in which they were banked. A rollout that ended without an answer is out.
    """

    def __init__(self, k: int, plan: PacedPlan, signal: Signal, *, is_part: bool = False) -> None:
        """`is_part`: others vote as well, so what this one's votes say ends nothing."""
        self.k = k
        self.plan = plan
        self.bank: list[Ballot] = []
        self.active = set(range(k))
        self._signal = signal
        self._is_part = is_part
        self._due: dict[int, tuple[str, int]] = {}  # the answer that each stands by, and when it will have settled
        self._arrived: dict[int, Prefix] = {}
        self._stages = [(tokens, False) for tokens in plan.fallback]  # (tokens, whether everything ends there)
        self._has_pace = False

    def start(self) -> Sequence[Action]:
        return [Launch(self.k), *self._watch()]

    def observe(self, observation: Observation) -> Sequence[Action]:
        rollout = observation.prefix.rollout
        if rollout not in self.active:
            return []
        match observation.event:
            case Event.COMMITTED:
                actions = self._commit(observation.prefix)
            case Event.REACHED:
                actions = self._reach(observation.prefix)
            case Event.ENDED:
                actions = self._end(observation.prefix)
            case _:
                actions = self._drop(rollout) if observation.event is Event.FAILED else []
        if not self._has_pace and len(self.bank) >= ceil(self.plan.share * self.k):
            actions += self._set_pace(observation.clock)
        if not self._is_over():
            actions += self._advance()  # which may leave nothing that could change the vote
        return [*actions, Conclude()] if self._is_over() else actions

    def _commit(self, prefix: Prefix) -> list[Action]:
        self._due.pop(prefix.rollout, None)
        if prefix.answer is None:
            return []
        if not self.plan.settle:
            return self._vote(prefix, prefix.answer)
        self._due[prefix.rollout] = (prefix.answer, prefix.tokens + self.plan.settle)
        return [Watch(prefix.rollout, prefix.tokens + self.plan.settle)]

    def _reach(self, prefix: Prefix) -> list[Action]:
        answer, due = self._due.get(prefix.rollout, ("", prefix.tokens + 1))
        if prefix.tokens >= due:
            return self._vote(prefix, answer)
        if self._stages and prefix.tokens >= self._stages[0][0]:
            self._arrived[prefix.rollout] = prefix
        return []

    def _vote(self, prefix: Prefix, answer: str) -> list[Action]:
        self.bank.append(Ballot(prefix.rollout, answer))
        return [Bank(prefix.rollout), *self._drop(prefix.rollout)]

    def _end(self, prefix: Prefix) -> list[Action]:
        if prefix.answer is not None:
            self.bank.append(Ballot(prefix.rollout, prefix.answer))
        return self._drop(prefix.rollout)

    def _drop(self, rollout: int) -> list[Action]:
        self.active.discard(rollout)
        self._arrived.pop(rollout, None)
        return []

    def _set_pace(self, pace: int) -> list[Action]:
        """From now on checkpoints follow the pace."""
        self._has_pace = True
        times = [(max(ceil(at * pace), pace + 1), False) for at in self.plan.at]
        limit = self.plan.limit
        self._stages = times if limit is None else [*times, (max(ceil(limit * pace), pace + 1), True)]
        self._stages.sort()
        self._arrived.clear()
        return self._watch()

    def _watch(self) -> list[Action]:
        return [Watch(rollout, self._stages[0][0]) for rollout in sorted(self.active)] if self._stages else []

    def _advance(self) -> list[Action]:
        """Decide the checkpoint at which all that run have arrived."""
        if not self._stages or not self.active <= self._arrived.keys():
            return []
        _, is_last = self._stages.pop(0)
        arrived, self._arrived = self._arrived, {}
        if is_last:
            return [Conclude()]
        ranked = self._signal.rank(arrived.values(), self.bank)
        pruned = ranked[kept(len(ranked), self.plan.keep, self.plan.minimum) :]
        self.active -= {prefix.rollout for prefix in pruned}
        return [*(Prune(prefix.rollout) for prefix in pruned), *self._watch()]

    def _is_over(self) -> bool:
        if self._is_part:
            return not self.active
        return self.plan.is_enough(self.bank) or is_decided(self.seats())

    def ballots(self) -> Sequence[Ballot]:
        return self.bank

    def seats(self) -> Sequence[Seat]:
        banked = [Seat(ballot.answer, (0, at), (0, at)) for at, ballot in enumerate(self.bank)]
        return banked + [Seat(None, (1, 0), (1, self.k)) for _ in self.active]

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        return ()


def _build(plan: AdaptivePlan, context: Context) -> Policy:
    started = min(context.k, max(plan.least, ceil(plan.first * context.k)))
    return Adaptive(started, plan, signal_for(plan.signal, context))


ADAPTIVE = Method(
    name="adaptive",
    summary="the adaptive funnel: banks at once, prunes by the pace of commitments, ends when the vote is clear",
    plan=AdaptivePlan,
    build=_build,
    needs=lambda plan: plan.needs(),
    draws=lambda plan, k: draws_of_signal(plan.signal),
)
