"""The funnel with each of its parameters, and the two methods that show what its signal is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

from fot.core.funnel import Funnel
from fot.core.markers import PAPER_KERNEL, Kernel
from fot.core.policy import Need
from fot.core.registry import unknown_name
from fot.core.signals import DENSITY, FINAL_LENGTH, Signal, mix, random_signal
from fot.methods.spec import Context, Method, parameter

__all__ = ["FOT", "ORACLE", "RANDOM", "SIGNALS", "FunnelPlan", "problem_seed", "signal_for"]


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
        if self.signal not in SIGNALS:
            raise unknown_name("signal", self.signal, SIGNALS)


@dataclass(frozen=True)
class RandomPlan(FunnelPlan):
    """The funnel pruning at random."""

    signal: str = parameter("random", "what pruning ranks by")
    draws: int = parameter(10, "draws whose mean is reported")


@dataclass(frozen=True)
class OraclePlan(FunnelPlan):
    """The funnel pruning those that would have run longest."""

    signal: str = parameter("length", "what pruning ranks by")


def problem_seed(context: Context) -> int:
    """One number for this problem and draw, the same wherever it is computed."""
    return mix(mix(context.seed, context.draw), crc32(context.problem.encode("utf-8", "surrogatepass")))


SIGNALS: dict[str, Callable[[Context], Signal]] = {
    "density": lambda context: DENSITY,
    "random": lambda context: random_signal(problem_seed(context)),
    "length": lambda context: FINAL_LENGTH,
}


def signal_for(name: str, context: Context) -> Signal:
    """The named signal at work on one problem."""
    return SIGNALS[name](context)


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


def _draws(plan: FunnelPlan, k: int) -> int:
    return plan.draws if isinstance(plan, RandomPlan) else 10 if plan.signal == "random" else 1


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
