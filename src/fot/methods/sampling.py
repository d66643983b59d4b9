"""Self-consistency, and what a single rollout is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fot.core.sampling import Majority
from fot.methods.sequential import shuffled
from fot.methods.spec import Context, Method, parameter

__all__ = ["FIRST_N", "PASS", "SC"]


@dataclass(frozen=True)
class NoPlan:
    """A method without parameters."""


SC = Method(
    name="sc",
    summary="self-consistency: all k rollouts to their end, then the plurality",
    plan=NoPlan,
    build=lambda plan, context: Majority(context.k),
)


def _start_with_the_draw(plan: NoPlan, context: Context) -> Sequence[int]:
    first = context.draw % context.k
    return [first, *(rollout for rollout in range(context.k) if rollout != first)]


PASS = Method(
    name="pass",
    summary="pass@1: one rollout alone, the mean over all k of them (pass@k, the ceiling, stands beside it)",
    plan=NoPlan,
    build=lambda plan, context: Majority(1),
    draws=lambda plan, k: k,
    order=_start_with_the_draw,
)


@dataclass(frozen=True)
class FirstPlan:
    """A budget."""

    n: int = parameter(8, "rollouts that are started")
    draws: int = parameter(10, "random choices of them whose mean is reported")

    def __post_init__(self) -> None:
        if self.n < 1 or self.draws < 1:
            raise ValueError("n and draws must be at least 1")


FIRST_N = Method(
    name="first-n",
    summary="self-consistency on a fixed budget of n of the k rollouts: what fewer of them would have done",
    plan=FirstPlan,
    build=lambda plan, context: Majority(min(plan.n, context.k)),
    draws=lambda plan, k: plan.draws,
    order=shuffled,
)
