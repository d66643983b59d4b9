"""The lossless stop: end everything once no way of finishing could change the method's own vote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fot.core.policy import Action, Conclude, Observation, Policy
from fot.core.vote import Ballot, Seat, is_decided
from fot.errors import ConfigError
from fot.methods.spec import Context, Method

__all__ = ["DECIDED", "Decided"]


class Decided:
    """Wraps a policy; by construction the answer is the one that the policy alone would give."""

    def __init__(self, inner: Policy) -> None:
        self._inner = inner

    def start(self) -> Sequence[Action]:
        return self._inner.start()

    def observe(self, observation: Observation) -> Sequence[Action]:
        actions = list(self._inner.observe(observation))
        seats = self._inner.seats()
        if seats is not None and is_decided(seats):
            actions.append(Conclude())
        return actions

    def ballots(self) -> Sequence[Ballot]:
        return self._inner.ballots()

    def seats(self) -> Sequence[Seat] | None:
        return self._inner.seats()

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        return self._inner.foresee(ahead)


@dataclass(frozen=True)
class DecidedPlan:
    """The lossless stop has no parameters."""


def _wrap(plan: DecidedPlan, context: Context, inner: Callable[[Context], Policy]) -> Policy:
    policy = inner(context)
    if policy.seats() is None:
        raise ConfigError("this method's vote cannot be bounded ahead, so 'decided' cannot stop it", "Leave it out.")
    return Decided(policy)


DECIDED = Method(
    name="decided",
    summary="wrapper: stop losslessly, once nothing that still runs could change the vote",
    plan=DecidedPlan,
    wrap=_wrap,
)
