"""Every statistic that a peer has as well, on random data: how far apart they are at most.

    pip install statsmodels
    python -m benchmarks.statistics_peer

Peers are statsmodels and scipy. The difference is absolute, over all draws; more than 1e-9 fails.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from scipy import stats

from fot.stats.correlation import correlation, partial_correlation
from fot.stats.paired import mcnemar
from fot.stats.proportion import wilson
from fot.stats.ranking import auroc_within
from fot.stats.selection import benjamini_hochberg

MOST = 1e-9
DRAWS = 200
Pairs = Iterator[tuple[float, float]]
"""Ours and the peer's."""


def mcnemars() -> Pairs:
    """All splits of up to 39 wins and 39 losses."""
    tables = importlib.import_module("statsmodels.stats.contingency_tables")
    for won, lost in product(range(40), repeat=2):
        if won + lost:
            yield mcnemar(won, lost), float(tables.mcnemar([[5, won], [lost, 5]], exact=True).pvalue)


def wilsons() -> Pairs:
    """Shares from none to all of 1 to 3,600."""
    proportion = importlib.import_module("statsmodels.stats.proportion")
    for n in (1, 5, 20, 198, 3_600):
        for hits in range(0, n + 1, max(1, n // 20)):
            yield from zip(wilson(hits, n), proportion.proportion_confint(hits, n, method="wilson"), strict=True)


def point_biserials() -> Pairs:
    """The correlation and its p, unweighted."""
    for rng, n in _draws():
        hits, values = _both_kinds(rng, n), rng.normal(size=n)
        ours, theirs = correlation(hits, values), stats.pointbiserialr(hits, values)
        yield from ((ours.r, float(theirs.statistic)), (ours.p, float(theirs.pvalue)))


def weighted() -> Pairs:
    """The correlation with random weights."""
    weights_of = importlib.import_module("statsmodels.stats.weightstats")
    for rng, n in _draws():
        hits, values, weights = _both_kinds(rng, n).astype(float), rng.normal(size=n), rng.random(n) + 0.01
        theirs = weights_of.DescrStatsW(np.column_stack([values, hits]), weights=weights).corrcoef[0, 1]
        yield correlation(hits, values, weights).r, float(theirs)


def partials() -> Pairs:
    """The correlation and its p, which are those of the coefficient in a regression on both."""
    api = importlib.import_module("statsmodels.api")
    for rng, n in _draws():
        given = rng.normal(size=n)
        x = given + rng.normal(size=n)
        y = given - x + rng.normal(size=n)
        fitted = api.OLS(y, api.add_constant(np.column_stack([x, given]))).fit()
        ours, t = partial_correlation(x, y, given), float(fitted.tvalues[1])
        yield from ((ours.r, t / math.sqrt(t * t + fitted.df_resid)), (ours.p, float(fitted.pvalues[1])))


def aurocs() -> Pairs:
    """AUROC and p with many ties, in one group."""
    for rng, n in _draws():
        values, positive = rng.integers(0, 9, n), _both_kinds(rng, n)
        theirs = stats.mannwhitneyu(
            values[positive], values[~positive], use_continuity=False, method="asymptotic", alternative="two-sided"
        )
        ours = auroc_within(values, positive, np.zeros(n))
        yield ours.auroc, float(theirs.statistic / (positive.sum() * (~positive).sum()))
        yield ours.p, float(theirs.pvalue)


def adjusted() -> Pairs:
    """Thirty p-values at a time."""
    tests = importlib.import_module("statsmodels.stats.multitest")
    for rng, _ in _draws():
        p = rng.random(30) ** 3
        yield from zip(benjamini_hochberg(p).tolist(), tests.multipletests(p, method="fdr_bh")[1].tolist(), strict=True)


PEERS: dict[str, tuple[str, Callable[[], Pairs]]] = {
    "exact McNemar": ("statsmodels", mcnemars),
    "Wilson interval": ("statsmodels", wilsons),
    "point-biserial r and p": ("scipy", point_biserials),
    "weighted r": ("statsmodels", weighted),
    "partial r and p": ("statsmodels", partials),
    "AUROC and p": ("scipy", aurocs),
    "Benjamini-Hochberg": ("statsmodels", adjusted),
}


def _draws() -> Iterator[tuple[np.random.Generator, int]]:
    rng = np.random.default_rng(1)
    return ((rng, int(rng.integers(10, 300))) for _ in range(DRAWS))


def _both_kinds(rng: np.random.Generator, n: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    hits = rng.random(n) < 0.4
    hits[:2] = True, False
    return hits


def main() -> None:
    """Print the largest difference of each; fail where it is more than rounding."""
    apart = {}
    for name, (peer, pairs) in PEERS.items():
        differences = [abs(ours - theirs) for ours, theirs in pairs()]
        apart[name] = max(differences)
        print(f"{name:24} {peer:12} {len(differences):>6,} comparisons, at most {apart[name]:.0e} apart")
    if any(difference > MOST for difference in apart.values()):
        raise SystemExit("not the peer's figures")


if __name__ == "__main__":
    main()
