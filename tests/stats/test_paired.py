import math

import pytest
from scipy.stats import binomtest

from fot.stats.paired import mcnemar, paired_bootstrap, sign_flip


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [(12, 8, 0.503444671630859), (0, 0, 1.0), (5, 0, 0.0625), (3, 3, 1.0), (10, 2, 0.03857421875)],
)
def test_mcnemar_is_the_exact_binomial_test(wins, losses, p):
    """The first row is the paper's own comparison (12 wins, 8 losses, p = 0.50)."""
    assert mcnemar(wins, losses) == pytest.approx(p, abs=1e-12)
    assert mcnemar(losses, wins) == mcnemar(wins, losses)


@pytest.mark.parametrize(("wins", "losses"), [(1, 0), (0, 7), (4, 9), (30, 18), (140, 171), (900, 1001)])
def test_mcnemar_is_scipys_binomial_test_of_a_half(wins, losses):
    assert mcnemar(wins, losses) == pytest.approx(binomtest(wins, wins + losses).pvalue, rel=1e-9)


def test_sign_flip_is_mcnemar_for_whole_differences_and_close_to_it_otherwise():
    differences = [1.0] * 10 + [-1.0] * 2 + [0.0] * 88
    assert sign_flip(differences) == mcnemar(10, 2)
    nearly = [0.9999] * 10 + [-0.9999] * 2 + [0.0] * 88
    assert sign_flip(nearly) == pytest.approx(mcnemar(10, 2), abs=0.01)


def test_bootstrap_covers_what_theory_says():
    """3,580 of 3,600 pairs equal, 12 won, 8 lost: the paper's interval is -0.14 to +0.36 points."""
    differences = [1.0] * 12 + [-1.0] * 8 + [0.0] * 3580
    interval = paired_bootstrap(differences)
    error = math.sqrt(20 / 3600) / math.sqrt(3600)
    assert interval.low == pytest.approx(4 / 3600 - 1.96 * error, abs=2e-4)
    assert interval.high == pytest.approx(4 / 3600 + 1.96 * error, abs=2e-4)
    assert paired_bootstrap([0.0] * 30) == (0.0, 0.0)
