"""Simulated pools whose truth is known: is a planted effect found, and is nothing found where there is nothing?

    python -m benchmarks.planted --pools 1000

Every pool has problems of very different difficulty. Hard problems make rollouts hesitate, whatever becomes of them:
that confounds difficulty with hesitation, as in real pools. With an effect, wrong rollouts hesitate more than right
ones of the same problem as well; without, they do not, and every test should find something in 5% of the pools.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fot.stats.correlation import correlation
from fot.stats.paired import mcnemar, paired_bootstrap, sign_flip
from fot.stats.ranking import auroc_within
from fot.stats.resampling import label_permutation

LEVEL = 0.05
PROBLEMS = 60
ROLLOUTS = 16
KEPT = 8
OPTIONS = 5

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Simulated:
    """One pool: rows are problems, columns rollouts. Answer 0 is the right one."""

    answers: NDArray[np.int64]
    density: Floats
    chance: Floats
    """A signal that knows nothing."""

    @property
    def right(self) -> Bools:
        """Which rollouts are right."""
        return np.equal(self.answers, 0)


def simulate(effect: float, seed: int) -> Simulated:
    """A pool in which wrong rollouts have `effect` standard deviations more of density than right ones."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(scale=2.0, size=(PROBLEMS, 1))
    right = rng.random((PROBLEMS, ROLLOUTS)) < 1 / (1 + np.exp(difficulty))
    wrong = 1 + rng.binomial(OPTIONS - 2, 0.3, (PROBLEMS, ROLLOUTS))  # wrong answers crowd, as they do
    density = difficulty + rng.normal(size=right.shape) + effect * ~right
    return Simulated(np.where(right, 0, wrong), density, rng.normal(size=right.shape))


def solved(pool: Simulated, signal: Floats | None = None) -> Bools:
    """Whether the vote is right, of all rollouts or of the half with the lowest signal; ties to the first."""
    answers = pool.answers
    if signal is not None:
        kept = np.sort(np.argsort(signal, axis=1)[:, :KEPT], axis=1)
        answers = np.take_along_axis(answers, kept, axis=1)
    counts = (answers[:, :, None] == answers[:, None, :]).sum(axis=2)
    return np.asarray(np.take_along_axis(answers, np.argmax(counts, axis=1)[:, None], axis=1)[:, 0] == 0)


def differences(pool: Simulated) -> Floats:
    """Pruning by density against pruning at random: exchangeable when density knows nothing."""
    return solved(pool, pool.density).astype(float) - solved(pool, pool.chance)


def _groups(pool: Simulated) -> NDArray[np.int64]:
    return np.repeat(np.arange(PROBLEMS), ROLLOUTS)


def _excludes_zero(pool: Simulated) -> float:
    low, high = paired_bootstrap(differences(pool))
    return 0.0 if low > 0 or high < 0 else 1.0


def _mcnemar(pool: Simulated) -> float:
    gained = differences(pool)
    return mcnemar(int((gained > 0).sum()), int((gained < 0).sum()))


TESTS: dict[str, Callable[[Simulated], float]] = {
    "McNemar, density against random pruning": _mcnemar,
    "sign flips of the mean of two random prunings": lambda pool: sign_flip(
        (differences(pool) + solved(pool, pool.density) - solved(pool, -pool.chance)) / 2
    ),
    "bootstrap interval excludes no difference": _excludes_zero,
    "AUROC within problems": lambda pool: auroc_within(pool.density.ravel(), ~pool.right.ravel(), _groups(pool)).p,
    "permutation within problems": lambda pool: label_permutation(
        pool.density.ravel(), pool.right.ravel(), _groups(pool), resamples=400
    ),
    "weighted r over the pool (the paper's criterion)": lambda pool: (
        correlation(pool.right.ravel(), pool.density.ravel()).p
    ),
}
CONFOUNDED = frozenset({"weighted r over the pool (the paper's criterion)"})
"""Not expected to keep its rate: it takes the difficulty of problems for a signal."""


def rates(pools: int, effect: float, first_seed: int = 0) -> dict[str, float]:
    """The share of pools in which each test finds something."""
    found = dict.fromkeys(TESTS, 0)
    for run in range(pools):
        pool = simulate(effect, first_seed + run)
        for name, test in TESTS.items():
            found[name] += test(pool) <= LEVEL
    return {name: count / pools for name, count in found.items()}


def limit(pools: int) -> float:
    """The rate that a test which keeps its level exceeds by chance once in a thousand runs of this script."""
    return LEVEL + 3.1 * math.sqrt(LEVEL * (1 - LEVEL) / pools)


def main() -> None:
    """Print the rates with no effect and with planted ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=int, default=1_000)
    pools = parser.parse_args().pools
    columns = {effect: rates(pools, effect, first_seed=int(effect * 1e6)) for effect in (0.0, 0.25, 0.5, 1.0)}
    print(f"{pools} pools of {PROBLEMS} problems x {ROLLOUTS} rollouts; share in which p <= {LEVEL}")
    print(f"{'':52}" + "".join(f"effect {effect:<6}" for effect in columns))
    for name in TESTS:
        print(f"{name:52}" + "".join(f"{column[name]:<13.3f}" for column in columns.values()))
    over = [name for name in TESTS if name not in CONFOUNDED and columns[0.0][name] > limit(pools)]
    if over:
        raise SystemExit(f"more false positives than {limit(pools):.3f}: {', '.join(over)}")


if __name__ == "__main__":
    main()
