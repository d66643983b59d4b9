"""The lossless stop: end everything once no way of finishing could change the method's own vote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fot.core.policy import Policy
from fot.core.vote import is_decided
from fot.errors import ConfigError
from fot.methods.spec import Context, Method
from fot.methods.until import Until

__all__ = ["DECIDED", "decided"]


def decided(inner: Policy) -> Policy:
    """The policy with the stop; by construction the answer is the one that the policy alone would give."""
    return Until(inner, _is_decided)


def _is_decided(policy: Policy) -> bool:
    seats = policy.seats()
    return seats is not None and is_decided(seats)


@dataclass(frozen=True)
class DecidedPlan:
    """The lossless stop has no parameters."""


def _wrap(plan: DecidedPlan, context: Context, inner: Callable[[Context], Policy]) -> Policy:
    policy = inner(context)
    if policy.seats() is None:
        raise ConfigError("this method's vote cannot be bounded ahead, so 'decided' cannot stop it", "Leave it out.")
    return decided(policy)


DECIDED = Method(
    name="decided",
    summary="wrapper: stop losslessly, once nothing that still runs could change the vote",
    plan=DecidedPlan,
    wrap=_wrap,
)
