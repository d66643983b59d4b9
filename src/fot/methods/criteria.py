"""When enough votes have been seen: the stopping criteria of Adaptive Consistency, as functions of the vote counts.

A criterion looks at how often each answer came, in any order. All are exact or deterministic, and need no SciPy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from fot.core.registry import unknown_name
from fot.core.vote import Ballot

__all__ = ["CRITERIA", "Criterion", "beta", "counts_of", "criterion_of", "dirichlet", "entropy", "majority"]


@dataclass(frozen=True, slots=True)
class Criterion:
    """Stops once `measure(counts)` has reached `threshold`; `counts` fall, and there is at least one."""

    name: str
    measure: Callable[[tuple[int, ...]], float]
    threshold: float

    def is_met(self, counts: tuple[int, ...]) -> bool:
        """Is this enough? Never before the first vote."""
        return bool(counts) and self.measure(counts) >= self.threshold


def counts_of(ballots: Sequence[Ballot]) -> tuple[int, ...]:
    """How often each answer came, most first."""
    votes = Counter(ballot.answer for ballot in ballots)
    return tuple(sorted(votes.values(), reverse=True))


@cache
def _beta(first: int, second: int) -> float:
    draws = first + second + 1
    return 1.0 - sum(math.comb(draws, heads) for heads in range(second + 1)) / 2.0**draws


def beta(counts: tuple[int, ...]) -> float:
    """Posterior probability that the leader is the more frequent of the two most frequent answers.

    Under a uniform prior the share is Beta(a + 1, b + 1), and its mass above one half a binomial tail.
    """
    return _beta(counts[0], counts[1] if len(counts) > 1 else 0)


@cache
def dirichlet(counts: tuple[int, ...], most: int = 5) -> float:
    """Posterior probability that the leader is the most frequent of the `most` most frequent answers.

    With fewer than three answers it is `beta`. The shares are Dirichlet(counts + 1): gammas of unit scale over their
    sum, so the probability is the integral of the leader's density times the others' distribution functions.
    """
    shapes = [count + 1 for count in counts[:most]]
    if len(shapes) < 3:
        return beta(counts)
    leader, *others = shapes
    top = leader + 12.0 * math.sqrt(leader) + 12.0  # beyond it lies less than 1e-9 of the leader's mass
    steps = 400  # Simpson's rule; halving the step changes the 8th decimal
    width = top / steps
    total = 0.0
    for at in range(1, steps + 1):
        x = at * width
        weight = 1 if at == steps else 4 if at % 2 else 2
        total += weight * _gamma_density(leader, x) * math.prod(_gamma_below(shape, x) for shape in others)
    return min(1.0, total * width / 3)


def _gamma_density(shape: int, x: float) -> float:
    return math.exp((shape - 1) * math.log(x) - x - math.lgamma(shape))


def _gamma_below(shape: int, x: float) -> float:
    """P(X <= x) for a gamma of whole shape: one minus a Poisson tail."""
    term = math.exp(-x)
    tail = term
    for k in range(1, shape):
        term *= x / k
        tail += term
    return max(0.0, 1.0 - tail)


def entropy(counts: tuple[int, ...]) -> float:
    """One minus the vote's entropy as a share of the largest possible; higher is surer.

    As released, an answer that stands alone is set against one vote for another. One vote alone says nothing.
    """
    if sum(counts) == 1:
        return -math.inf
    votes = (*counts, 1) if len(counts) == 1 else counts
    total = sum(votes)
    bits = -sum(count / total * math.log2(count / total) for count in votes)
    return 1.0 - bits / math.log2(len(votes))


def majority(counts: tuple[int, ...]) -> float:
    """The leader's share of the votes. One vote alone says nothing."""
    return counts[0] / sum(counts) if sum(counts) > 1 else -math.inf


CRITERIA: Mapping[str, Criterion] = {
    "beta": Criterion("beta", beta, 0.95),
    "dirichlet": Criterion("dirichlet", dirichlet, 0.95),
    "entropy": Criterion("entropy", entropy, 0.25),  # published as: entropy at most 0.75
    "majority": Criterion("majority", majority, 0.8),
}
"""With their published thresholds."""


def criterion_of(name: str, threshold: float | None) -> Criterion:
    """The named criterion at this threshold (None: its published one)."""
    if name not in CRITERIA:
        raise unknown_name("criterion", name, CRITERIA)
    known = CRITERIA[name]
    return known if threshold is None else Criterion(name, known.measure, threshold)
