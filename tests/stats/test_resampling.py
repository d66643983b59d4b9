"""Intervals that cover and tests that keep their rate, on data whose truth is known."""

import math

import numpy as np
import pytest
from scipy import stats

from fot.stats.resampling import (
    draw_bootstrap,
    label_permutation,
    mean_bootstrap,
    ratio_bootstrap,
    repeated_ratio_bootstrap,
)


def test_a_mean_has_the_interval_of_scipys_percentile_bootstrap():
    values = np.random.default_rng(1).exponential(size=80)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", rng=2).confidence_interval
    assert mean_bootstrap(values) == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_a_ratio_is_resampled_as_pairs():
    """Equal ratios everywhere leave nothing to vary, however different the problems are in size."""
    sizes = np.array([1.0, 10.0, 100.0, 1000.0])
    assert ratio_bootstrap(sizes * 0.25, sizes) == pytest.approx((0.25, 0.25))
    assert math.isnan(ratio_bootstrap([], []).low)
    assert math.isnan(ratio_bootstrap([0.0], [0.0]).low)


def test_draws_widen_an_interval_that_problems_alone_leave_narrow():
    rng = np.random.default_rng(4)
    noisy = rng.normal(size=(10, 40))
    steady = np.repeat(noisy.mean(axis=0)[None, :], 10, axis=0)
    wide, narrow = draw_bootstrap(noisy), draw_bootstrap(steady)
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)
    alone = mean_bootstrap(steady[0])
    assert narrow == pytest.approx(alone, abs=0.02)


def test_the_permutation_test_agrees_with_scipys():
    rng = np.random.default_rng(8)
    values = rng.normal(size=40)
    labels = np.arange(40) < 18
    values[labels] += 0.6
    theirs = stats.permutation_test(
        (values[labels], values[~labels]), lambda a, b: a.mean() - b.mean(), n_resamples=5_000, rng=9
    )
    assert label_permutation(values, labels, resamples=5_000) == pytest.approx(theirs.pvalue, abs=0.02)


def test_labels_are_shuffled_within_their_groups_only():
    """All of the difference lies between the groups: within them nothing can be found."""
    rng = np.random.default_rng(6)
    groups = np.repeat([0, 1], 50)
    labels = rng.random(100) < np.where(groups == 0, 0.1, 0.9)
    values = groups + rng.normal(scale=0.1, size=100)
    assert label_permutation(values, labels) < 0.01
    assert label_permutation(values, labels, groups) > 0.05
    assert label_permutation(values, groups == 1, groups) == 1.0


@pytest.mark.parametrize("effect", [0.0, 0.8])
def test_permutation_keeps_its_rate_where_there_is_nothing_and_finds_what_is_there(effect):
    """Grouped data with strong group effects: 5% within three standard errors, or nearly always."""
    rng = np.random.default_rng(11)
    found = 0
    for run in range(200):
        groups = np.repeat(np.arange(12), 10)
        level = rng.normal(scale=3, size=12)[groups]
        labels = rng.random(120) < 1 / (1 + np.exp(-level))
        values = level + rng.normal(size=120) + effect * labels
        found += label_permutation(values, labels, groups, seed=run, resamples=200) <= 0.05
    assert found >= 150 if effect else found <= 10 + 3 * math.sqrt(200 * 0.05 * 0.95)


def test_repeats_widen_an_interval_by_as_much_as_runs_differ():
    rng = np.random.default_rng(5)
    costs, steady = rng.uniform(1, 3, 40), np.ones(40)
    once = ratio_bootstrap(costs, steady)
    same = repeated_ratio_bootstrap([costs] * 3, [steady] * 3)
    noisy = repeated_ratio_bootstrap([costs + rng.normal(0, 4, 40) for _ in range(3)], [steady] * 3)
    assert repeated_ratio_bootstrap([costs], [steady]) == once
    assert same == pytest.approx(once, abs=0.02)
    assert noisy.high - noisy.low > 2 * (same.high - same.low)
    assert math.isnan(repeated_ratio_bootstrap([[0.0], [0.0]], [[0.0], [0.0]]).low)
