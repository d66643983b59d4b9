"""Whole pools judged: each distinct pair of reference and final answer once, the grades kept beside the pool.

    graded = grade_pool(Pool.open("gpqa"), commit="choice", grader=judge)
    graded.counts()             # by model and benchmark, how many rollouts have each verdict
    for row in graded.rows():   # problem, rollout_id, answer, grade
        ...

Killed at any time and started again, it goes on where it was (see `fot.grading.store`). Workers that share the pairs
leave theirs as pieces, which the next `grade_pool` takes into the store: many machines need not write one database.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from fot.core.markers import PAPER_KERNEL
from fot.grading.base import Grade, Grader, Judgement, Pair, distinct
from fot.grading.store import GradeStore, grade_stored
from fot.pools.index import index_of
from fot.pools.pieces import Pieces, name_of
from fot.pools.read import Pool, Problem
from fot.pools.shard import Shard

__all__ = ["STORE", "GradedPool", "GradedRow", "grade_pool", "grade_share", "store_beside"]

STORE = "grades.sqlite"
"""The file beside a pool's rows that keeps its grades."""
_PIECE_PAIRS = 256


class GradedRow(NamedTuple):
    """One rollout and its grade."""

    problem: Problem
    rollout_id: int
    answer: str | None
    grade: Grade


@dataclass(frozen=True, slots=True)
class GradedPool:
    """A pool's unbiased rollouts with their grades. `distinct`: pairs that were judged; `left_out`: biased rollouts."""

    pool: Pool
    commit: str
    version: str
    store: Path | None
    distinct: int
    left_out: int
    problems: Sequence[Problem]
    rollout_ids: Sequence[int]
    answers: Sequence[str | None]
    grades: Sequence[Grade]

    def rows(self) -> Iterator[GradedRow]:
        """Every rollout, problem after problem, in order of `rollout_id`."""
        columns = zip(self.problems, self.rollout_ids, self.answers, self.grades, strict=True)
        return (GradedRow(*row) for row in columns)

    def counts(self) -> dict[tuple[str, str], Counter[Judgement]]:
        """By model and benchmark, rollouts of each verdict."""
        counts: dict[tuple[str, str], Counter[Judgement]] = {}
        for problem, grade in zip(self.problems, self.grades, strict=True):
            counts.setdefault((problem.model, problem.benchmark), Counter())[grade.verdict] += 1
        return counts

    def undecided(self) -> Counter[str]:
        """Why rollouts are undecided, and how many for each reason."""
        return Counter(grade.reason for grade in self.grades if grade.verdict is Judgement.UNDECIDED)


def store_beside(pool: Pool) -> Path | None:
    """Where a pool's grades are kept; None where nothing can be written."""
    return pool.path / STORE if os.access(pool.path, os.W_OK) else None


def grade_pool(
    pool: Pool,
    *,
    commit: str,
    grader: Grader,
    store: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> GradedPool:
    """Judge every unbiased rollout of a pool; `progress` is told distinct pairs done, and how many there are.

    Grades are kept in `store`, by default beside the pool. Raises `GradingError` when that file is not one of grades.
    """
    selection = pool.select()
    problems = [part.problem for part in selection.parts for _ in part.rows]
    pairs = _pairs(pool, commit)
    wanted = len(distinct(pairs))
    kept = store or store_beside(pool)

    def told(done: int) -> None:
        progress(done, wanted)

    if kept is None:
        grades = grader.grade_all(pairs, told)
    else:
        with GradeStore(kept) as file:
            _take_in(Pieces.beside(pool), grader.version, distinct(pairs), file)
            grades = grade_stored(grader, pairs, file, told)
    return GradedPool(
        pool=pool,
        commit=commit,
        version=grader.version,
        store=kept,
        distinct=wanted,
        left_out=len(pool.rollout_id) - len(pairs),
        problems=problems,
        rollout_ids=pool.rollout_id[selection.rows].tolist(),
        answers=[answer for _, answer in pairs],
        grades=grades,
    )


def grade_share(pool: Pool, *, commit: str, grader: Grader, shard: Shard, progress: Callable[[int, int], None]) -> int:
    """Judge one worker's share of a pool's distinct pairs, and leave the grades as pieces; how many were made now."""
    pieces, wanted = Pieces.beside(pool), distinct(_pairs(pool, commit))
    made = done = 0
    for number, (name, pairs) in enumerate(_blocks(grader.version, wanted)):
        if shard.owns(number) and pieces.load(name) is None:
            pieces.keep(name, msgspec.msgpack.encode(grader.grade_all(pairs)))
            made += 1
        done += len(pairs)
        progress(done, len(wanted))
    return made


def _pairs(pool: Pool, commit: str) -> list[Pair]:
    """Reference and final answer of every unbiased rollout."""
    selection = pool.select()
    golds = [part.problem.gold for part in selection.parts for _ in part.rows]
    return list(zip(golds, index_of(pool, PAPER_KERNEL, commit).final_texts(selection.rows), strict=True))


def _blocks(version: str, wanted: Sequence[Pair]) -> Iterator[tuple[str, Sequence[Pair]]]:
    """Pairs by the piece, with its name."""
    for first in range(0, len(wanted), _PIECE_PAIRS):
        pairs = wanted[first : first + _PIECE_PAIRS]
        yield name_of("grades", version, pairs), pairs


def _take_in(pieces: Pieces, version: str, wanted: Sequence[Pair], store: GradeStore) -> None:
    """Move what workers have left into the store."""
    taken: list[str] = []
    for name, pairs in _blocks(version, wanted):
        piece = pieces.load(name)
        if piece is not None:
            store.add(version, zip(pairs, msgspec.msgpack.decode(piece, type=list[Grade]), strict=True))
            taken.append(name)
    pieces.drop(taken)
