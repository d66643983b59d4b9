"""Correlations against scipy, and against what the paper's own tables imply."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fot.stats.correlation import correlation, effective_size, equal_groups, partial_correlation

RNG = np.random.default_rng(7)


def test_point_biserial_is_scipys():
    hits = RNG.random(300) < 0.6
    values = RNG.normal(size=300) - 0.4 * hits
    ours, theirs = correlation(hits, values), stats.pointbiserialr(hits, values)
    assert ours.r == pytest.approx(theirs.statistic, abs=1e-12)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert ours.n == 300


def test_effective_size_of_the_papers_benchmarks():
    """Four benchmarks of 6 models x 32 rollouts, weighted alike: the marker table prints n_eff = 32,797."""
    sizes = {"AIME24": 30, "AIME25": 30, "AMC23": 40, "MATH500": 500}
    groups = np.repeat(list(sizes), [6 * 32 * count for count in sizes.values()])
    assert len(groups) == 115_200
    assert round(effective_size(equal_groups(groups))) == 32_797


def test_weights_stand_for_copies():
    hits, values = np.array([1, 0, 1, 0, 1]), np.array([1.0, 2.0, 0.5, 4.0, 2.5])
    times = np.array([3, 1, 2, 2, 4])
    weighted = correlation(hits, values, times)
    assert weighted.r == pytest.approx(correlation(np.repeat(hits, times), np.repeat(values, times)).r, abs=1e-12)
    assert weighted.n == pytest.approx(times.sum() ** 2 / (times**2).sum())


def test_a_group_counts_alike_whatever_its_size():
    hits, values, groups = [1, 0, 0, 1, 1, 0], [1.0, 2.0, 3.0, 2.0, 1.0, 5.0], list("aabbbb")
    once = correlation(hits, values, equal_groups(groups)).r
    twice = correlation(hits + hits[2:], values + values[2:], equal_groups(groups + groups[2:])).r
    assert once == pytest.approx(twice, abs=1e-12)


def test_partial_correlation_is_that_of_the_residuals():
    given_ = RNG.normal(size=200)
    x, y = given_ + RNG.normal(size=200), -given_ + RNG.normal(size=200)
    ours = partial_correlation(x, y, given_)
    rest = [side - np.polyval(np.polyfit(given_, side, 1), given_) for side in (x, y)]
    assert ours.r == pytest.approx(stats.pearsonr(*rest).statistic, abs=1e-9)
    t = ours.r * math.sqrt(197 / (1 - ours.r**2))
    assert ours.p == pytest.approx(2 * stats.t.sf(abs(t), 197), rel=1e-9)


def test_a_partial_correlation_worked_by_hand():
    """r12 = 0.67, r13 = 0.75, r23 = 0.63 give r12.3 = (0.67 - 0.75 * 0.63) / sqrt((1 - 0.75^2)(1 - 0.63^2))."""
    target = np.array([[1, 0.67, 0.75], [0.67, 1, 0.63], [0.75, 0.63, 1]])
    raw = RNG.normal(size=(400, 3))
    raw = np.linalg.qr(raw - raw.mean(axis=0))[0]
    x, y, z = (raw @ np.linalg.cholesky(target).T).T
    assert partial_correlation(x, y, z).r == pytest.approx(0.1975 / math.sqrt(0.4375 * 0.6031), abs=1e-9)


def test_what_is_constant_has_no_correlation():
    assert math.isnan(correlation([1, 1, 1], [1.0, 2.0, 3.0]).r)
    assert math.isnan(correlation([], []).r)
    assert math.isnan(partial_correlation([1, 2, 3, 4], [4, 3, 2, 1], [1, 2, 3, 4]).r)


@given(st.lists(st.tuples(st.booleans(), st.integers(-9, 9)), min_size=3, max_size=30))
def test_r_lies_between_minus_one_and_one_and_turns_with_the_sign(pairs):
    hits, values = zip(*pairs, strict=True)
    one, other = correlation(hits, values), correlation(hits, [-value for value in values])
    if not math.isnan(one.r):
        assert -1 <= one.r <= 1
        assert one.r == pytest.approx(-other.r, abs=1e-12)
        assert 0 <= one.p <= 1
