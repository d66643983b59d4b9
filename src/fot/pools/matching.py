"""Finding many strings in many texts in one pass, at the speed of the column engine.

The engine searches for the leftmost matches that do not overlap, which its vector instructions do several times faster
than a search for all matches. Nothing is lost: a match that it passes over starts inside one that it reports, so
knowing how the strings can overlap (for most kernels: hardly) says where to look. The rest is whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Matches", "Texts"]

_Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Matches:
    """Every match of a tuple of strings in `Texts`, by rising end. Positions count as if the texts were joined."""

    which: NDArray[np.int32]
    """Index of the string."""
    start_bytes: _Positions
    end_chars: _Positions


class Texts:
    """A column of texts, seen as one run of UTF-8 bytes."""

    def __init__(self, column: pa.LargeStringArray) -> None:
        """Look at `column` without copying it."""
        self._column = column
        _, offsets, data = column.buffers()
        bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        self._view = memoryview(data or b"")[int(bounds[0]) : int(bounds[-1])]
        self._bytes = np.frombuffer(self._view, np.uint8)
        self.bounds: _Positions = bounds - bounds[0]
        """The byte at which each text starts, and at which the last one ends."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def decoded(self, start: int, end: int) -> str:
        """The characters between two byte positions."""
        return str(self._view[start:end], "utf-8")

    def first(self, starts: _Positions, strings: Sequence[bytes]) -> _Positions:
        """For each text the byte, not before its place in `starts`, at which one of `strings` first starts.

        Where there is none, the end of the text. The strings are in small letters and stand for ASCII of any case.
        """
        found = self.bounds[1:].copy()
        for at in np.flatnonzero(starts < found).tolist():
            text = bytes(self._view[starts[at] : found[at]]).lower()
            places = [place for place in map(text.find, strings) if place >= 0]
            if places:
                found[at] = starts[at] + min(places)
        return found

    def chars(self, positions: _Positions) -> _Positions:
        """Characters before each of these byte positions."""
        return positions - np.searchsorted(self._continuations, positions)

    @cached_property
    def _continuations(self) -> _Positions:
        """Where the bytes are that start no character."""
        return np.flatnonzero(self._bytes.view(np.int8) < -64)

    def find(self, strings: tuple[str, ...]) -> Matches:
        """Where each of `strings` stands: none overlaps itself, different ones do overlap."""
        if not strings:
            nothing = np.empty(0, np.int64)
            return Matches(nothing.astype(np.int32), nothing, nothing)
        encoded = tuple(string.encode() for string in strings)
        which, starts, limits = self._leftmost(encoded)
        found = [(which, starts)]
        for inner, outer, shift in _overlaps(encoded):
            of_outer = np.flatnonzero(which == outer)
            at = self._standing(starts[of_outer] + shift, limits[of_outer], encoded[inner])
            at = starts[of_outer[at]] + shift
            found.append((np.full(len(at), inner, np.int32), at))
        return self._ordered(found, encoded)

    def _leftmost(self, strings: tuple[bytes, ...]) -> tuple[NDArray[np.int32], _Positions, _Positions]:
        """Matches from the left, each beginning where the one before has ended or later, the longest at its place.

        Returns which string, where it starts, and where the text ends in which it stands.
        """
        longest_first = sorted((string.decode() for string in strings), key=lambda one: -len(one.encode()))
        texts: pl.Series = pl.from_arrow(self._column)  # type: ignore[assignment]
        found = texts.str.find_many(longest_first, leftmost=True).to_arrow()
        counts = np.diff(found.offsets.to_numpy())
        starts = found.flatten().to_numpy() + np.repeat(self.bounds[:-1], counts)
        limits = np.repeat(self.bounds[1:], counts)
        which = np.empty(len(starts), np.int32)
        initial = self._bytes[starts]
        for byte, candidates in _by_initial(strings):
            rest = np.flatnonzero(initial == byte)
            for string in candidates[:-1]:
                hits = self._standing(starts[rest], limits[rest], strings[string])
                which[rest[hits]] = string
                rest = np.delete(rest, hits)
            which[rest] = candidates[-1]
        return which, starts, limits

    def _standing(self, starts: _Positions, limits: _Positions, string: bytes) -> _Positions:
        """Those of `starts`, by index, at which `string` stands and ends within its text."""
        left = np.flatnonzero(starts + len(string) <= limits)
        for at in range(len(string) - 1, -1, -1):  # from the end: that is where strings with one beginning differ
            left = left[self._bytes[starts[left] + at] == string[at]]
        return left

    def _ordered(self, found: list[tuple[NDArray[np.int32], _Positions]], strings: tuple[bytes, ...]) -> Matches:
        which = np.concatenate([part for part, _ in found])
        starts = np.concatenate([part for _, part in found])
        ends = starts + np.array([len(string) for string in strings])[which]
        order = np.argsort(ends, kind="stable")
        which, starts, ends = which[order], starts[order], ends[order]
        for string in range(len(strings)):
            if any(inner == string == outer for inner, outer, _ in _overlaps(strings)):
                keep = _greedy(which == string, starts, len(strings[string]))
                which, starts, ends = which[keep], starts[keep], ends[keep]
        return Matches(which, starts, self.chars(ends))


@lru_cache(maxsize=64)
def _overlaps(strings: tuple[bytes, ...]) -> tuple[tuple[int, int, int], ...]:
    """How strings can overlap: (inner, outer, shift) where inner may start `shift` bytes after outer, inside it."""
    return tuple(
        (inner, outer, shift)
        for outer, around in enumerate(strings)
        for inner, string in enumerate(strings)
        for shift in range(len(around))
        if (inner != outer or shift) and _agree(string, around[shift:])
    )


def _agree(one: bytes, other: bytes) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


@lru_cache(maxsize=64)
def _by_initial(strings: tuple[bytes, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The strings by their first byte, longest first: a leftmost match is the first of them that stands there."""
    return tuple(_initials(strings))


def _initials(strings: tuple[bytes, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    order = sorted(range(len(strings)), key=lambda one: (strings[one][0], -len(strings[one])))
    for byte, group in groupby(order, key=lambda one: strings[one][0]):
        yield byte, tuple(group)


def _greedy(candidates: NDArray[np.bool_], starts: _Positions, length: int) -> NDArray[np.bool_]:
    """Which matches to keep: of one string's, those that a search from the left finds; all others."""
    keep = np.ones(len(starts), np.bool_)
    free = -1
    for at in np.flatnonzero(candidates).tolist():
        if starts[at] < free:
            keep[at] = False
        else:
            free = int(starts[at]) + length
    return keep
