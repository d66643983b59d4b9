"""Methods that ask for rollouts until they agree: Adaptive Consistency and early-stopping self-consistency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from fot.core.policy import Policy
from fot.core.sampling import Majority
from fot.core.vote import Ballot, Seat
from fot.methods.criteria import counts_of, criterion_of
from fot.methods.rounds import Rounds, Steps
from fot.methods.signals import problem_seed
from fot.methods.spec import Context, Method, parameter
from fot.methods.until import Until

__all__ = ["AC", "ESC", "AcPlan", "EscPlan", "shuffled", "sized"]


def shuffled(plan: object, context: Context) -> Sequence[int]:
    """A random order in which to read the rollouts, the same for every method at one seed and draw."""
    order = list(range(context.k))
    Random(problem_seed(context)).shuffle(order)  # noqa: S311 - not for secrets
    return order


@dataclass(frozen=True)
class AcPlan:
    """Adaptive Consistency's parameters; the defaults are the paper's."""

    criterion: str = parameter("beta", "when the vote is enough: beta, dirichlet, entropy or majority")
    threshold: float | None = parameter(None, "what the criterion must reach; none: as published")
    mode: str = parameter("sequential", "sequential: one after the other; cancel: all at once, stopping the rest")
    window: int = parameter(1, "rollouts started together (sequential)")
    draws: int = parameter(10, "random reading orders whose mean is reported")

    def __post_init__(self) -> None:
        criterion_of(self.criterion, self.threshold)
        if self.mode not in ("sequential", "cancel"):
            raise ValueError("mode is sequential or cancel")
        if self.window < 1 or self.draws < 1:
            raise ValueError("window and draws must be at least 1")

    def is_enough(self, ballots: Sequence[Ballot]) -> bool:
        """Does the vote satisfy the criterion?"""
        return criterion_of(self.criterion, self.threshold).is_met(counts_of(ballots))


def _build_ac(plan: AcPlan, context: Context) -> Policy:
    if plan.mode == "cancel":
        return _until_enough(plan, Majority(context.k))
    return Rounds(context.k, Steps(plan.is_enough, plan.window, plan.window))


def _wrap_ac(plan: AcPlan, context: Context, inner: Callable[[Context], Policy]) -> Policy:
    """Around another method: in rounds of `window` rollouts, or on its whole vote as that is cast."""
    if plan.window == 1:
        return _until_enough(plan, inner(context))
    return Rounds(context.k, Steps(plan.is_enough, plan.window, plan.window), sized(context, inner))


def _until_enough(plan: AcPlan, inner: Policy) -> Policy:
    return Until(inner, lambda policy: plan.is_enough(policy.ballots()))


def sized(context: Context, inner: Callable[[Context], Policy]) -> Callable[[int], Policy]:
    """A method made for as many rollouts as a round has."""
    return lambda count: inner(
        Context(k=count, problem=context.problem, seed=context.seed, draw=context.draw, brief=context.brief)
    )


AC = Method(
    name="ac",
    summary="Adaptive Consistency: ask for one rollout after another until their vote is sure enough",
    plan=AcPlan,
    build=_build_ac,
    wrap=_wrap_ac,
    draws=lambda plan, k: plan.draws if plan.mode == "sequential" else 1,
    order=lambda plan, context: shuffled(plan, context) if plan.mode == "sequential" else None,
)


@dataclass(frozen=True)
class EscPlan:
    """ESC's parameters; the defaults are the paper's."""

    window: int = parameter(5, "rollouts started together; when all of them agree, theirs is the answer")
    remainder: bool = parameter(False, "also read what is left when windows do not divide k (off: as released)")
    failures: bool = parameter(True, "a window without any answer stops the run as well (on: as released)")
    draws: int = parameter(10, "random reading orders whose mean is reported")

    def __post_init__(self) -> None:
        if self.window < 1 or self.draws < 1:
            raise ValueError("window and draws must be at least 1")


class _Windows(Rounds):
    """Rounds that stop at the first unanimous window, whose answer wins whatever the others said."""

    def __init__(self, k: int, window: int, failures: bool) -> None:
        super().__init__(k, self)
        self._window = window
        self._failures = failures
        self._unanimous = False

    def more(self, ballots: Sequence[Ballot], launched: int) -> int:
        if launched:
            last = [ballot.answer for ballot in self.last_ballots()]
            whole = launched % self._window == 0
            silent = self._failures and not last
            self._unanimous = whole and (silent or (len(last) == self._window and len(set(last)) == 1))
        return 0 if self._unanimous else self._window

    def ballots(self) -> Sequence[Ballot]:
        return self.last_ballots() if self._unanimous else super().ballots()

    def seats(self) -> Sequence[Seat] | None:
        """The vote can be bounded only once no window can be unanimous any more."""
        in_last = {ballot.answer for ballot in self.last_ballots()} if self.launched else set()
        if self._unanimous or self.launched < self.k or (len(in_last) < 2 and self.launched % self._window == 0):
            return [Seat(None, (0,), (0,))]
        return super().seats()


def _build_esc(plan: EscPlan, context: Context) -> Policy:
    window = min(plan.window, context.k)
    whole = context.k if plan.remainder else context.k - context.k % window
    return _Windows(whole, window, plan.failures)


ESC = Method(
    name="esc",
    summary="early-stopping self-consistency: windows of rollouts until one is unanimous",
    plan=EscPlan,
    build=_build_esc,
    draws=lambda plan, k: plan.draws,
    order=shuffled,
)
