"""What analyses start from: all rollouts of a study as flat arrays, and each method's result on any of its problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fot.core.markers import PAPER_KERNEL
from fot.core.policy import Fate
from fot.core.shapes import Shape
from fot.errors import ConfigError, MissingExtra
from fot.grading.base import Grader, Judgement
from fot.grading.keys import Merging
from fot.methods import parse
from fot.pools.index import Index, index_of
from fot.pools.read import Problem
from fot.replay.evaluate import MethodResult, Row, Study
from fot.replay.grid import NAMED, grid
from fot.replay.study import Chosen, judge_of, sheets_of, winners_merged
from fot.replay.sweep import Sweep, sweep
from fot.report.exhibit import NotHere

__all__ = ["CHECKPOINTS", "Cell", "Material", "Prefixes", "Rollouts"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CHECKPOINTS = NAMED["Mid"]
"""Those of the funnel as it runs here: the paper's default."""


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Every rollout, problem after problem. `problem` numbers `Material.problems`."""

    problem: Ints
    tokens: Ints
    density: Floats
    """Markers per 1,000 characters of the whole text."""
    correct: Bools
    answered: Bools
    undecided: Bools


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Every rollout as it was at a number of tokens; `running` are those that went on beyond it."""

    tokens: int
    running: Bools
    density: Floats
    answered: Bools


@dataclass(frozen=True, slots=True)
class Cell:
    """The problems of one model on one benchmark."""

    model: str
    benchmark: str
    which: Bools


class Material:
    """A study, its rollouts as arrays, and results that are computed when first asked for."""

    def __init__(
        self,
        chosen: Chosen,
        *,
        commit: str,
        grader: Grader,
        shape: Callable[[str], Shape | None],
        seed: int = 0,
        policies: Sequence[str] = (),
        tune_on_test: bool = False,
        keys: str = "exact",
    ) -> None:
        """Run self-consistency on the chosen rollouts; everything else comes when it is asked for.

        `policies` are compared beside the usual ones; `tune_on_test` lets choices be made on what they are reported on;
        `keys` names what makes two answers one vote.
        """
        self.chosen = chosen
        self.policies = tuple(policies)
        self.tune_on_test = tune_on_test
        self.commit = commit
        self.seed = seed
        self.shape = shape
        self.sheets = sheets_of(chosen, commit, keys)
        self.keys = keys
        self.judge = judge_of(chosen, self.sheets, grader)
        self.study = Study(self.sheets, self.judge, seed=seed, shape=shape)
        self.problems: Sequence[Problem] = self.study.problems
        self._results: dict[tuple[str, bytes], MethodResult] = {}
        self._rows: dict[str, list[Row]] = {}
        self._studies: dict[bytes, Study] = {}
        self._prefixes: dict[int, Prefixes] = {}
        self._swept: Sweep | None = None

    @property
    def k(self) -> int:
        """Rollouts a problem; where problems differ, the fewest."""
        return min(len(part.rows) for sheet in self.sheets for part in sheet.parts)

    @cached_property
    def indexes(self) -> list[Index]:
        """The index of each sheet's pool."""
        return [index_of(sheet.pool, PAPER_KERNEL, self.commit) for sheet in self.sheets]

    def flat(self, read: Callable[[Index, Ints], NDArray]) -> NDArray:  # type: ignore[type-arg]
        """What `read(index, rows)` gives for the rows of every sheet, joined."""
        pairs = zip(self.indexes, self.sheets, strict=True)
        return np.concatenate(
            [read(index, np.concatenate([part.rows for part in sheet.parts])) for index, sheet in pairs]
        )

    def texts(self) -> Iterator[tuple[int, str]]:
        """Every rollout's number and text, one row group of a pool in memory at a time."""
        first = 0
        for sheet in self.sheets:
            rows = np.concatenate([part.rows for part in sheet.parts])
            for group in range(sheet.pool.row_groups):
                low, high = sheet.pool.group_starts[group : group + 2]
                own = np.flatnonzero((rows >= low) & (rows < high)).tolist()
                if not own:
                    continue
                column = sheet.pool.group(group, "text")
                for at in own:
                    yield first + at, column[int(rows[at] - low)].as_py()
            first += len(rows)

    @cached_property
    def sizes(self) -> Ints:
        """Rollouts of each problem."""
        return np.array([len(part.rows) for sheet in self.sheets for part in sheet.parts], np.int64)

    def need_gold(self) -> None:
        """Raises `NotHere` where no rollout can be right or wrong."""
        if all(problem.gold is None for problem in self.problems):
            raise NotHere("the rollouts have no reference answers, so none is right or wrong")

    @cached_property
    def rollouts(self) -> Rollouts:
        """All rollouts; needs reference answers."""
        self.need_gold()
        finals = [answers for sheet in self.sheets for answers in sheet.finals]
        golds = [problem.gold for problem, own in zip(self.problems, finals, strict=True) for _ in own]
        answers = [answer for own in finals for answer in own]
        verdicts = self.judge.judge(golds, answers)
        return Rollouts(
            problem=np.repeat(np.arange(len(self.problems)), self.sizes),
            tokens=self.flat(lambda index, rows: index.n_tokens[rows]),
            density=self.flat(lambda index, rows: index.densities(rows, index.n_chars[rows])),
            correct=np.array([verdict is Judgement.CORRECT for verdict in verdicts], np.bool_),
            answered=np.array([answer is not None for answer in answers], np.bool_),
            undecided=np.array([verdict is Judgement.UNDECIDED for verdict in verdicts], np.bool_),
        )

    def at(self, tokens: int) -> Prefixes:
        """All rollouts cut at `tokens` tokens."""
        if tokens not in self._prefixes:
            self._prefixes[tokens] = Prefixes(
                tokens=tokens,
                running=self.flat(lambda index, rows: index.n_tokens[rows]) > tokens,
                density=self.flat(lambda index, rows: index.densities(rows, index.cuts(rows, tokens))),
                answered=self.flat(lambda index, rows: index.committed(rows, index.cuts(rows, tokens))) >= 0,
            )
        return self._prefixes[tokens]

    def cut_chars(self, tokens: int) -> Ints:
        """Characters of every rollout's prefix at `tokens` tokens."""
        return self.flat(lambda index, rows: index.cuts(rows, tokens))

    @cached_property
    def marker_counts(self) -> Ints:
        """How often each marker of the paper's kernel (row) stands in each rollout (column)."""
        counts = [
            self.flat(lambda index, rows, one=number: index.marker_counts(rows, index.n_chars[rows], [one]))  # type: ignore[misc]
            for number in range(len(PAPER_KERNEL.markers))
        ]
        return np.stack(counts)

    @cached_property
    def chars(self) -> Ints:
        """Characters of each rollout."""
        return self.flat(lambda index, rows: index.n_chars[rows])

    @cached_property
    def right(self) -> Ints:
        """How many rollouts of each problem are correct."""
        rollouts = self.rollouts
        return np.bincount(rollouts.problem, rollouts.correct, len(self.problems)).astype(np.int64)

    @property
    def pass_rate(self) -> Floats:
        """pass@1 of each problem: the share of its rollouts that are correct."""
        return self.right / self.sizes

    @cached_property
    def merging(self) -> Merging | None:
        """What the vote keys did to the votes of self-consistency; None for exact keys, which merge nothing."""
        return None if self.keys == "exact" else winners_merged(self.chosen, self.commit, self.keys)

    @cached_property
    def undecided(self) -> int:
        """How many rollouts have an answer that the grader could not judge; they are not counted as correct."""
        return int(self.rollouts.undecided.sum())

    @property
    def models(self) -> list[str]:
        """In first-seen order."""
        return list(dict.fromkeys(problem.model for problem in self.problems))

    @property
    def benchmarks(self) -> list[str]:
        """In first-seen order."""
        return list(dict.fromkeys(problem.benchmark for problem in self.problems))

    def where(self, model: str | None = None, benchmark: str | None = None) -> Bools:
        """The problems of a model, of a benchmark, or of both."""
        return np.array(
            [model in (None, one.model) and benchmark in (None, one.benchmark) for one in self.problems], np.bool_
        )

    @property
    def cells(self) -> list[Cell]:
        """Every model on every benchmark that it has problems of."""
        keys = dict.fromkeys((problem.model, problem.benchmark) for problem in self.problems)
        return [Cell(model, benchmark, self.where(model, benchmark)) for model, benchmark in keys]

    def result(self, text: str, which: Bools | None = None) -> MethodResult:
        """A method on the problems of a mask (all by default); `NotHere` where the pool cannot carry the method."""
        everything = which is None or bool(which.all())
        mask = b"" if everything or which is None else which.tobytes()
        if (text, mask) not in self._results:
            study = self.study if everything or which is None else self._part(which)
            try:
                self._results[text, mask] = study.evaluate(parse(text))
            except (ConfigError, MissingExtra) as error:
                raise NotHere(f"{text}: {error}") from None
        return self._results[text, mask]

    def _part(self, which: Bools) -> Study:
        if which.tobytes() not in self._studies:
            sheets, first = [], 0
            for sheet in self.sheets:
                own = which[first : first + len(sheet.parts)]
                first += len(sheet.parts)
                parts = [part for part, taken in zip(sheet.parts, own, strict=True) if taken]
                if parts:
                    sheets.append(sheet.only(parts))
            self._studies[which.tobytes()] = Study(sheets, self.judge, seed=self.seed, shape=self.shape)
        return self._studies[which.tobytes()]

    @property
    def swept(self) -> Sweep:
        """The paper's kernel in all 340 configurations."""
        if self._swept is None:
            self._swept = sweep(self.sheets, self.judge, grid(), shape=self.shape, pieces=lambda sheet: sheet.pieces)
        return self._swept

    def can(self, text: str) -> bool:
        """Is there such a method, and can this pool carry it?"""
        try:
            self.result(text)
        except NotHere:
            return False
        return True

    def rows(self, text: str) -> list[Row]:
        """What the first draw of a method did, problem by problem."""
        if text not in self._rows:
            self._rows[text] = list(self.study.rows(parse(text)))
        return self._rows[text]

    def hits(self, text: str) -> Floats:
        """Per problem, whether a method is right (the share of its draws in which it is)."""
        return self.baseline + self.result(text).differences

    @cached_property
    def baseline(self) -> Floats:
        """Per problem, whether self-consistency is right."""
        return np.array([row.judgement is Judgement.CORRECT for row in self.rows("sc")], np.float64)

    def stops(self, text: str) -> Ints:
        """Tokens charged to every rollout in a method's first draw."""
        return np.array([stop for row in self.rows(text) for stop in row.outcome.stops], np.int64)

    def fates(self, text: str) -> list[Fate]:
        """What became of every rollout in a method's first draw."""
        return [fate for row in self.rows(text) for fate in row.outcome.fates]
