"""Choosing on some problems and reporting on others, so that what is reported was not what was chosen for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["benjamini_hochberg", "folds"]


def folds(
    units: Sequence[Hashable], count: int, seed: int = 0, strata: Sequence[Hashable] | None = None
) -> NDArray[np.int64]:
    """The fold of each problem, 0 to `count` - 1, shuffled by `seed` and even within every stratum.

    Problems with one `unit` (the same question put to several models) share a fold: a choice must not be reported on
    a question that it was made on. A unit belongs to the stratum of its first problem.
    """
    strata = [None] * len(units) if strata is None else strata
    stratum = dict(reversed(list(zip(units, strata, strict=True))))
    members: dict[Hashable, list[Hashable]] = {}
    for unit in dict.fromkeys(units):
        members.setdefault(stratum[unit], []).append(unit)
    rng = np.random.default_rng(seed)
    fold: dict[Hashable, int] = {}
    dealt = 0
    for own in members.values():
        for at in rng.permutation(len(own)).tolist():
            fold[own[at]] = dealt % count  # dealing on from stratum to stratum keeps small ones from fold 0 alone
            dealt += 1
    return np.array([fold[unit] for unit in units], np.int64)


def benjamini_hochberg(p: ArrayLike) -> NDArray[np.float64]:
    """p-values adjusted so that calling all below q significant keeps false discoveries below the share q."""
    p = np.asarray(p, np.float64)
    order = np.argsort(p)[::-1]
    factors = len(p) / np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.minimum.accumulate(p[order] * factors), 1.0)
    return adjusted
