"""One pass over the texts of a pool: where markers end, and when each rollout commits to which answer.

Row groups are taken by several threads. The search runs outside the interpreter's lock; Python sees only what follows
the first place at which a detector could find anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fot.core.answers import answer_key
from fot.core.commit import commitments
from fot.pools.matching import Matches, Texts
from fot.pools.read import Pool

__all__ = ["Commitments", "Markers", "Scanned", "scan"]

Ints = NDArray[np.int64]

# Before the first of these a detector does nothing: it may begin to read there. A detector that is not named here is
# given whole texts. (`boxed` listens to the end of the reasoning as well: echoes of the prompt end there.)
_BEGINNINGS = {
    "boxed": ("\\boxed{", "</think>"),
    "choice": ("</think>",),
    "code": ("</think>",),
}


@dataclass(frozen=True, slots=True)
class Markers:
    """Every marker in every text, by rising end. Ends count characters as if all texts were joined."""

    ends: Ints
    which: NDArray[np.int32]
    """Index of the marker in its kernel."""


@dataclass(frozen=True, slots=True)
class Commitments:
    """Every change of a committed answer, by rising end. Ends count characters as if all texts were joined."""

    rows: Ints
    ends: Ints
    answers: Ints
    """Number of the vote key in `keys`; -1 where an answer is withdrawn."""
    written: Ints
    """Number of the answer as written in `texts`; -1 likewise."""
    keys: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scanned:
    """What one pass found; None for what was not asked for."""

    markers: Markers | None
    commitments: Commitments | None


class _Step(NamedTuple):
    row: int
    end: int
    answer: str | None


class _Found(NamedTuple):
    """What one row group holds; ends still count from its own start."""

    ends: Ints
    which: NDArray[np.int32]
    steps: list[_Step]


def scan(
    pool: Pool,
    markers: tuple[str, ...],
    detector: str | None,
    progress: Callable[[int], None] = lambda _: None,
) -> Scanned:
    """Find `markers` (none: an empty tuple) and what `detector` sees. `progress` is told the characters done."""
    bases = np.concatenate([[0], np.cumsum(pool.n_chars)])[pool.group_starts]
    prompts = [problem.problem for problem in pool.problems for _ in range(problem.count)] if detector else []
    found: list[_Found] = []
    threads = min(_cores(), pool.row_groups) or 1
    with ThreadPoolExecutor(threads, thread_name_prefix="pool-scan") as executor:
        tasks = executor.map(lambda group: _scan_group(pool, group, markers, detector, prompts), range(pool.row_groups))
        for group, one in enumerate(tasks):
            found.append(one)
            progress(int(bases[group + 1]))
    return Scanned(
        _joined_markers(found, bases) if markers else None,
        _joined_commitments(found, bases) if detector else None,
    )


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _scan_group(
    pool: Pool, group: int, markers: tuple[str, ...], detector: str | None, prompts: Sequence[str | None]
) -> _Found:
    texts = Texts(pool.group(group, "text"))
    beginnings = _BEGINNINGS.get(detector, ()) if detector else ()
    matches = texts.find(tuple(dict.fromkeys((*markers, *beginnings))))
    steps: list[_Step] = []
    if detector:
        starts = _starts(texts, matches, markers, beginnings) if beginnings else texts.whole()
        steps = list(_steps(texts, starts, detector, prompts, pool.group_starts[group]))
    ours = matches.which < len(markers)
    return _Found(matches.end_chars[ours], matches.which[ours], steps)


def _starts(
    texts: Texts, matches: Matches, markers: tuple[str, ...], beginnings: tuple[str, ...]
) -> Iterator[tuple[int, int]]:
    """Each text in which a beginning stands, with the byte of the first."""
    names = tuple(dict.fromkeys((*markers, *beginnings)))
    wanted = np.isin(matches.which, [names.index(beginning) for beginning in beginnings])
    at = np.sort(matches.start_bytes[wanted])
    which, first = np.unique(np.searchsorted(texts.bounds, at, side="right") - 1, return_index=True)
    yield from zip(which.tolist(), at[first].tolist(), strict=True)


def _steps(
    texts: Texts,
    starts: Iterator[tuple[int, int]],
    detector: str,
    prompts: Sequence[str | None],
    first_row: int,
) -> Iterator[_Step]:
    where = list(starts)
    before = texts.chars(np.array([start for _, start in where], np.int64)).tolist()
    for (which, start), chars in zip(where, before, strict=True):
        text = texts.decoded(start, int(texts.bounds[which + 1]))
        row = first_row + which
        for end, answer in commitments(text, detector, prompts[row]):
            yield _Step(row, chars + end, answer)


def _joined_markers(found: Sequence[_Found], bases: Ints) -> Markers:
    ends = [part.ends + base for part, base in zip(found, bases, strict=False)]
    which = [part.which for part in found]
    return Markers(np.concatenate([*ends, np.empty(0, np.int64)]), np.concatenate([*which, np.empty(0, np.int32)]))


def _joined_commitments(found: Sequence[_Found], bases: Ints) -> Commitments:
    steps = list(chain.from_iterable(part.steps for part in found))
    shifts = np.repeat(bases[:-1], [len(part.steps) for part in found])
    texts: dict[str, int] = {}
    keys: dict[str, int] = {}
    key_of: list[int] = []
    for step in steps:
        if step.answer is not None and step.answer not in texts:
            texts[step.answer] = len(texts)
            key_of.append(keys.setdefault(answer_key(step.answer), len(keys)))
    written = np.array([-1 if step.answer is None else texts[step.answer] for step in steps], np.int64)
    return Commitments(
        rows=np.array([step.row for step in steps], np.int64),
        ends=np.array([step.end for step in steps], np.int64) + shifts,
        answers=np.where(written < 0, -1, np.array([*key_of, -1], np.int64)[written]),
        written=written,
        keys=tuple(keys),
        texts=tuple(texts),
    )
