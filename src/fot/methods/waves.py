"""Waves: the funnel with rollouts launched a few at a time, and more only while the vote is open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fot.core.policy import Policy
from fot.methods.adaptive import Adaptive, PacedPlan
from fot.methods.decided import decided
from fot.methods.funnel import draws_of_signal
from fot.methods.rounds import Rounds, Steps
from fot.methods.sequential import sized
from fot.methods.signals import signal_for
from fot.methods.spec import Context, Method, parameter

__all__ = ["WAVES", "WavesPlan"]


@dataclass(frozen=True)
class WavesPlan(PacedPlan):
    """The waves' parameters, and how the funnel inside each paces itself."""

    first: int = parameter(8, "rollouts of the first wave")
    more: int = parameter(8, "rollouts of each further wave")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first < 1 or self.more < 1:
            raise ValueError("first and more must be at least 1")


def _waves(plan: WavesPlan, k: int, make: Callable[[int], Policy]) -> Policy:
    return decided(Rounds(k, Steps(plan.is_enough, plan.first, plan.more), make, plan.is_enough))


def _build(plan: WavesPlan, context: Context) -> Policy:
    signal = signal_for(plan.signal, context)
    return _waves(plan, context.k, lambda count: Adaptive(count, plan, signal, is_part=True))


def _wrap(plan: WavesPlan, context: Context, inner: Callable[[Context], Policy]) -> Policy:
    return _waves(plan, context.k, sized(context, inner))


WAVES = Method(
    name="waves",
    summary="the funnel in waves: a few rollouts, then more only while the vote is open",
    plan=WavesPlan,
    build=_build,
    wrap=_wrap,
    needs=lambda plan: plan.needs(),
    draws=lambda plan, k: draws_of_signal(plan.signal),
)
