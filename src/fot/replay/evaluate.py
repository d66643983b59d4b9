"""Methods side by side on the same rollouts: what each answers, what it costs, and how sure the difference is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fot.core.ledger import Bill, Savings, savings
from fot.core.shapes import Shape, shape_of
from fot.grading.base import Grade, Grader, Judgement, Pair
from fot.grading.store import GradeStore, grade_stored
from fot.methods import Spec, parse
from fot.pools.read import Problem
from fot.replay.sheet import Sheet
from fot.replay.simulator import Outcome
from fot.stats.paired import Interval, paired_bootstrap, sign_flip

__all__ = ["Judge", "MethodResult", "Row", "Study"]

Floats = NDArray[np.float64]


class Judge:
    """Which answers are correct, each distinct pair of reference and answer being graded once."""

    def __init__(self, grader: Grader, store: Path | None = None, written: Mapping[str, str] | None = None) -> None:
        """`store`: a file that keeps grades, so that no run judges again what another has; `written`: texts by key."""
        self._grader = grader
        self._store = store
        self._written = written or {}
        self._judged: dict[tuple[str | None, str | None], Judgement] = {}

    def judge(self, golds: Sequence[str | None], answers: Sequence[str | None]) -> list[Judgement]:
        """A judgement for each answer."""
        texts = [None if answer is None else self._written.get(answer, answer) for answer in answers]
        pairs = list(zip(golds, texts, strict=True))
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._judged]
        self._judged |= {pair: grade.verdict for pair, grade in zip(new, self._grade(new), strict=True)}
        return [self._judged[pair] for pair in pairs]

    def _grade(self, pairs: list[Pair]) -> list[Grade]:
        if self._store is None or not pairs:
            return self._grader.grade_all(pairs)
        with GradeStore(self._store) as store:
            return grade_stored(self._grader, pairs, store)


class Row(NamedTuple):
    """What one method did with one problem (draw 0)."""

    problem: Problem
    policy: str
    judgement: Judgement
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """One method over all problems; means over draws where it draws at random.

    `delta` counts problems gained over self-consistency, `ci95_pp` is the paired bootstrap interval of that difference
    in percentage points, and `p` the exact McNemar test (for a method with draws: sign flips of the mean differences).
    """

    spec: Spec
    draws: int
    correct: float
    accuracy: float
    undecided: float
    delta: float
    wins: float
    losses: float
    p: float
    ci95_pp: Interval
    savings: Savings
    votes_mean: float
    pass_at: dict[int, float] = field(default_factory=dict)
    """pass@k by k, for the method `pass`."""
    differences: Floats
    """Per problem: correct here minus correct under self-consistency."""
    notes: tuple[str, ...] = ()
    """What a reader of these figures must know."""


@dataclass(frozen=True, slots=True)
class _Totals:
    """Per problem, means over draws."""

    correct: Floats
    undecided: float
    votes: float
    bills: list[Bill]
    wins: float
    losses: float
    notes: tuple[str, ...]


class Study:
    """A set of sheets, the judge of their answers, and self-consistency on them as the mark."""

    def __init__(
        self, sheets: Sequence[Sheet], judge: Judge, *, seed: int = 0, shape: Callable[[str], Shape | None] = shape_of
    ) -> None:
        self.sheets = sheets
        self.seed = seed
        self._judge = judge
        self.problems = [part.problem for sheet in sheets for part in sheet.parts]
        self._golds = [problem.gold for problem in self.problems]
        self._shapes = [shape(problem.model) for problem in self.problems]
        self._sc = parse("sc")
        self._baseline = self._totals(self._sc, np.zeros(len(self.problems)))

    def evaluate(self, spec: Spec) -> MethodResult:
        """Run every draw of a method and compare it with self-consistency."""
        baseline = self._baseline.correct
        totals = self._baseline if spec == self._sc else self._totals(spec, baseline)
        differences = totals.correct - baseline
        correct = float(totals.correct.sum())
        return MethodResult(
            spec=spec,
            draws=self._draws(spec),
            correct=correct,
            accuracy=correct / len(self.problems),
            undecided=totals.undecided,
            delta=float(differences.sum()),
            wins=totals.wins if spec != self._sc else 0.0,
            losses=totals.losses,
            p=sign_flip(differences, self.seed),
            ci95_pp=Interval(*(100 * end for end in paired_bootstrap(differences, self.seed))),
            savings=savings(totals.bills, self._baseline.bills, self._shapes),
            votes_mean=totals.votes,
            pass_at=self.pass_at() if spec.name == "pass" else {},
            differences=differences,
            notes=totals.notes,
        )

    def rows(self, spec: Spec) -> Iterator[Row]:
        """What the first draw of a method did, problem by problem."""
        batches = [sheet.run(spec, self.seed) for sheet in self.sheets]
        judgements = self._judge.judge(self._golds, [winner for batch in batches for winner in batch.winners])
        outcomes = (batch.outcome(at) for batch in batches for at in range(len(batch.winners)))
        for problem, judgement, outcome in zip(self.problems, judgements, outcomes, strict=True):
            yield Row(problem, spec.name, judgement, outcome)

    def correct_rollouts(self) -> list[tuple[int, int]]:
        """Per problem: how many rollouts, and how many of them are correct."""
        finals = [finals for sheet in self.sheets for finals in sheet.finals]
        flat = [(gold, answer) for gold, answers in zip(self._golds, finals, strict=True) for answer in answers]
        judged = iter(self._judge.judge([gold for gold, _ in flat], [answer for _, answer in flat]))
        return [(len(answers), sum(next(judged) is Judgement.CORRECT for _ in answers)) for answers in finals]

    def pass_at(self) -> dict[int, float]:
        """Mean over problems of the unbiased estimate that one of n rollouts, drawn without return, is correct."""
        counts = self.correct_rollouts()
        most = min((total for total, _ in counts), default=0)
        sizes = sorted({size for size in (1, 2, 4, 8, 16, 32, 64, most) if 0 < size <= most})
        return {size: float(np.mean([_pass_at(size, *count) for count in counts])) for size in sizes}

    def _draws(self, spec: Spec) -> int:
        return max((spec.draws(len(part.rows)) for sheet in self.sheets for part in sheet.parts), default=1)

    def _totals(self, spec: Spec, baseline: Floats) -> _Totals:
        draws = self._draws(spec)
        correct = np.zeros(len(self.problems))
        sums = np.zeros((len(self.problems), len(Bill._fields)))
        undecided = votes = wins = losses = 0.0
        notes: dict[str, None] = {}
        for draw in range(draws):
            batches = [sheet.run(spec, self.seed, draw) for sheet in self.sheets]
            judged = self._judge.judge(self._golds, [winner for batch in batches for winner in batch.winners])
            notes |= dict.fromkeys(note for batch in batches for note in batch.notes)
            hits = np.array([judgement is Judgement.CORRECT for judgement in judged], float)
            correct += hits
            undecided += sum(judgement is Judgement.UNDECIDED for judgement in judged)
            wins += float((hits > baseline).sum())
            losses += float((hits < baseline).sum())
            votes += float(np.mean([cast for batch in batches for cast in batch.votes]))
            sums += np.array([bill for batch in batches for bill in batch.bills])
        return _Totals(
            correct=correct / draws,
            undecided=undecided / draws,
            votes=votes / draws,
            bills=[Bill(*row) for row in (sums / draws).tolist()],
            wins=wins / draws,
            losses=losses / draws,
            notes=tuple(notes),
        )


def _pass_at(size: int, total: int, correct: int) -> float:
    """One minus the chance that all of `size` rollouts are among the wrong ones."""
    if total - correct < size:
        return 1.0
    return 1.0 - float(np.prod(1.0 - size / np.arange(total - correct + 1, total + 1)))
