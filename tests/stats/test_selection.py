"""Folds that keep one question together, and adjusted p-values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from fot.stats.selection import benjamini_hochberg, folds


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), min_size=1, max_size=60), st.integers(2, 5))
def test_a_unit_lies_in_one_fold_and_folds_are_even(problems, count):
    units, strata = zip(*problems, strict=True)
    fold = folds(units, count, seed=1, strata=strata)
    where = {}
    for unit, one in zip(units, fold.tolist(), strict=True):
        assert where.setdefault(unit, one) == one
    sizes = np.bincount(list(where.values()), minlength=count)
    assert sizes.max() - sizes.min() <= 1


def test_every_stratum_is_spread_over_the_folds():
    strata = ["easy"] * 40 + ["hard"] * 10
    fold = folds(list(range(50)), 5, seed=2, strata=strata)
    assert np.bincount(fold[:40]).tolist() == [8] * 5
    assert np.bincount(fold[40:]).tolist() == [2] * 5


def test_the_seed_decides():
    units = list(range(30))
    assert folds(units, 3, seed=1).tolist() == folds(units, 3, seed=1).tolist()
    assert folds(units, 3, seed=1).tolist() != folds(units, 3, seed=2).tolist()


def test_adjusted_p_values_are_scipys():
    p = np.random.default_rng(3).random(25) ** 2
    assert benjamini_hochberg(p) == pytest.approx(false_discovery_control(p))
