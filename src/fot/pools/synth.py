"""Made-up pools of any size: word salad whose lengths, markers, commitments and outcomes follow given statistics.

For scale and for tests of power, never for claims about a model: the manifest says so, and with it every result.

A rollout depends on the seed, its cell and its problem alone, so any part of a pool can be made anywhere, in any order,
with the same bytes. Texts are cuttings of one long stretch of phrases; markers stand at random places at the drawn
density, a box at the drawn moment of commitment, and the final answer at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fot.pools.phrases import Phrases, phrases
from fot.pools.rows import Row, row_of

__all__ = ["BUDGET", "SYNTHETIC", "Cell", "Maker", "Wanted"]

Floats = NDArray[np.float64]

SYNTHETIC = "fot pool synth: word salad after published statistics"
BUDGET = 32_768
"""Most tokens of a rollout, as in the paper."""
CHARS_PER_TOKEN = 3.7
"""What makes 0.8 billion tokens close to 3 GB of text."""

_CORRECT, _WRONG, _SILENT = range(3)
_SPREAD = (0.60, 0.46, 0.35)
"""Standard deviation of log length within a problem, by outcome."""
_HARDER_IS_LONGER = 1.3
_DENSITY_SPREAD = 0.5
_LONGER_IS_DENSER = 0.3
_STUCK = 0.88
"""Share of the rollouts without an answer that run into the budget."""
_EARLY = 0.25
"""Share of the rollouts that already box their answer while they are still reasoning."""
_CLOSING_TOKENS = 60
_SHAPE = 0.8
_NODES = np.array([-2.0, -1.4, -1.0, -0.67, -0.39, -0.13, 0.13, 0.39, 0.67, 1.0, 1.4, 2.0])
"""Middles of twelve equal slices of a normal distribution, nearly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one model does on one benchmark; triples are for correct, wrong and silent rollouts."""

    model: str
    benchmark: str
    problems: int
    pass_rate: float
    """Share of rollouts that are correct."""
    reachable: float
    """Share of problems that any rollout solves."""
    silent: float
    """Share of rollouts without an answer."""
    tokens: tuple[float, float, float]
    """Mean lengths."""
    density: tuple[float, float, float]
    """Mean markers per 1,000 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A whole pool."""

    cells: tuple[Cell, ...]
    k: int = 32
    seed: int = 0
    token_ends: bool = False
    """Record where every token ends; otherwise prefixes are interpolated, as in the paper."""

    @property
    def problems(self) -> int:
        """Problems of all cells."""
        return sum(cell.problems for cell in self.cells)


class Maker:
    """Makes any problem of a wanted pool."""

    def __init__(self, wanted: Wanted) -> None:
        """Solve for what gives each cell its means; texts are made when they are asked for."""
        self.wanted = wanted
        self._firsts = np.cumsum([0, *(cell.problems for cell in wanted.cells)])
        self._plans: dict[int, _Plan] = {}

    def rows(self, first: int, last: int) -> Iterator[tuple[int, Row]]:
        """The rollouts of the problems with these numbers (0 up to `Wanted.problems`), each with its problem's."""
        for problem in range(first, last):
            cell = int(np.searchsorted(self._firsts, problem, side="right")) - 1
            if cell not in self._plans:
                self._plans = {cell: _Plan(self.wanted, cell)}
            for row in self._plans[cell].rollouts(problem - int(self._firsts[cell])):
                yield problem, row


class _Plan:
    """One cell with everything solved for."""

    def __init__(self, wanted: Wanted, number: int) -> None:
        self._wanted, self._number = wanted, number
        self.cell = cell = wanted.cells[number]
        ease = (np.arange(cell.problems) + 0.5) / cell.problems
        self._rates = _pass_rates(ease, cell.pass_rate, cell.reachable)
        self._effects = np.exp(_HARDER_IS_LONGER * (0.5 - ease))
        self._silent = min(cell.silent / max(1 - float(self._rates.mean()), 1e-9), 1.0)
        # One question is as hard for every model: the order of problems depends on the benchmark alone.
        self._order = _chance(wanted.seed, 1, cell.benchmark).permutation(cell.problems)
        shares = (self._rates, 1 - self._rates, 1 - self._rates)
        self._medians = [
            _median(mean, spread, self._effects, share, BUDGET - 1)
            for mean, spread, share in zip(self.cell.tokens[:2], _SPREAD, shares, strict=False)
        ]
        short = (cell.tokens[_SILENT] - _STUCK * BUDGET) / (1 - _STUCK)
        self._medians.append(_median(max(short, 2000.0), _SPREAD[_SILENT], self._effects, shares[_SILENT], BUDGET - 1))

    def rollouts(self, problem: int) -> Iterator[Row]:
        cell, k = self.cell, self._wanted.k
        name = f"{cell.benchmark.lower()}-{problem:05d}"
        chance = _chance(self._wanted.seed, 2, cell.model, cell.benchmark, str(problem))
        rank = int(self._order[problem])
        gold = int(_chance(self._wanted.seed, 3, cell.benchmark, str(problem)).integers(1000))
        drawn = chance.random((6, k))
        normal = chance.standard_normal((3, k))
        right = drawn[0] < self._rates[rank]
        outcomes = np.where(right, _CORRECT, np.where(drawn[1] < self._silent, _SILENT, _WRONG))
        medians = np.array(self._medians)[outcomes]
        lengths = medians * self._effects[rank] * np.exp(np.array(_SPREAD)[outcomes] * normal[0])
        tokens = np.clip(lengths, 300, BUDGET - 1).astype(np.int64)
        stuck = (outcomes == _SILENT) & (drawn[2] < _STUCK)
        tokens[stuck] = BUDGET
        joint = _LONGER_IS_DENSER * normal[0] + np.sqrt(1 - _LONGER_IS_DENSER**2) * normal[1]
        density = np.array(cell.density)[outcomes] * np.exp(_DENSITY_SPREAD * joint - _DENSITY_SPREAD**2 / 2)
        chars = (tokens * CHARS_PER_TOKEN * np.exp(0.03 * normal[2])).astype(np.int64)
        others = np.floor(-2.5 * np.log(np.maximum(drawn[3], 1e-12))).astype(np.int64)
        early = np.where(drawn[4] < _EARLY, 0.8 + 0.17 * drawn[5], 1.0)
        for rollout in range(k):
            answer = None
            if outcomes[rollout] != _SILENT:
                answer = gold if right[rollout] else (gold + 1 + 7 * int(others[rollout])) % 1000
            moment = None if answer is None or early[rollout] == 1 else float(early[rollout])
            text = _text(self._phrases, chance, int(chars[rollout]), float(density[rollout]), answer, moment)
            count = int(tokens[rollout])
            ends = np.arange(1, count + 1) * len(text) // count if self._wanted.token_ends else None
            yield row_of(
                model=cell.model,
                benchmark=cell.benchmark,
                problem_id=name,
                problem=f"Synthetic problem {name}: there is no question.",
                gold=str(gold),
                rollout_id=rollout,
                text=text,
                n_tokens=count,
                finish_reason="length" if stuck[rollout] else "stop",
                token_ends=None if ends is None else ends.astype(np.int32),
                seed=42 + rollout,
                source="synthetic",
            )

    @cached_property
    def _phrases(self) -> Phrases:
        return phrases()


def _text(
    words: Phrases, chance: np.random.Generator, chars: int, density: float, answer: int | None, moment: float | None
) -> str:
    """One text of about `chars` characters with `density` markers per 1,000 of them."""
    closing = "" if answer is None else f"\n</think>\n\n{words.closing} \\boxed{{{answer}}}."
    pieces = words.string(chance, max(chars - len(closing), 0), round(density * chars / 1000))
    if moment is not None:
        pieces.insert(2 * int(len(pieces) / 2 * moment), f"so that gives \\boxed{{{answer}}} and ")
    pieces.append(closing)
    return "".join(pieces)


def _chance(seed: int, purpose: int, *names: str) -> np.random.Generator:
    """A stream of its own for every purpose and name."""
    words = [int.from_bytes(name.encode(), "little") for name in names]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, purpose, *words])))


def _pass_rates(ease: Floats, mean: float, reachable: float) -> Floats:
    """A pass rate for every problem, rising with its ease: none for the unreachable, `mean` in the mean."""
    place = (ease - (1 - reachable)) / max(reachable, 1e-9)
    place = np.clip(place, 0.0, 1.0)
    low, high = -30.0, 30.0
    for _ in range(60):  # bisection: rates fall as the exponent grows
        middle = (low + high) / 2
        low, high = (middle, high) if _kumaraswamy(place, middle).mean() > mean else (low, middle)
    return _kumaraswamy(place, (low + high) / 2)


def _kumaraswamy(place: Floats, log_b: float) -> Floats:
    """Quantiles of a distribution on 0 to 1 that can have most of its mass at both ends."""
    rates = 1 - (1 - place) ** np.exp(-log_b)
    return np.asarray(np.where(place > 0, np.maximum(rates, 0.0) ** (1 / _SHAPE), 0.0))


def _median(mean: float, spread: float, effects: Floats, shares: Floats, most: float) -> float:
    """The median length that has this mean over problems (by their shares) once lengths are cut at `most`."""
    factors = effects[:, None] * np.exp(spread * _NODES)[None, :]
    weights = np.broadcast_to((shares / max(shares.sum(), 1e-9))[:, None] / len(_NODES), factors.shape)
    low, high = 1.0, 20.0 * most
    for _ in range(60):
        middle = (low + high) / 2
        reached = float((np.clip(middle * factors, 300, most) * weights).sum())
        low, high = (middle, high) if reached < mean else (low, middle)
    return (low + high) / 2


def split(problems: int, size: int) -> Sequence[tuple[int, int]]:
    """Problems in parts of `size`."""
    return [(first, min(first + size, problems)) for first in range(0, problems, size)]
