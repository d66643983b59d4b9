"""Batch and KV positions over time, in a bounded number of bins."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Bin", "Trace"]


class Bin(NamedTuple):
    """Means over one stretch of time."""

    seconds: float
    batch: float
    kv: float


class Trace:
    """Adds spans up. Bins double in width whenever they become too many."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._bins: list[Bin] = []
        self._width = 0.0

    def add(self, seconds: float, batch_seconds: float, token_seconds: float) -> None:
        """The next span: its length, and the integrals of batch and of positions over it."""
        if seconds <= 0:
            return
        last = self._bins[-1] if self._bins else None
        if last is not None and last.seconds + seconds <= self._width:
            self._bins[-1] = Bin(last.seconds + seconds, last.batch + batch_seconds, last.kv + token_seconds)
            return
        self._bins.append(Bin(seconds, batch_seconds, token_seconds))
        if len(self._bins) > self._most:
            self._width = 4 * sum(each.seconds for each in self._bins) / self._most  # half as many at most
            bins, self._bins = self._bins, []
            for each in bins:
                self.add(*each)

    def bins(self, number: int) -> list[Bin]:
        """Means over `number` stretches of equal length."""
        total = sum(each.seconds for each in self._bins)
        if not total or number < 1:
            return []
        width = total / number
        sums = [[0.0, 0.0] for _ in range(number)]
        begin = 0.0
        for seconds, batch, kv in self._bins:
            end = begin + seconds
            first, last = int(begin / width), min(int(end / width), number - 1)
            for at in range(min(first, number - 1), last + 1):
                share = max(min(end, (at + 1) * width) - max(begin, at * width), 0.0) / seconds
                sums[at][0] += share * batch
                sums[at][1] += share * kv
            begin = end
        return [Bin(width, batch / width, kv / width) for batch, kv in sums]
