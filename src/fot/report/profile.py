"""The published figures as statistics that a made-up pool can follow.

Per model and benchmark the paper prints pass@1 and pass@32; per model the density of correct and of wrong rollouts; for
all of them the lengths by outcome; and the share without an answer over all, on the hard benchmarks, and in two cells.
What it does not print is filled in so that these come out: lengths are longer on harder benchmarks by a set ratio and
alike for all models, and the rest of the rollouts without an answer is dealt in proportion to those that are not right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from fot.core.registry import unknown_name
from fot.errors import ConfigError
from fot.pools.synth import Cell
from fot.report.published import published

__all__ = ["BENCHMARKS", "cells_after_paper"]

BENCHMARKS = {"AIME24": 30, "AIME25": 30, "AMC23": 40, "MATH500": 500}
"""Problems of each benchmark in the paper's pool."""
PREFIX = "synthetic/"

_HARD = ("AIME24", "AIME25", "AMC23")
_LONGER = {"AIME24": 2.6, "AIME25": 2.7, "AMC23": 1.6, "MATH500": 1.0}
_LONGER_WRONG = {"AIME24": 1.25, "AIME25": 1.25, "AMC23": 1.1, "MATH500": 1.0}


def cells_after_paper(
    *, scale: float = 1.0, problems: int | None = None, models: Iterable[str] = (), benchmarks: Iterable[str] = ()
) -> tuple[Cell, ...]:
    """Every model on every benchmark, with `scale` times as many problems (or with exactly `problems` of each)."""
    if not scale > 0 or (problems is not None and problems < 1):
        raise ConfigError("a made-up pool needs problems", "Give --scale more than 0, or --problems at least 1.")
    passing, reaching = _shares(2), _shares(3)
    known = list(dict.fromkeys(model for model, _ in passing))
    chosen = [_named(model, known, "model") for model in models] or known
    on = [_named(name, list(BENCHMARKS), "benchmark") for name in benchmarks] or list(BENCHMARKS)
    silent = _silent(passing)
    lengths = _lengths(passing, silent)
    densities = _densities(passing, silent)
    return tuple(
        Cell(
            model=PREFIX + model,
            benchmark=name,
            problems=problems or max(1, round(scale * BENCHMARKS[name])),
            pass_rate=passing[model, name],
            reachable=reaching[model, name],
            silent=silent[model, name],
            tokens=lengths[name],
            density=densities[model],
        )
        for model in chosen
        for name in on
    )


def _named(name: str, known: list[str], kind: str) -> str:
    if name not in known:
        raise unknown_name(kind, name, known)
    return name


Cells = dict[tuple[str, str], float]


def _rows(number: int) -> Iterable[tuple[str, ...]]:
    return [tuple(str(value) for value in row) for row in published()["table", number].table.rows]


def _numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def _shares(column: int) -> Cells:
    """A column of percentages of table 13, by model and benchmark: 2 is pass@1, 3 is pass@k."""
    return {(row[0], row[1]): float(row[column]) / 100 for row in _rows(13) if row[1]}


def _observed(row: int) -> list[float]:
    """A row of the table of outcomes: correct, wrong, no answer."""
    return [_numbers(cell)[0] for cell in list(_rows(1))[row][1:]]


def _silent(passing: Cells) -> Cells:
    """The share without an answer: as printed where it is, else in proportion to what is not right."""
    shares: Cells = {}
    subsets = {row[0]: _numbers(row[1])[0] / 32 for row in _rows(12)}
    hard = subsets.pop("AIME/AMC avg.")
    for name, share in subsets.items():
        model, _, benchmark = name.partition("/")
        shares[model, benchmark] = share
    weights = {cell: BENCHMARKS[cell[1]] for cell in passing}
    total = sum(weights.values())
    hard_weight = sum(weight for cell, weight in weights.items() if cell[1] in _HARD)
    easy = (_observed(0)[2] / 100 * total - hard * hard_weight) / (total - hard_weight)
    for group, mean in ((True, hard), (False, easy)):
        members = [cell for cell in passing if (cell[1] in _HARD) == group]
        given = sum(shares[cell] * weights[cell] for cell in members if cell in shares)
        rest = [cell for cell in members if cell not in shares]
        wanted = mean * sum(weights[cell] for cell in members) - given
        factor = wanted / sum((1 - passing[cell]) * weights[cell] for cell in rest)
        shares |= {cell: factor * (1 - passing[cell]) for cell in rest}
    return shares


def _lengths(passing: Cells, silent: Cells) -> dict[str, tuple[float, float, float]]:
    """Mean tokens by benchmark; over all rollouts of an outcome they have the printed mean."""
    correct, wrong, none = _observed(1)
    weights = {cell: BENCHMARKS[cell[1]] for cell in passing}
    right = {cell: weights[cell] * passing[cell] for cell in passing}
    other = {cell: weights[cell] * max(1 - passing[cell] - silent[cell], 0.0) for cell in passing}
    base = correct * sum(right.values()) / sum(right[cell] * _LONGER[cell[1]] for cell in passing)
    base_wrong = wrong * sum(other.values()) / sum(other[cell] * _LONGER_WRONG[cell[1]] for cell in passing)
    return {name: (base * _LONGER[name], base_wrong * _LONGER_WRONG[name], none) for name in BENCHMARKS}


def _densities(passing: Cells, silent: Cells) -> dict[str, tuple[float, float, float]]:
    """By model; `wrong` is printed for all that is not right, and split as the table of outcomes splits it."""
    _, wrong, none = _observed(2)
    densities = {}
    for row in _rows(10):
        model = row[0]
        own = [cell for cell in passing if cell[0] == model]
        weights = np.array([BENCHMARKS[name] for _, name in own], float)
        quiet = float((weights * [silent[cell] for cell in own]).sum())
        failed = float((weights * [1 - passing[cell] for cell in own]).sum())
        share = min(quiet / failed, 1.0)
        answered = float(row[3]) / (1 - share + share * none / wrong)
        densities[model] = (float(row[2]), answered, answered * none / wrong)
    return densities
