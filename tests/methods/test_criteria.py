import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.core.vote import Ballot
from fot.errors import ConfigError
from fot.methods.bayes import stays
from fot.methods.criteria import beta, counts_of, criterion_of, dirichlet, entropy, majority


def test_the_fewest_leading_votes_that_stop_adaptive_consistency():
    """By votes for the runner-up, 0 to 8."""
    enough = criterion_of("beta", None)
    first = [next(a for a in itertools.count(b + 1) if enough.is_met((a, b) if b else (a,))) for b in range(9)]
    assert first == [4, 6, 8, 9, 11, 12, 14, 15, 17]


def test_beta_by_hand():
    assert [beta((votes,)) for votes in (1, 2, 3, 4)] == [0.75, 0.875, 0.9375, 0.96875]
    assert beta((3, 3)) == 0.5
    assert beta((3, 1, 1)) == beta((3, 1))


@given(st.lists(st.integers(1, 12), min_size=3, max_size=5).map(lambda counts: tuple(sorted(counts, reverse=True))))
def test_dirichlet_is_a_probability_below_the_two_horse_race(counts):
    assert 1 / len(counts) - 1e-6 <= dirichlet(counts) <= beta(counts) + 1e-6


def test_dirichlet_by_symmetry_and_by_counting():
    assert dirichlet((5, 5, 5)) == pytest.approx(1 / 3, abs=1e-6)
    assert dirichlet((4, 4, 4, 4)) == pytest.approx(1 / 4, abs=1e-6)
    assert dirichlet((4, 2)) == beta((4, 2))
    draw = random.Random(1)
    counts = (6, 3, 2, 1)
    shares = ([draw.gammavariate(count + 1, 1) for count in counts] for _ in range(20_000))
    led = sum(max(share) == share[0] for share in shares) / 20_000
    assert dirichlet(counts) == pytest.approx(led, abs=0.01)


def test_entropy_and_majority():
    assert entropy((1,)) == majority((1,)) == -math.inf
    assert majority((4, 1)) == 0.8
    assert entropy((2, 2)) == 0.0
    assert entropy((3,)) == entropy((3, 1))  # unanimity is set against one vote, as released
    stop = criterion_of("entropy", None)
    assert stop.is_met((8, 3, 1))  # exactly on the threshold
    assert [stop.is_met((votes,)) for votes in (1, 2, 3, 4)] == [False, False, False, True]


def test_counts_and_names():
    ballots = [Ballot(0, "b", 9.0), Ballot(1, "a"), Ballot(2, "a")]
    assert counts_of(ballots) == (2, 1)  # weights do not count
    assert not criterion_of("beta", 0.0).is_met(())
    with pytest.raises(ConfigError, match="Did you mean 'beta'"):
        criterion_of("bta", None)


def brute_force(counts, open_votes):
    """All ways in which the votes to come can fall, one after the other."""
    priors = [*(count + 1 for count in counts), 1]
    chance = 0.0
    for falls in itertools.product(range(len(priors)), repeat=open_votes):
        urn, ways = list(priors), 1.0
        for which in falls:
            ways *= urn[which] / sum(urn)
            urn[which] += 1
        final = [balls - 1 for balls in urn[:-1]] + [urn[-1] - 1]
        chance += ways if final[0] > max(final[1:]) else 0.0
    return chance


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 4))
def test_the_posterior_is_exact(counts, open_votes):
    counts = tuple(sorted(counts, reverse=True))
    assert stays(counts, open_votes) == pytest.approx(brute_force(counts, open_votes), abs=1e-12)
