"""Hesitation markers: the paper's kernel, and the reference counter that every fast path is tested against.

A marker is counted where it stands wholly inside the prefix, case-sensitively and without word boundaries. It never
overlaps itself; different markers do overlap (`Wait,` also counts `Wait`), as the paper has it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PAPER_KERNEL", "Kernel", "MarkerCounter", "count", "density", "kernel_of"]

_PAPER_MARKERS = (
    "perhaps",
    "Wait,",
    "Wait",
    "actually",
    "wrong",
    "However",
    "Or ",
    "no,",
    "Alternatively",
    "But wait",
    "Actually",
    "Maybe",
    "incorrect",
    "instead",
    "I was wrong",
    "Let me think",
    "Let me reconsider",
    "I think I made",
    "Re-examining",
    "This isn't",
    "Let me try",
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A named, ordered set of markers (the order is that of falling correlation with being wrong)."""

    name: str
    markers: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.markers or not all(self.markers):
            raise ValueError("a kernel needs at least one marker, and no marker may be empty")
        if len(set(self.markers)) != len(self.markers):
            raise ValueError("a kernel holds each marker once")

    @property
    def digest(self) -> str:
        """Identifies the markers, whatever the kernel is called."""
        return hashlib.sha256("\0".join(self.markers).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def top(self, size: int) -> Kernel:
        """The first `size` markers."""
        if not 1 <= size <= len(self.markers):
            raise ValueError(f"kernel {self.name} has {len(self.markers)} markers; cannot take {size}")
        return Kernel(f"top-{size}", self.markers[:size])


PAPER_KERNEL = Kernel("paper", _PAPER_MARKERS)


def kernel_of(names: Sequence[str]) -> Kernel:
    """The kernel that a parameter names: `paper`, `top-N` of it, or the markers themselves."""
    if len(names) == 1:
        (name,) = names
        if name == PAPER_KERNEL.name:
            return PAPER_KERNEL
        if name.startswith("top-") and name[4:].isdigit():
            return PAPER_KERNEL.top(int(name[4:]))
    return Kernel("custom", tuple(names))


def count(text: str, kernel: Kernel = PAPER_KERNEL) -> int:
    """Markers in a whole text: the definition."""
    return sum(text.count(marker) for marker in kernel.markers)


def density(markers: int, chars: int) -> float:
    """Markers per 1,000 characters; an empty prefix has density 0."""
    return 1000.0 * markers / chars if chars else 0.0


class MarkerCounter:
    """Counts markers in a text that arrives in pieces; any chunking gives the count of the whole text."""

    def __init__(self, kernel: Kernel = PAPER_KERNEL) -> None:
        self._markers = kernel.markers
        self._keep = max(len(marker) for marker in kernel.markers) - 1
        self._tail = ""
        self._resume = [0] * len(kernel.markers)
        self._ends: list[int] = []  # where each counted marker ends, rising
        self.chars = 0

    def feed(self, chunk: str) -> int:
        """Take the next piece in; returns the count so far."""
        window = self._tail + chunk
        start = self.chars - len(self._tail)
        known = len(self._ends)
        for which, marker in enumerate(self._markers):
            self._resume[which] = self._count_from(window, start, marker, self._resume[which])
        if len(self._ends) > known + 1:
            self._ends[known:] = sorted(self._ends[known:])
        self.chars += len(chunk)
        self._tail = window[-self._keep :] if self._keep else ""
        return self.markers

    def _count_from(self, window: str, start: int, marker: str, resume: int) -> int:
        """Count `marker` where it starts at or after `resume` (absolute); returns where the next may start."""
        at = window.find(marker, max(resume - start, 0))
        while at >= 0:
            resume = start + at + len(marker)
            self._ends.append(resume)
            at = window.find(marker, resume - start)
        return resume

    @property
    def markers(self) -> int:
        """Markers so far."""
        return len(self._ends)

    def within(self, chars: int) -> int:
        """Markers of the first `chars` characters, of those that came."""
        return bisect_right(self._ends, chars)

    @property
    def density(self) -> float:
        """Markers per 1,000 characters so far."""
        return density(self.markers, self.chars)
