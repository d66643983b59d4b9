"""How well does a quantity rank wrong above right: over all rollouts, and among those of one problem?"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fot.stats.distributions import two_sided_normal
from fot.stats.paired import Interval
from fot.stats.resampling import ratio_bootstrap

__all__ = ["Ranking", "auroc", "auroc_within"]

Floats = NDArray[np.float64]


class Ranking(NamedTuple):
    """AUROC over the pairs inside groups, with its interval over groups and the p-value of 0.5.

    `groups` are those that have both kinds, `pairs` the comparisons in them. NaN where there are none.
    """

    auroc: float
    interval: Interval
    p: float
    groups: int
    pairs: int


def auroc(values: ArrayLike, positive: ArrayLike) -> float:
    """The chance that a positive has a higher value than a negative, ties counting half; NaN without both kinds."""
    return auroc_within(values, positive, np.zeros(len(np.asarray(values)))).auroc


def auroc_within(values: ArrayLike, positive: ArrayLike, groups: ArrayLike, seed: int = 0) -> Ranking:
    """The same chance among pairs of one group: what a rule that compares only within a group can use.

    Every pair counts once, so groups with more pairs weigh more. `p` is the stratified Mann-Whitney test (normal
    approximation, ties corrected); the interval is a percentile bootstrap over groups.
    """
    values, positive = np.asarray(values, np.float64), np.asarray(positive, bool)
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    ranks, ties = _ranks_within(values, number)
    count = int(number.max()) + 1 if len(number) else 0
    above = np.bincount(number, positive, count)
    size = np.bincount(number, minlength=count).astype(np.float64)
    below = size - above
    wins = np.bincount(number, np.where(positive, ranks, 0.0), count) - above * (above + 1) / 2
    pairs = above * below
    both = pairs > 0
    if not both.any():
        return Ranking(math.nan, Interval(math.nan, math.nan), math.nan, 0, 0)
    wins, pairs, size = wins[both], pairs[both], size[both]
    spread = pairs / 12 * (size + 1 - ties[both] / np.maximum(size * (size - 1), 1))
    z = (wins - pairs / 2).sum() / math.sqrt(spread.sum()) if spread.sum() > 0 else 0.0
    interval = ratio_bootstrap(wins, pairs, seed)
    return Ranking(
        float(wins.sum() / pairs.sum()), interval, two_sided_normal(float(z)), int(both.sum()), int(pairs.sum())
    )


def _ranks_within(values: Floats, groups: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Average ranks inside each group, and each group's Σ(t³ - t) over its ties."""
    order = np.lexsort((values, groups))
    sorted_values, sorted_groups = values[order], groups[order]
    fresh_group = np.diff(sorted_groups, prepend=-1) != 0
    fresh = fresh_group | np.concatenate([[True], np.diff(sorted_values) != 0])[: len(order)]
    run = np.cumsum(fresh) - 1
    first = np.flatnonzero(fresh)
    length = np.diff(np.append(first, len(order)))
    group_first = np.flatnonzero(fresh_group)[np.cumsum(fresh_group) - 1]
    middle = first + (length - 1) / 2
    ranks = np.empty(len(order))
    ranks[order] = middle[run] - group_first + 1
    ties = np.bincount(sorted_groups[first], length.astype(np.float64) ** 3 - length).astype(np.float64)
    return ranks, ties
