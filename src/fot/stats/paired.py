"""How sure is it that one method is right more often than another on the same problems?"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Interval", "mcnemar", "paired_bootstrap", "sign_flip"]

_RESAMPLES = 10_000
_BLOCK_CELLS = 4_000_000


class Interval(NamedTuple):
    """A 95% interval."""

    low: float
    high: float


def mcnemar(wins: int, losses: int) -> float:
    """Exact two-sided McNemar test: the binomial probability of a split at least this uneven."""
    n, fewer = wins + losses, min(wins, losses)
    ways = sum(math.comb(n, i) for i in range(fewer + 1))
    return min(1.0, 2 * ways / (1 << n))


def sign_flip(differences: ArrayLike, seed: int = 0) -> float:
    """Two-sided test that paired differences are symmetric about 0, by flipping signs at random.

    For differences of -1, 0 and 1 this is the exact McNemar test, and that is what is computed.
    """
    differences = np.asarray(differences, float)
    if np.isin(differences, (-1.0, 0.0, 1.0)).all():
        return mcnemar(int((differences > 0).sum()), int((differences < 0).sum()))
    moved = differences[differences != 0]
    rng, seen, as_far = np.random.default_rng(seed), abs(moved.sum()) - 1e-9, 0
    step = max(1, _BLOCK_CELLS // len(moved))
    for first in range(0, _RESAMPLES, step):
        signs = rng.choice((-1.0, 1.0), size=(min(step, _RESAMPLES - first), len(moved)))
        as_far += int((np.abs(signs @ moved) >= seen).sum())
    return (as_far + 1) / (_RESAMPLES + 1)


def paired_bootstrap(differences: ArrayLike, seed: int = 0) -> Interval:
    """Percentile bootstrap of the mean paired difference; problems are what is resampled.

    Resampling n problems draws how often each distinct difference occurs, which is multinomial: no index is drawn.
    """
    values, counts = np.unique(np.asarray(differences, float), return_counts=True)
    n = int(counts.sum())
    drawn: NDArray[np.int64] = np.random.default_rng(seed).multinomial(n, counts / n, size=_RESAMPLES)
    low, high = np.percentile(drawn @ values / n, (2.5, 97.5))
    return Interval(float(low), float(high))
