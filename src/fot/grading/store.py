"""Grades on disk: what has been judged once by a version of a grader is not judged again, whatever happens in between.

    with GradeStore(pool / "grades.sqlite") as store:
        grades = grade_stored(judge, pairs, store, progress)     # killed and started again, it goes on

A grade is kept under the grader's version and a digest of the pair, so a file holds no answer and no reference. What
was undecided is kept for reading, and tried again. A damaged file is an error: it can be deleted, it is only a cache.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from fot.errors import GradingError
from fot.grading.base import Closing, Grade, Grader, Judgement, Pair, distinct

__all__ = ["GradeStore", "grade_stored"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS grades (
    grader TEXT NOT NULL, pair BLOB NOT NULL, verdict TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (grader, pair)
) WITHOUT ROWID
"""
_WAIT_S = 60.0
_BATCH = 256


class GradeStore(Closing):
    """A file of grades; safe to share between processes and to kill at any time."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it. Raises `GradingError` when it is no file of grades or cannot be written."""
        self.path = path
        with self._explained():
            self._connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
            try:
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.execute(_SCHEMA)
            except sqlite3.Error:
                self._connection.close()
                raise

    def find(self, version: str, pairs: Iterable[Pair]) -> dict[Pair, Grade]:
        """The grades that this version of a grader has given to some of the pairs."""
        found: dict[Pair, Grade] = {}
        with self._explained():
            for pair in pairs:
                row = self._connection.execute(
                    "SELECT verdict, reason FROM grades WHERE grader = ? AND pair = ?", (version, _digest(pair))
                ).fetchone()
                if row is not None:
                    found[pair] = Grade(Judgement(row[0]), row[1])
        return found

    def add(self, version: str, grades: Iterable[tuple[Pair, Grade]]) -> None:
        """Keep these, all or none of them; a pair that is there already is replaced."""
        rows = [(version, _digest(pair), grade.verdict.value, grade.reason) for pair, grade in grades]
        with self._explained(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO grades VALUES (?, ?, ?, ?)", rows)

    def counts(self) -> dict[str, dict[str, int]]:
        """For every version of a grader, how many pairs have each verdict."""
        counts: dict[str, dict[str, int]] = {}
        with self._explained():
            rows = self._connection.execute(
                "SELECT grader, verdict, count(*) FROM grades GROUP BY grader, verdict ORDER BY grader, verdict"
            )
            for version, verdict, count in rows:
                counts.setdefault(version, {})[verdict] = count
        return counts

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            raise GradingError(
                f"{self.path} cannot be used as a file of grades: {error}",
                "it is a cache: delete it, or name another file",
            ) from None


def _digest(pair: Pair) -> bytes:
    """Of both strings with their lengths, None being no string: different pairs have different digests."""
    digest = hashlib.sha256()
    for text in pair:
        data = b"" if text is None else text.encode("utf-8", "surrogatepass")
        digest.update(f"{-1 if text is None else len(data)}:".encode())
        digest.update(data)
    return digest.digest()


def grade_stored(
    judge: Grader,
    pairs: Sequence[Pair],
    store: GradeStore,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Grade]:
    """The grades of the pairs, in order; what is new is kept batch by batch. `progress`: distinct pairs done."""
    wanted = distinct(pairs)
    grades = {
        pair: grade
        for pair, grade in store.find(judge.version, wanted).items()
        if grade.verdict is not Judgement.UNDECIDED
    }
    missing = (pair for pair in wanted if pair not in grades)
    progress(len(grades))
    while batch := list(islice(missing, _BATCH)):
        done = len(grades)
        fresh = judge.grade_all(batch, lambda count, done=done: progress(done + count))  # type: ignore[misc]
        store.add(judge.version, zip(batch, fresh, strict=True))
        grades.update(zip(batch, fresh, strict=True))
    return [grades[pair] for pair in pairs]
