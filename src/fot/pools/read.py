"""`Pool`: what is in a pool, problem by problem, with texts read only when they are asked for.

    pool = Pool.open("gpqa")                   # a pool, or directly a file of rows
    chosen = pool.select(30)                   # the first 30 unbiased rows of each problem that has as many
    for part in chosen.parts:                  # part.problem, part.rows (positions in the pool, by rollout_id)
        texts = pool.texts(part.rows)

Rows are addressed by their position in the pool, everywhere: in the arrays here and in those of the index.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fot.core.rollout import Cut, ProblemKey, Rollout
from fot.errors import ConfigError, PoolCorrupt, PoolError
from fot.pools.importing import import_rows
from fot.pools.schema import COLUMNS, POOL_SCHEMA, Manifest, is_pool, read_manifest
from fot.pools.wholeness import cache_folder, check_rows

__all__ = ["Part", "Pool", "Problem", "Rows", "Selection"]

Rows = NDArray[np.int64]
"""Positions of rows in their pool."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem; its rows are the positions `first` to `first + count`, sorted by `rollout_id`."""

    model: str
    benchmark: str
    problem_id: str
    problem: str | None
    gold: str | None
    first: int
    count: int

    @property
    def key(self) -> ProblemKey:
        """Model, benchmark and id: what makes it one problem."""
        return (self.model, self.benchmark, self.problem_id)


@dataclass(frozen=True, slots=True)
class Part:
    """The chosen rows of one problem, sorted by `rollout_id`."""

    problem: Problem
    rows: Rows


@dataclass(frozen=True, slots=True)
class Selection:
    """What `Pool.select` chose. `left_out` are the problems with fewer than `k` rows."""

    parts: tuple[Part, ...]
    left_out: tuple[Problem, ...]
    k: int | None

    @property
    def rows(self) -> Rows:
        """All chosen rows, problem after problem."""
        return np.concatenate([part.rows for part in self.parts] or [np.empty(0, np.int64)])


class Pool:
    """A finished pool, opened for reading. The attributes are arrays over all its rows."""

    def __init__(self, path: Path) -> None:
        """Open the pool directory `path`; `PoolError` when it is none or cannot be read."""
        self.path = path
        self.manifest: Manifest = read_manifest(path)
        check_rows(path, self.manifest)
        table = self._read(["model", "benchmark", "problem_id", "rollout_id", "n_tokens", "unbiased", "n_chars", "cut"])
        if len(table) != self.manifest.rollouts:
            raise PoolCorrupt(f"{path} does not hold the rows that its manifest counts", "import the pool again")
        self.rollout_id: NDArray[np.int64] = table["rollout_id"].to_numpy()
        self.n_chars: NDArray[np.int64] = table["n_chars"].to_numpy()
        self.n_tokens: NDArray[np.int64] = table["n_tokens"].fill_null(-1).to_numpy()
        """-1 where unknown."""
        self.unbiased: NDArray[np.bool_] = table["unbiased"].to_numpy()
        self.cuts: NDArray[np.object_] = _plain(table["cut"]).to_numpy(zero_copy_only=False)
        """Per row: how its prefixes are found."""
        self._keys = table.select(["model", "benchmark", "problem_id"])

    @classmethod
    def open(cls, path: str | Path, progress: Callable[[int], None] = lambda _: None) -> Pool:
        """A pool directory, or a file of rows, which is imported into the cache once for its content.

        `progress` is told the bytes imported. A file with bad rows opens without them; `manifest.rejected` counts them.
        """
        path = Path(path)
        if not path.exists():
            raise PoolError(f"{path} does not exist", "name a pool made by fot pool import, or a file of rows")
        return cls(path if path.is_dir() else _imported(path, progress))

    @property
    def name(self) -> str:
        """What the pool is called in results."""
        return self.manifest.name

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, in first-seen order."""
        codes = np.zeros(len(self._keys), np.int64)
        for column in self._keys.columns:
            encoded = column.unify_dictionaries().combine_chunks()
            codes = codes * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
        starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
        ends = [*starts[1:], len(codes)]
        keys = self._keys.take(starts).to_pylist()
        said = {name: self._first_said(name, starts, ends) for name in ("problem", "gold")}
        return tuple(
            Problem(**key, problem=said["problem"][at], gold=said["gold"][at], first=first, count=end - first)
            for at, (key, first, end) in enumerate(zip(keys, starts, ends, strict=True))
        )

    def _first_said(self, name: str, starts: Sequence[int], ends: Sequence[int]) -> list[str | None]:
        """Per problem, the first value of a column that is not null."""
        column = self._read([name])[name].unify_dictionaries().combine_chunks()
        valid = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        nearest = np.searchsorted(valid, starts)
        rows = [int(valid[at]) if at < len(valid) else None for at in nearest]
        return [
            column[row].as_py() if row is not None and row < end else None for row, end in zip(rows, ends, strict=True)
        ]

    def select(
        self,
        k: int | None = None,
        *,
        include_biased: bool = False,
        models: Collection[str] | None = None,
        benchmarks: Collection[str] | None = None,
    ) -> Selection:
        """The first `k` rows of each problem (all of them without `k`); problems with fewer are left out.

        Rows that are not `unbiased` do not count unless `include_biased`. Problems without any row left are left out.
        """
        if k is not None and k < 1:
            raise ConfigError(f"k is {k}, and must be at least 1 rollout")
        parts: list[Part] = []
        left_out: list[Problem] = []
        for problem in self.problems:
            if (models and problem.model not in models) or (benchmarks and problem.benchmark not in benchmarks):
                continue
            rows = np.arange(problem.first, problem.first + problem.count)
            rows = rows if include_biased else rows[self.unbiased[rows]]
            if len(rows) < (k or 1):
                left_out.append(problem)
            else:
                parts.append(Part(problem, rows[:k]))
        return Selection(tuple(parts), tuple(left_out), k)

    def cut(self, rows: Rows | None = None) -> Cut:
        """How prefixes of these rows (all of them by default) are found; of several ways, the least exact."""
        ways = Counter(self.cuts if rows is None else self.cuts[rows])
        order: tuple[Cut, ...] = ("estimated", "interpolated", "exact")
        return next((way for way in order if ways[way]), "exact")

    def column(self, name: str, rows: Rows) -> pa.ChunkedArray:
        """One column at these rows, in their order; only the row groups that hold them are read."""
        return self._at([name], rows)[name]

    def texts(self, rows: Rows) -> list[str]:
        """The texts of these rows, in their order."""
        texts: list[str] = self.column("text", rows).to_pylist()
        return texts

    def rollouts(self, rows: Rows) -> list[Rollout]:
        """These rows with everything that is known about them, in their order."""
        records = self._at([name for name in COLUMNS.names if name not in ("n_chars", "cut")], rows)
        return [_rollout(record) for record in records.to_pylist()]

    def __iter__(self) -> Iterator[Rollout]:
        """Every rollout, in order; one row group is held at a time."""
        for group in range(self.row_groups):
            first, last = self.group_starts[group : group + 2]
            yield from self.rollouts(np.arange(first, last))

    @property
    def row_groups(self) -> int:
        """Into how many row groups the rows of all parts are divided."""
        return len(self._groups)

    @cached_property
    def _groups(self) -> list[tuple[int, int]]:
        """Where each row group is: its part, and its number there."""
        return [(part, group) for part, file in enumerate(self._files) for group in range(file.metadata.num_row_groups)]

    @cached_property
    def group_starts(self) -> list[int]:
        """The first row of each row group, and after them the number of rows."""
        sizes = [self._files[part].metadata.row_group(group).num_rows for part, group in self._groups]
        return [0, *np.cumsum(sizes, dtype=np.int64).tolist()]

    def group(self, group: int, column: str) -> pa.Array:
        """One column of one row group; safe to call from several threads at once."""
        try:
            part, own = self._groups[group]
            with self._opened(part, self._files[part].metadata) as file:
                read = file.read_row_group(own, [column], use_threads=False)[column]
                return read.chunk(0) if read.num_chunks == 1 else pa.concat_arrays(read.chunks)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from None

    @property
    def rows_paths(self) -> list[Path]:
        """The Parquet files with the rows, in order."""
        return [self.path / part.file for part in self.manifest.parts]

    @cached_property
    def _files(self) -> list[pq.ParquetFile]:
        try:
            return [self._opened(part) for part in range(len(self.manifest.parts))]
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from None

    def _opened(self, part: int, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
        return pq.ParquetFile(self.rows_paths[part], metadata=metadata, page_checksum_verification=True)

    def _read(self, columns: list[str], groups: Sequence[int] | None = None) -> pa.Table:
        """Columns of these row groups (all by default), in order."""
        try:
            wanted = self._groups if groups is None else [self._groups[group] for group in groups]
            tables = [
                self._files[part].read_row_groups([group for _, group in own], columns)
                for part, own in groupby(wanted, key=itemgetter(0))
            ]
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from None
        return pa.concat_tables(tables) if tables else COLUMNS.empty_table().select(columns)

    def _at(self, columns: list[str], rows: Rows) -> pa.Table:
        groups = sorted({bisect_right(self.group_starts, int(row)) - 1 for row in rows})
        if not groups:
            return COLUMNS.empty_table().select(columns)
        sizes = [self.group_starts[group + 1] - self.group_starts[group] for group in groups]
        shift = np.array([self.group_starts[group] for group in groups]) - np.cumsum([0, *sizes[:-1]])
        which = np.searchsorted([self.group_starts[group] for group in groups], rows, side="right") - 1
        return self._read(columns, groups).take(rows - shift[which])

    def _damaged(self, error: Exception) -> PoolCorrupt:
        return PoolCorrupt(
            f"rows of {self.path} cannot be read: {error}",
            "it was damaged, or replaced while it was read: run again, or import the pool again",
        )


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(column, pa.string())


def _rollout(record: dict[str, object]) -> Rollout:
    extra = record.pop("extra")
    return Rollout(**record, extra=msgspec.json.decode(str(extra)) if extra else {})  # type: ignore[arg-type]


def _imported(path: Path, progress: Callable[[int], None]) -> Path:
    """The pool of a file of rows, in the cache under the digest of the file's content."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise PoolError(f"cannot read {path}: {error.strerror or error}") from None
    pool = cache_folder("pools") / f"{digest[:32]}-{POOL_SCHEMA.rpartition('/')[2]}"
    if not is_pool(pool):
        import_rows([path], pool, name=path.name.split(".")[0], progress=progress)
    return pool
