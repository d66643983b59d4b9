"""One pass over texts of a pool: where markers end, and when each rollout commits to which answer.

A span of row groups at a time; they are taken by several threads. The search runs outside the interpreter's lock;
Python sees only what follows the first place at which a detector could find anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fot.core.answers import answer_key
from fot.core.commit import commitments
from fot.pools.cores import cores, memory_bytes
from fot.pools.matching import Matches, Texts
from fot.pools.read import Pool

__all__ = ["Commitments", "Markers", "Scanned", "scan"]

Ints = NDArray[np.int64]

_REASONING_END = "</think>"
_GROUP_BYTES = 64 << 20
"""What a thread needs for a row group: its text, what is found in it, and the same again while it is sorted."""

# Before the first of these a detector finds nothing, and remembers only whether the reasoning has ended (from where on
# an echo of the prompt is an answer): it may begin to read there. A detector not named here is given whole texts.
_BEGINNINGS = {"boxed": "\\boxed{", "choice": _REASONING_END, "code": _REASONING_END}

# Behind its beginning a detector finds nothing before the first of these, in ASCII letters of any case, and remembers
# nothing of what is between: most of what follows the reasoning need not be seen either.
_SIGNS = {"choice": (b"answer", b"\\boxed{")}


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
    groups: range,
    progress: Callable[[int], None] = lambda _: None,
) -> Scanned:
    """Find `markers` (none: an empty tuple) and what `detector` sees in the row groups `groups`.

    Rows and ends count from the start of the pool. `progress` is told the characters done, those before the span too.
    """
    first, last = pool.group_starts[groups.start], pool.group_starts[groups.stop]
    before = int(pool.n_chars[:first].sum())
    bases = (
        before
        + np.concatenate([[0], np.cumsum(pool.n_chars[first:last])])[
            np.array(pool.group_starts[groups.start : groups.stop + 1], np.int64) - first
        ]
    )
    prompts = _prompts(pool, first, last) if detector else []
    found: list[_Found] = []
    threads = max(1, min(cores(), len(groups), memory_bytes() // _GROUP_BYTES))
    with ThreadPoolExecutor(threads, thread_name_prefix="pool-scan") as executor:
        tasks = executor.map(lambda group: _scan_group(pool, group, markers, detector, prompts, first), groups)
        for at, one in enumerate(tasks):
            found.append(one)
            progress(int(bases[at + 1]))
    return Scanned(
        _joined_markers(found, bases) if markers else None,
        _joined_commitments(found, bases) if detector else None,
    )


def _prompts(pool: Pool, first: int, last: int) -> list[str | None]:
    """The question of each of these rows."""
    firsts = [problem.first for problem in pool.problems]
    which = np.searchsorted(firsts, np.arange(first, last), side="right") - 1
    return [pool.problems[at].problem for at in which.tolist()]


def _scan_group(
    pool: Pool, group: int, markers: tuple[str, ...], detector: str | None, prompts: Sequence[str | None], first: int
) -> _Found:
    texts = Texts(pool.group(group, "text"))
    beginning = _BEGINNINGS.get(detector) if detector else None
    strings = tuple(dict.fromkeys((*markers, *((beginning, _REASONING_END) if beginning else ()))))
    matches = texts.find(strings)
    steps: list[_Step] = []
    if detector:
        starts, ended = texts.bounds[:-1], texts.bounds[1:]
        if beginning:
            starts = _first(texts, matches, strings.index(beginning))
            ended = _first(texts, matches, strings.index(_REASONING_END))
        own = prompts[pool.group_starts[group] - first :]
        steps = list(_steps(texts, starts, ended, detector, own, pool.group_starts[group]))
    ours = matches.which < len(markers)
    return _Found(matches.end_chars[ours], matches.which[ours], steps)


def _first(texts: Texts, matches: Matches, string: int) -> Ints:
    """For each text the byte at which a string first starts; where it does not, the end of the text."""
    at = matches.start_bytes[matches.which == string]
    following: Ints = np.concatenate([at, texts.bounds[-1:]])[np.searchsorted(at, texts.bounds[:-1])]
    return np.minimum(following, texts.bounds[1:])


def _steps(
    texts: Texts, starts: Ints, ended: Ints, detector: str, prompts: Sequence[str | None], first_row: int
) -> Iterator[_Step]:
    """The commitments of each text, read from its place in `starts`; its reasoning ends at its place in `ended`."""
    opening = _BEGINNINGS[detector] if detector in _SIGNS else ""
    if opening:
        starts = texts.first(starts + len(opening), _SIGNS[detector])
    where = np.flatnonzero(starts < texts.bounds[1:])
    chars = texts.chars(starts[where]) - len(opening)
    places = (where, starts[where], texts.bounds[where + 1], chars, ended[where] < starts[where])
    for which, start, end, before, has_ended in zip(*(place.tolist() for place in places), strict=True):
        prompt = None if has_ended else prompts[which]
        for step in commitments(opening + texts.decoded(start, end), detector, prompt):
            yield _Step(first_row + which, before + step.end, step.answer)


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
