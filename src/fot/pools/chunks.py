"""Scanning a pool chunk by chunk, and joining the chunks: resumable, in bounded memory, by any number of workers.

A chunk is a fixed number of row groups. What was found in it is kept until all chunks are there; then they are streamed
into one set of arrays. A scan that was killed goes on with the chunks that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

import fot.pools.scan as scanning
from fot.pools.derived import drop_derived, keep_derived, load_derived, write_array, write_fields
from fot.pools.read import Pool
from fot.pools.scan import Commitments, Markers
from fot.pools.shard import WHOLE, Shard

__all__ = ["CHUNK_GROUPS", "Search", "join", "scan_chunks"]

CHUNK_GROUPS = 16

T = TypeVar("T", Markers, Commitments)


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for, and the names under which it is kept; what is None is there already."""

    markers: tuple[str, ...]
    markers_name: str | None
    detector: str | None
    commitments_name: str | None

    @property
    def is_open(self) -> bool:
        """Is there anything to look for?"""
        return bool(self.markers_name or self.commitments_name)


@dataclass(frozen=True, slots=True)
class Chunks:
    """What was found, chunk by chunk; empty where nothing was looked for."""

    markers: list[Markers]
    commitments: list[Commitments]


def scan_chunks(
    pool: Pool, search: Search, shard: Shard = WHOLE, progress: Callable[[int], None] = lambda _: None
) -> Chunks:
    """The shard's chunks, those that are missing scanned now; `progress` is told the characters done."""
    chunks = Chunks([], [])
    for number, first in enumerate(range(0, pool.row_groups, CHUNK_GROUPS)):
        if not shard.owns(number):
            continue
        groups = range(first, min(first + CHUNK_GROUPS, pool.row_groups))
        markers = _kept(pool, search.markers_name, number, Markers)
        commitments = _kept(pool, search.commitments_name, number, Commitments)
        lacking = Search(
            search.markers if search.markers_name and markers is None else (),
            search.markers_name,
            search.detector if search.commitments_name and commitments is None else None,
            search.commitments_name,
        )
        if lacking.markers or lacking.detector:
            found = scanning.scan(pool, lacking.markers, lacking.detector, groups, progress)
            markers = _keep(pool, search.markers_name, number, Markers, found.markers) or markers
            commitments = _keep(pool, search.commitments_name, number, Commitments, found.commitments) or commitments
        progress(int(pool.n_chars[: pool.group_starts[groups.stop]].sum()))
        chunks.markers.extend([markers] if markers else [])
        chunks.commitments.extend([commitments] if commitments else [])
    return chunks


def join(pool: Pool, search: Search, chunks: Chunks) -> tuple[Markers | None, Commitments | None]:
    """All chunks as one, kept in their place."""
    markers = commitments = None
    if search.markers_name:
        markers = keep_derived(pool, search.markers_name, Markers, partial(_join_markers, chunks.markers))
        drop_derived(pool, f"{search.markers_name}.chunk-*")
    if search.commitments_name:
        join_them = partial(_join_commitments, chunks.commitments)
        commitments = keep_derived(pool, search.commitments_name, Commitments, join_them)
        drop_derived(pool, f"{search.commitments_name}.chunk-*")
    return markers, commitments


def _kept(pool: Pool, name: str | None, number: int, kind: type[T]) -> T | None:
    return load_derived(pool, f"{name}.chunk-{number:05d}", kind) if name else None


def _keep(pool: Pool, name: str | None, number: int, kind: type[T], found: T | None) -> T | None:
    if name is None or found is None:
        return None
    return keep_derived(pool, f"{name}.chunk-{number:05d}", kind, partial(write_fields, found))


def _join_markers(chunks: Sequence[Markers], folder: Path) -> None:
    write_fields(Markers(np.empty(0, np.int64), np.empty(0, np.int32)), folder)
    _write(folder / "ends.npy", np.int64, [chunk.ends for chunk in chunks])
    _write(folder / "which.npy", np.int32, [chunk.which for chunk in chunks])


def _join_commitments(chunks: Sequence[Commitments], folder: Path) -> None:
    texts: dict[str, int] = {}
    keys: dict[str, int] = {}
    written: list[NDArray[np.int64]] = []
    answers: list[NDArray[np.int64]] = []
    for chunk in chunks:
        as_text = [texts.setdefault(text, len(texts)) for text in chunk.texts]
        as_key = [keys.setdefault(key, len(keys)) for key in chunk.keys]
        written.append(np.array([*as_text, -1], np.int64)[chunk.written])
        answers.append(np.array([*as_key, -1], np.int64)[chunk.answers])
    nothing = np.empty(0, np.int64)
    write_fields(Commitments(nothing, nothing, nothing, nothing, tuple(keys), tuple(texts)), folder)
    _write(folder / "rows.npy", np.int64, [chunk.rows for chunk in chunks])
    _write(folder / "ends.npy", np.int64, [chunk.ends for chunk in chunks])
    _write(folder / "answers.npy", np.int64, answers)
    _write(folder / "written.npy", np.int64, written)


def _write(path: Path, kind: type[np.generic], arrays: Sequence[NDArray[np.generic]]) -> None:
    write_array(path, kind, sum(map(len, arrays)), arrays)
