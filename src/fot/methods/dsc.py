"""Difficulty-Adaptive Self-Consistency: how hard a problem is among the others decides how many rollouts it gets.

It needs the whole set of problems at once. Three steps: rank the problems by difficulty (a model may have done that
before, with `fot rank`; what it cost is charged); walk from the hardest to the
easiest until a run of them is easy, and give everything easier a single rollout; give each hard one a first window as
large as the harder ones before it needed, then more until its vote is sure. All rollouts that are looked at for judging
are the problem's own and charged to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from fot.core.ledger import Charge
from fot.core.policy import Need, Policy
from fot.core.vote import Ballot
from fot.methods.criteria import beta, counts_of
from fot.methods.rounds import Rounds
from fot.methods.sequential import shuffled, sized
from fot.methods.spec import Context, Method, Prepared, Recorded, parameter

__all__ = ["DSC", "DscPlan", "Grant", "allot"]


@dataclass(frozen=True)
class DscPlan:
    """DSC's parameters; the defaults are the paper's, but for the ranking, which is an offline proxy of the model's."""

    ranking: str = parameter(
        "length", "length: of the first rollout; given: by `fot rank`, or by the rows' field 'difficulty'"
    )
    threshold: float = parameter(0.95, "what Adaptive Consistency's Beta criterion must reach")
    window: int = parameter(4, "rollouts judged, and asked for, together")
    run: int = parameter(32, "problems in a row that must be easy; fewer on a small set, and said so")
    before: int = parameter(16, "harder problems whose needs set a hard one's first window")
    draws: int = parameter(10, "random reading orders whose mean is reported")

    def __post_init__(self) -> None:
        if self.ranking not in ("length", "given"):
            raise ValueError("ranking is length or given")
        if min(self.window, self.run, self.before, self.draws) < 1:
            raise ValueError("window, run, before and draws must be at least 1")

    def is_enough(self, ballots: Sequence[Ballot]) -> bool:
        """Is the vote sure?"""
        return bool(ballots) and beta(counts_of(ballots)) >= self.threshold


@dataclass(frozen=True, slots=True)
class Grant:
    """What one problem gets: one rollout, or a first window of which `judged` are read before the others."""

    first: int
    judged: int = 0


def allot(plan: DscPlan, problems: Sequence[Recorded]) -> Prepared:
    """Rank, partition and allot: a `Grant` for each problem."""
    given = [problem.difficulty for problem in problems]
    notes: list[str] = []
    charges: list[Sequence[Charge]] = []
    if plan.ranking == "given" and None not in given:
        difficulty = [value for value in given if value is not None]
        charges = [problem.judging for problem in problems]
    else:
        # Every problem gets its first rollout anyway, so this ranking costs nothing and knows nothing too early.
        difficulty = [float(problem.tokens[0]) for problem in problems]
        missing = " (no difficulty is given for every problem)" if plan.ranking == "given" else ""
        notes.append(f"dsc ranks by the length of each problem's first rollout, not by a model's judgement{missing}")
    hardest_first = sorted(range(len(problems)), key=lambda at: (-difficulty[at], problems[at].context.problem))
    run = min(plan.run, max(1, len(problems) // 8))
    if run < plan.run:
        notes.append(
            f"dsc: a run of {plan.run} easy problems can hardly come among {len(problems)}; scaled to a run of {run}"
        )
    judged = _judged(plan, [problems[at] for at in hardest_first], run)
    grants = [Grant(1)] * len(problems)
    needed: list[int] = []
    for at in hardest_first[:judged]:
        recent = needed[-plan.before :]
        first = round(fmean(recent) / plan.window) * plan.window if recent else plan.window
        grants[at] = Grant(max(plan.window, first), plan.window)
        needed.append(_needs(plan, problems[at].answers))
    if judged == len(problems):
        notes.append("dsc: no run of easy problems came; every problem was treated as hard")
    return Prepared(briefs=grants, notes=notes, charges=charges)


def _judged(plan: DscPlan, problems: Sequence[Recorded], run: int) -> int:
    """How many of the problems, hardest first, are looked at before a run of easy ones ends the walk."""
    easy = 0
    for at, problem in enumerate(problems):
        easy = easy + 1 if plan.is_enough(_ballots(problem.answers[: plan.window])) else 0
        if easy == run:
            return at + 1
    return len(problems)


def _needs(plan: DscPlan, answers: Sequence[str | None]) -> int:
    """The first number of rollouts whose vote is sure; all of them if it never is."""
    sure = (n for n in range(1, len(answers)) if plan.is_enough(_ballots(answers[:n])))
    return next(sure, len(answers))


def _ballots(answers: Sequence[str | None]) -> list[Ballot]:
    return [Ballot(at, answer) for at, answer in enumerate(answers) if answer is not None]


@dataclass(frozen=True, slots=True)
class _Granted:
    """Rounds of a grant: what is judged, the rest of the first window, then window by window."""

    plan: DscPlan
    grant: Grant

    def more(self, ballots: Sequence[Ballot], launched: int) -> int:
        if not launched:
            return self.grant.judged or self.grant.first
        if not self.grant.judged or self.plan.is_enough(ballots):
            return 0
        return max(self.grant.first - launched, self.plan.window)


def _granted(plan: DscPlan, context: Context) -> _Granted:
    # Without a brief (a spec that is only being checked) every problem counts as hard.
    grant = context.brief if isinstance(context.brief, Grant) else Grant(plan.window, plan.window)
    return _Granted(plan, grant)


def _wrap(plan: DscPlan, context: Context, inner: Callable[[Context], Policy]) -> Policy:
    return Rounds(context.k, _granted(plan, context), sized(context, inner))


DSC = Method(
    name="dsc",
    summary="Difficulty-Adaptive Self-Consistency: one rollout for easy problems, more for hard ones",
    plan=DscPlan,
    build=lambda plan, context: Rounds(context.k, _granted(plan, context)),
    wrap=_wrap,
    needs=lambda plan: frozenset({Need.DATASET}),
    draws=lambda plan, k: plan.draws,
    order=shuffled,
    prepare=allot,
)
