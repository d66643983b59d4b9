"""Intervals and tests by drawing again: over problems, over draws of rollouts, over labels inside a problem."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fot.stats.paired import Interval

__all__ = ["draw_bootstrap", "label_permutation", "mean_bootstrap", "ratio_bootstrap", "repeated_ratio_bootstrap"]

_RESAMPLES = 10_000
_BLOCK_CELLS = 4_000_000

Floats = NDArray[np.float64]


def mean_bootstrap(values: ArrayLike, seed: int = 0) -> Interval:
    """Percentile bootstrap of a mean over problems."""
    values = np.asarray(values, np.float64)
    return ratio_bootstrap(values, np.ones(len(values)), seed)


def ratio_bootstrap(numerators: ArrayLike, denominators: ArrayLike, seed: int = 0) -> Interval:
    """Percentile bootstrap of Σ numerators / Σ denominators; problems are what is resampled, as pairs of the two.

    NaN where there is nothing to resample.
    """
    numerators, denominators = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)
    if not len(numerators) or denominators.sum() == 0:
        return Interval(math.nan, math.nan)
    tops, bottoms = _resampled_sums(np.stack([numerators, denominators], axis=1), seed).T
    ratios = tops[bottoms != 0] / bottoms[bottoms != 0]
    low, high = np.percentile(ratios, (2.5, 97.5))
    return Interval(float(low), float(high))


def repeated_ratio_bootstrap(numerators: ArrayLike, denominators: ArrayLike, seed: int = 0) -> Interval:
    """`ratio_bootstrap` of what was measured several times on the same problems.

    Both have a row for each repeat and a column for each problem. A resample draws problems with return and, for each
    of them, as many of its repeats with return: the interval covers both which problems there are and how runs differ.
    """
    pairs = np.stack([np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)], axis=-1)
    repeats, n, _ = pairs.shape
    if repeats == 1 or not pairs[..., 1].any():
        return ratio_bootstrap(pairs[0, :, 0], pairs[0, :, 1], seed)
    rng = np.random.default_rng(seed)
    step = max(1, _BLOCK_CELLS // (repeats * n))
    sums = []
    for first in range(0, _RESAMPLES, step):
        size = min(step, _RESAMPLES - first)
        problems = rng.integers(n, size=(size, 1, n))
        sums.append(pairs[rng.integers(repeats, size=(size, repeats, n)), problems].sum(axis=(1, 2)))
    tops, bottoms = np.concatenate(sums).T
    low, high = np.percentile(tops[bottoms != 0] / bottoms[bottoms != 0], (2.5, 97.5))
    return Interval(float(low), float(high))


def _resampled_sums(values: Floats, seed: int) -> Floats:
    """Sums of the columns over problems drawn with return, one row a resample; memory is bounded."""
    n = len(values)
    rng = np.random.default_rng(seed)
    step = max(1, _BLOCK_CELLS // n)
    blocks = []
    for first in range(0, _RESAMPLES, step):
        size = min(step, _RESAMPLES - first)
        times = rng.multinomial(n, np.full(n, 1 / n), size=size)
        blocks.append(times @ values)
    return np.concatenate(blocks)


def draw_bootstrap(values: ArrayLike, seed: int = 0) -> Interval:
    """Interval of a mean over problems when each was measured on several draws of rollouts.

    `values` has a row for each draw and a column for each problem. A resample draws problems with return and, for
    each, one of its draws: the interval covers both which problems there are and which rollouts were sampled.
    """
    values = np.asarray(values, np.float64)
    draws, n = values.shape
    rng = np.random.default_rng(seed)
    step = max(1, _BLOCK_CELLS // n)
    means: list[float] = []
    for first in range(0, _RESAMPLES, step):
        size = min(step, _RESAMPLES - first)
        problems = rng.integers(n, size=(size, n))
        means.extend(values[rng.integers(draws, size=(size, n)), problems].mean(axis=1).tolist())
    low, high = np.percentile(means, (2.5, 97.5))
    return Interval(float(low), float(high))


def label_permutation(
    values: ArrayLike, labels: ArrayLike, groups: ArrayLike | None = None, seed: int = 0, resamples: int = 2_000
) -> float:
    """Two-sided p of the difference in mean value between the two kinds of labels, which are shuffled within groups.

    Without `groups` labels are shuffled over everything. Groups of one kind say nothing; with nothing else p is 1.
    """
    values, labels = np.asarray(values, np.float64), np.asarray(labels, bool)
    groups = np.zeros(len(values), int) if groups is None else np.asarray(groups)
    _, number = np.unique(groups, return_inverse=True)
    size = np.bincount(number)
    centred = values - (np.bincount(number, values) / size)[number]
    seen = abs(centred[labels].sum())
    if not (np.bincount(number, labels) % size).any():
        return 1.0
    rng = np.random.default_rng(seed)
    order = np.argsort(number, kind="stable")
    marks, centred = labels[order], centred[order]
    as_far = 0
    for _ in range(resamples):
        # Sorting by group, then by chance, shuffles inside every group at once.
        shuffled = np.lexsort((rng.random(len(order)), number[order]))
        as_far += bool(abs(centred[shuffled] @ marks) >= seen - 1e-9)
    return (as_far + 1) / (resamples + 1)
