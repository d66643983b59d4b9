"""Writing rows in the order of a pool, whatever the order in which they come, in bounded memory.

Rows are collected up to a size, sorted and appended to a *run*: a sorted Parquet file. A chunk that does not follow the
one before begins another run. Runs that follow each other are the rows files; others are merged into one. With a
journal a run is also ended at a size, and named there once it is on disk.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from fot.core.rollout import ProblemKey
from fot.pools.rows import Row
from fot.pools.schema import COLUMNS

__all__ = ["GROUP_CHARS", "Journal", "RowsWriter", "Run"]

GROUP_CHARS = 8 * 2**20
"""Characters of text in a row group: what is read to see one text, and what the index takes at a time."""

_CHUNK_GROUPS = 4
_RUN_CHUNKS = 16
_GROUP_ROWS = 8192
_MERGE_ROWS = 16
_Position = tuple[int, int]  # (problem, rollout_id): the order of a pool


class Run(msgspec.Struct, frozen=True):
    """A complete sorted file, and where its first and its last row belong."""

    file: str
    first: _Position
    last: _Position


class Journal(Protocol):
    """Remembers complete runs, so that a writer that was killed goes on after them."""

    @property
    def runs(self) -> Sequence[Run]:
        """Those that are there already."""

    def mark(self) -> Callable[[Run], None]:
        """Call the result with the run that holds the last of the rows added up to now, once it is on disk."""


class RowsWriter:
    """Takes rows in any order; `finish` leaves files that, one after the other, have the order of a pool.

    They are written by a thread of its own, at most one chunk behind: its errors come out of the next call.
    """

    def __init__(self, folder: Path, journal: Journal | None = None) -> None:
        self._folder = folder
        self._journal = journal
        self._chunk: list[tuple[_Position, Row]] = []
        self._chars = 0
        self._runs: list[Run] = list(journal.runs) if journal else []
        self._run: pq.ParquetWriter | None = None
        self._run_chunks = 0
        self._first: _Position = (-1, -1)
        self._last: _Position = (-1, -1)
        self._written: Callable[[Run], None] = _untold
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pool-writer")
        self._writing: Future[None] | None = None

    def __enter__(self) -> RowsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()
        if self._run is not None:
            self._run.close()

    def add(self, problem: int, row: Row) -> None:
        """Take one row of the problem with this place in the order of problems."""
        self._chunk.append(((problem, row.fields.rollout_id), row))
        self._chars += len(row.fields.text)
        if self._chars >= _CHUNK_GROUPS * GROUP_CHARS or len(self._chunk) >= _CHUNK_GROUPS * _GROUP_ROWS:
            self._hand_over()

    def finish(self, order: Callable[[ProblemKey], int]) -> list[Path]:
        """Write what is left; `order` gives a problem its place. Returns the rows files, in order."""
        self._hand_over()
        self._wait()
        self._end_run()
        paths = [self._folder / run.file for run in self._runs]
        if all(one.last < other.first for one, other in pairwise(self._runs)):
            return paths
        merged = self._folder / "merged.parquet"
        tables = heapq.merge(*(_positions(path, order) for path in paths), key=itemgetter(0))
        with _open(merged) as writer:
            for group in _grouped((table for _, table in tables)):
                writer.write_table(group)
        return [merged]

    def _hand_over(self) -> None:
        chunk, self._chunk, self._chars = self._chunk, [], 0
        written = self._journal.mark() if self._journal else _untold
        self._wait()
        if chunk:
            self._writing = self._thread.submit(self._write, chunk, written)

    def _wait(self) -> None:
        if self._writing is not None:
            self._writing.result()

    def _write(self, chunk: list[tuple[_Position, Row]], written: Callable[[Run], None]) -> None:
        chunk.sort(key=itemgetter(0))
        full = self._journal is not None and self._run_chunks >= _RUN_CHUNKS
        if full or chunk[0][0] < self._last:
            self._end_run()
        if self._run is None:
            self._run = _open(self._folder / f"run-{len(self._runs)}.parquet")
            self._run_chunks, self._first = 0, chunk[0][0]
        for group in _groups(row for _, row in chunk):
            self._run.write_table(_table(group))
        self._run_chunks += 1
        self._last, self._written = chunk[-1][0], written

    def _end_run(self) -> None:
        """Close the run that is being written, and tell the journal once it is on disk."""
        if self._run is None:
            return
        self._run.close()
        self._run = None
        run = Run(f"run-{len(self._runs)}.parquet", self._first, self._last)
        with (self._folder / run.file).open("rb") as file:
            os.fsync(file.fileno())
        self._runs.append(run)
        self._written(run)


def _untold(run: Run) -> None:
    """Where there is no journal."""


def _open(path: Path) -> pq.ParquetWriter:
    names = [field.name for field in COLUMNS if pa.types.is_dictionary(field.type)]
    return pq.ParquetWriter(
        path,
        COLUMNS,
        compression="zstd",
        use_dictionary=names,
        write_statistics=["rollout_id", "n_tokens", "n_chars"],
        column_encoding={"token_ends.list.element": "DELTA_BINARY_PACKED"},
        write_page_checksum=True,
    )


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows by the row group: up to so many characters, but at least one row."""
    group: list[Row] = []
    chars = 0
    for row in rows:
        if group and (chars + len(row.fields.text) > GROUP_CHARS or len(group) >= _GROUP_ROWS):
            yield group
            group, chars = [], 0
        group.append(row)
        chars += len(row.fields.text)
    if group:
        yield group


def _table(rows: list[Row]) -> pa.Table:
    columns: dict[str, list[Any]] = {
        name: [getattr(row.fields, name) for row in rows]
        for name in (*COLUMNS.names[:7], "finish_reason", "seed", "prompt_tokens", "source")
    }
    columns["n_tokens"] = [row.n_tokens for row in rows]
    columns["token_ends"] = [row.token_ends for row in rows]
    columns["unbiased"] = [row.fields.unbiased is not False for row in rows]
    columns["extra"] = [row.extra for row in rows]
    columns["n_chars"] = [len(row.fields.text) for row in rows]
    columns["cut"] = [row.cut for row in rows]
    return pa.table({field.name: _array(columns[field.name], field.type) for field in COLUMNS}, schema=COLUMNS)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    return pa.array(values, kind)


def _positions(run: Path, order: Callable[[ProblemKey], int]) -> Iterator[tuple[_Position, pa.Table]]:
    """The rows of one run, each a table of its own, with their places."""
    with pq.ParquetFile(run, pre_buffer=False) as file:
        for batch in file.iter_batches(_MERGE_ROWS, use_threads=False):
            keys = batch.select(["model", "benchmark", "problem_id", "rollout_id"]).to_pylist()
            for at, key in enumerate(keys):
                place = order((key["model"], key["benchmark"], key["problem_id"]))
                yield (place, key["rollout_id"]), pa.Table.from_batches([batch.slice(at, 1)], COLUMNS)


def _grouped(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """One-row tables by the row group."""
    group: list[pa.Table] = []
    chars = 0
    for row in rows:
        length = row["n_chars"][0].as_py()
        if group and (chars + length > GROUP_CHARS or len(group) >= _GROUP_ROWS):
            yield pa.concat_tables(group).unify_dictionaries().combine_chunks()
            group, chars = [], 0
        group.append(row)
        chars += length
    if group:
        yield pa.concat_tables(group).unify_dictionaries().combine_chunks()
