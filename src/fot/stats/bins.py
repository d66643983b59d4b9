"""Does the share of right rollouts fall as a quantity rises? Tables by quantile, or by given bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fot.stats.correlation import Correlation, correlation
from fot.stats.paired import Interval
from fot.stats.proportion import wilson

__all__ = ["Bin", "quantile_bins", "trend"]


class Bin(NamedTuple):
    """What lies between two values: how many, how many hits among them, and the share with its Wilson interval."""

    low: float
    high: float
    n: int
    hits: int
    share: float
    interval: Interval


def quantile_bins(values: ArrayLike, hits: ArrayLike, bins: int = 10) -> list[Bin]:
    """Bins of equal numbers by rank (deciles by default), lowest first; equal values may fall into two bins.

    Fewer values than bins give as many bins as values.
    """
    values, hits = np.asarray(values, np.float64), np.asarray(hits, bool)
    order = np.argsort(values, kind="stable")
    parts: Sequence[NDArray[np.intp]] = np.array_split(order, min(bins, len(values)) or 1)
    return [_bin(values[part], hits[part]) for part in parts if len(part)]


def _bin(values: NDArray[np.float64], hits: NDArray[np.bool_]) -> Bin:
    n, good = len(values), int(hits.sum())
    return Bin(float(values[0]), float(values[-1]), n, good, good / n, wilson(good, n))


def trend(bins: Sequence[Bin]) -> Correlation:
    """The correlation between the number of a bin and its share of hits."""
    return correlation(np.arange(1, len(bins) + 1), [one.share for one in bins])
