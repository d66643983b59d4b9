"""The funnel with each of its parameters, and the two methods that show what its signal is worth."""

from __future__ import annotations

from dataclasses import dataclass

from fot.core.funnel import Funnel
from fot.core.markers import PAPER_KERNEL, Kernel
from fot.core.policy import Need
from fot.methods.signals import problem_seed, signal_for
from fot.methods.spec import Context, Method, parameter

__all__ = ["FOT", "ORACLE", "RANDOM", "FunnelPlan", "draws_of_signal", "problem_seed"]


@dataclass(frozen=True)
class FunnelPlan:
    """The funnel's parameters; the defaults are the paper's."""

    checkpoints: tuple[int, ...] = parameter((6000, 10000, 14000), "token counts at which to bank and prune")
    keep: float = parameter(0.67, "share of the active rollouts that a checkpoint keeps")
    minimum: int = parameter(2, "rollouts that always stay active")
    kernel: Kernel = parameter(PAPER_KERNEL, "markers: paper, top-N, or a list")
    early_voting: bool = parameter(True, "bank what has committed")
    eager: bool = parameter(False, "bank a rollout when it commits, not at the next checkpoint")
    signal: str = parameter("density", "what pruning ranks by")

    def __post_init__(self) -> None:
        if any(b <= a for a, b in zip((0, *self.checkpoints), self.checkpoints, strict=False)):
            raise ValueError("checkpoints must be positive and rise")
        if not 0 < self.keep <= 1:
            raise ValueError("keep must lie above 0 and at most at 1")
        if self.minimum < 1:
            raise ValueError("minimum must be at least 1")
        if self.eager and not self.early_voting:
            raise ValueError("eager banking is early voting; it cannot be on alone")
        signal_for(self.signal, Context(k=1))


@dataclass(frozen=True)
class RandomPlan(FunnelPlan):
    """The funnel pruning at random."""

    signal: str = parameter("random", "what pruning ranks by")
    draws: int = parameter(10, "draws whose mean is reported")


@dataclass(frozen=True)
class OraclePlan(FunnelPlan):
    """The funnel pruning those that would have run longest."""

    signal: str = parameter("length", "what pruning ranks by")


def _build(plan: FunnelPlan, context: Context) -> Funnel:
    return Funnel(
        context.k,
        plan.checkpoints,
        plan.keep,
        minimum=plan.minimum,
        early_voting=plan.early_voting,
        eager=plan.eager,
        signal=signal_for(plan.signal, context),
    )


def _needs(plan: FunnelPlan) -> frozenset[Need]:
    eager = frozenset({Need.COMMITMENTS}) if plan.eager else frozenset()
    return eager | signal_for(plan.signal, Context(k=1)).needs


def draws_of_signal(signal: str, draws: int = 10) -> int:
    """How often a method that prunes by this signal is to be repeated."""
    return draws if "random" in signal.split("/") else 1


def _draws(plan: FunnelPlan, k: int) -> int:
    return plan.draws if isinstance(plan, RandomPlan) else draws_of_signal(plan.signal)


FOT = Method(
    name="fot",
    summary="the funnel of thoughts: bank what has committed, prune what hesitates most, vote",
    plan=FunnelPlan,
    build=_build,
    needs=_needs,
    draws=_draws,
)
RANDOM = Method(
    name="random",
    summary="the funnel pruning at random: what its signal is worth (mean over draws)",
    plan=RandomPlan,
    build=_build,
    needs=_needs,
    draws=_draws,
)
ORACLE = Method(
    name="oracle",
    summary="the funnel pruning by final length, which no live run can know",
    plan=OraclePlan,
    build=_build,
    needs=_needs,
    draws=_draws,
)
