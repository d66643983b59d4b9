"""Does a quantity go with being right? Correlations of rollouts, weighted so that no group drowns the others.

The p-values here treat rollouts as independent, as the paper's do. Rollouts of one problem are not: where problems
differ in difficulty and in the quantity at once, `fot.stats.ranking` and `fot.stats.resampling` compare within them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fot.stats.distributions import two_sided_t

__all__ = ["Correlation", "correlation", "effective_size", "equal_groups", "partial_correlation"]

Floats = NDArray[np.float64]


class Correlation(NamedTuple):
    """`r` with its two-sided `p`; `n` is the effective number of observations. NaN where one side is constant."""

    r: float
    p: float
    n: float


def equal_groups(groups: ArrayLike) -> Floats:
    """Weights under which every group counts as much as any other, however large: the inverse of its size."""
    _, number, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    return np.asarray(1.0 / sizes[number], np.float64)


def effective_size(weights: ArrayLike) -> float:
    """Kish's effective number of observations: (Σw)² / Σw²."""
    weights = np.asarray(weights, np.float64)
    return float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 0.0


def correlation(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> Correlation:
    """Pearson's correlation, which is the point-biserial one when a side holds only 0 and 1.

    With `weights` moments are weighted, and `p` is that of Student's t on the effective size less two.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    weights = np.ones(len(x)) if weights is None else np.asarray(weights, np.float64)
    size = effective_size(weights)
    return _judged(_pearson(x, y, weights), size, size - 2)


def partial_correlation(x: ArrayLike, y: ArrayLike, given: ArrayLike) -> Correlation:
    """The correlation of `x` and `y` with what `given` explains of either taken out (one quantity, linearly)."""
    x, y, given = (np.asarray(side, np.float64) for side in (x, y, given))
    even = np.ones(len(x))
    xy, xz, yz = _pearson(x, y, even), _pearson(x, given, even), _pearson(y, given, even)
    rest = (1 - xz * xz) * (1 - yz * yz)
    r = (xy - xz * yz) / math.sqrt(rest) if rest > 1e-12 else math.nan
    return _judged(r, float(len(x)), len(x) - 3)


def _pearson(x: Floats, y: Floats, weights: Floats) -> float:
    total = weights.sum()
    if total <= 0:
        return math.nan
    x, y = x - (weights @ x) / total, y - (weights @ y) / total
    scale = math.sqrt((weights @ (x * x)) * (weights @ (y * y)))
    return float(np.clip((weights @ (x * y)) / scale, -1, 1)) if scale > 1e-12 * total else math.nan


def _judged(r: float, size: float, freedom: float) -> Correlation:
    if math.isnan(r) or freedom <= 0:
        return Correlation(r, math.nan, size)
    if abs(r) >= 1.0:
        return Correlation(r, 0.0, size)
    return Correlation(r, two_sided_t(r * math.sqrt(freedom / (1 - r * r)), freedom), size)
