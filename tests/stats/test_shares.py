"""Wilson intervals and quantile tables."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from fot.stats.bins import Bin, quantile_bins, trend
from fot.stats.paired import Interval
from fot.stats.proportion import wilson


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (7, 20), (81, 263), (1, 1), (29, 30)])
def test_wilson_is_scipys(hits, n):
    theirs = binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_newcombes_worked_values():
    """Newcombe 1998, table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    expected = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for (hits, n), interval in expected.items():
        assert wilson(hits, n) == pytest.approx(interval, abs=5e-5)


def test_nothing_is_known_of_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_papers_deciles_trend_as_printed():
    """The ten accuracies of the decile table correlate at -0.82 with their number."""
    shares = [0.969, 0.980, 0.970, 0.959, 0.951, 0.943, 0.930, 0.891, 0.801, 0.656]
    bins = [Bin(0, 0, 1, 1, share, Interval(0, 1)) for share in shares]
    assert trend(bins).r == pytest.approx(-0.818, abs=5e-4)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=60), st.integers(1, 12))
def test_bins_hold_everything_once_in_order_and_evenly(pairs, count):
    values, hits = map(list, zip(*pairs, strict=True))
    bins = quantile_bins(values, hits, count)
    assert sum(one.n for one in bins) == len(values)
    assert sum(one.hits for one in bins) == sum(hits)
    assert max(one.n for one in bins) - min(one.n for one in bins) <= 1
    assert all(a.high <= b.low for a, b in itertools.pairwise(bins))
    assert all(one.low <= one.high and one.share == one.hits / one.n for one in bins)


def test_one_bin_has_no_trend():
    assert math.isnan(trend(quantile_bins([1.0], [True])).r)
    assert np.isclose(trend(quantile_bins([1, 2, 3, 4], [1, 1, 0, 0], 2)).r, -1)
