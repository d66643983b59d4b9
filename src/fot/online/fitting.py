"""From timed stretches of decoding to step times by batch and by positions: a small least squares."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from fot.core.timing import Knot

__all__ = ["Steps", "Stretch", "fit_line", "fit_steps"]

_ROUNDS = 30
_SHARE = 0.02  # residuals below this share of a step weigh alike


@dataclass(frozen=True, slots=True)
class Stretch:
    """`steps` steps in a row of one batch: what they took, and the positions held, on the mean of the steps."""

    batch: int
    steps: float
    held: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Steps:
    """What was found: `error` is the median of the residuals, each as a share of its stretch."""

    knots: tuple[Knot, ...]
    kv_s: float
    error: float


def fit_steps(stretches: Sequence[Stretch]) -> Steps:
    """A step time for every batch that was tried, and one for each position held.

    Residuals are shares, and count by their size rather than by its square: odd stretches, on a machine that others
    use too, do not bend the line.
    """
    batches = sorted({each.batch for each in stretches})
    rows = [[each.steps * (each.batch == batch) for batch in batches] + [each.steps * each.held] for each in stretches]
    seconds = [each.seconds for each in stretches]
    found = _least(rows, seconds)
    if found[-1] < 0:  # a machine on which more positions seem to be faster: they are free
        found = [*_least([row[:-1] for row in rows], seconds), 0.0]
    floor = min(each.seconds / each.steps for each in stretches) / 10
    knots = tuple(Knot(batch, max(step_s, floor)) for batch, step_s in zip(batches, found, strict=False))
    bases = dict(knots)
    errors = [
        abs(each.steps * (bases[each.batch] + found[-1] * each.held) - each.seconds) / each.seconds
        for each in stretches
    ]
    return Steps(knots, found[-1], statistics.median(errors))


def fit_line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope through (x, y), neither below 0; a single x gives the slope through 0."""
    if len({x for x, _ in points}) < 2:
        total = sum(x for x, _ in points)
        return (0.0, sum(y for _, y in points) / total) if total else (min((y for _, y in points), default=0.0), 0.0)
    at, slope = _least([[1.0, x] for x, _ in points], [y for _, y in points])
    if at < 0:
        return 0.0, max(_least([[x] for x, _ in points], [y for _, y in points])[0], 0.0)
    return (at, slope) if slope >= 0 else (statistics.median(y for _, y in points), 0.0)


def _least(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """The coefficients with the least sum of relative residuals: least squares, weighted anew each round."""
    weights = [1.0 / max(value, 1e-9) ** 2 for value in values]
    found = _solve(rows, values, weights)
    for _ in range(_ROUNDS):
        shares = [
            abs(sum(x * c for x, c in zip(row, found, strict=True)) - value) / max(value, 1e-9)
            for row, value in zip(rows, values, strict=True)
        ]
        weighted = [weight / max(share, _SHARE) for weight, share in zip(weights, shares, strict=True)]
        found = _solve(rows, values, weighted)
    return found


def _solve(rows: Sequence[Sequence[float]], values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Weighted least squares by the normal equations; columns are scaled, and a hair of ridge keeps them solvable."""
    width = len(rows[0])
    scales = [max(*(abs(row[at]) for row in rows), 1e-30) for at in range(width)]
    matrix = [[0.0] * (width + 1) for _ in range(width)]
    for row, value, weight in zip(rows, values, weights, strict=True):
        scaled = [x / scale for x, scale in zip(row, scales, strict=True)]
        for i, x in enumerate(scaled):
            for j, y in enumerate(scaled):
                matrix[i][j] += weight * x * y
            matrix[i][width] += weight * x * value
    ridge = 1e-12 * max(matrix[i][i] for i in range(width))
    for i in range(width):
        matrix[i][i] += ridge
    return [x / scale for x, scale in zip(_eliminate(matrix), scales, strict=True)]


def _eliminate(matrix: list[list[float]]) -> list[float]:
    """Solve a system whose last column is the right-hand side; `matrix` is used up."""
    width = len(matrix)
    for at in range(width):
        pivot = max(range(at, width), key=lambda row: abs(matrix[row][at]))
        matrix[at], matrix[pivot] = matrix[pivot], matrix[at]
        for row in range(width):
            if row != at:
                share = matrix[row][at] / matrix[at][at]
                matrix[row] = [x - share * y for x, y in zip(matrix[row], matrix[at], strict=True)]
    return [matrix[at][width] / matrix[at][at] for at in range(width)]
