"""Another policy, ended early."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fot.core.policy import Action, Conclude, Observation, Policy
from fot.core.vote import Ballot, Seat

__all__ = ["Until"]


class Until:
    """Another policy, ended by the first observation after which `is_over` says so of it; the vote stays its own."""

    def __init__(self, inner: Policy, is_over: Callable[[Policy], bool]) -> None:
        self._inner = inner
        self._is_over = is_over

    def start(self) -> Sequence[Action]:
        return self._inner.start()

    def observe(self, observation: Observation) -> Sequence[Action]:
        actions = self._inner.observe(observation)
        return [*actions, Conclude()] if self._is_over(self._inner) else actions

    def ballots(self) -> Sequence[Ballot]:
        return self._inner.ballots()

    def seats(self) -> Sequence[Seat] | None:
        return self._inner.seats()

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        return self._inner.foresee(ahead)
