"""AUROC over all pairs and within groups, against counting and against scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from fot.stats.ranking import auroc, auroc_within

observations = st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), min_size=1, max_size=40)


def counted(rows):
    """Every pair of one group looked at."""
    won = pairs = 0.0
    for value, positive, group in rows:
        for other, other_positive, other_group in rows:
            if group == other_group and positive and not other_positive:
                pairs += 1
                won += 1.0 if value > other else 0.5 if value == other else 0.0
    return won, pairs


@given(observations)
def test_it_is_the_share_of_pairs_won(rows):
    values, positive, groups = zip(*rows, strict=True)
    won, pairs = counted(rows)
    ranking = auroc_within(values, positive, groups)
    assert ranking.pairs == pairs
    if pairs:
        assert ranking.auroc == pytest.approx(won / pairs, abs=1e-12)
        assert ranking.interval.low - 1e-12 <= ranking.auroc <= ranking.interval.high + 1e-12
    else:
        assert math.isnan(ranking.auroc)


def test_one_group_is_the_mann_whitney_test():
    rng = np.random.default_rng(3)
    values, positive = rng.integers(0, 12, 150), rng.random(150) < 0.4
    theirs = mannwhitneyu(values[positive], values[~positive], use_continuity=False, method="asymptotic")
    ours = auroc_within(values, positive, np.zeros(150))
    assert ours.auroc == pytest.approx(theirs.statistic / (positive.sum() * (~positive).sum()))
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9)


def test_a_difference_between_groups_is_no_difference_within():
    """Hard groups have high values throughout: ranked together they separate, compared within they do not."""
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(60), 20)
    hard = groups % 2 == 0
    positive = rng.random(len(groups)) < np.where(hard, 0.8, 0.2)
    values = hard * 5 + rng.normal(size=len(groups))
    assert auroc(values, positive) > 0.75
    within = auroc_within(values, positive, groups)
    assert within.interval.low < 0.5 < within.interval.high
    assert within.p > 0.05


def test_separation_is_found():
    values, positive, groups = [1, 2, 3, 4, 9, 10], [0, 0, 1, 1, 0, 1], list("aaaabb")
    ranking = auroc_within(values, positive, groups)
    assert ranking.auroc == 1.0
    assert ranking.groups == 2
    assert ranking.pairs == 5
