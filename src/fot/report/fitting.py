"""Learning a kernel: which strings of a pool, in whatever language or style, go with being wrong?

    fitted = fit(material, size=21)
    fitted.markers                   # strings with their correlations, by falling |r|
    fitted.held_out                  # what kernels chosen in the same way tell on problems they were not chosen on

Candidates are runs of one to three words (of up to four characters where a script has no spaces) that many problems
share, so that what a problem is about does not become a marker. The paper's criterion keeps those whose density has a
negative benchmark-weighted correlation with being correct (p < 0.05). With hundreds of candidates some meet it by
chance, and hard problems can make words frequent and answers wrong at once; so whether there is a signal is judged on
held-out problems, and within them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fot.core.markers import Kernel
from fot.errors import ConfigError
from fot.report.exhibit import NotHere
from fot.report.material import Material
from fot.stats.correlation import Correlation, correlation, equal_groups
from fot.stats.ranking import Ranking, auroc_within
from fot.stats.selection import benjamini_hochberg, folds

__all__ = ["Fitted", "HeldOut", "Marker", "candidates", "fit"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

LARGEST_SAMPLE = 1_500
MOST_CANDIDATES = 400
_LEAST_PREVALENCE = 0.01
_LEAST_PROBLEMS = 0.25
_ALIKE = 0.95
_WITHOUT_SPACES = r"[\u3040-\u30ff\u3400-\u9fff]"
_TOKEN = re.compile(rf"{_WITHOUT_SPACES}|[^\W\d_]+(?:['’][^\W\d_]+)?|[,.!?;:。，！？]")  # noqa: RUF001
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Marker:
    """A string of the learnt kernel. `q` is p adjusted for the number of candidates."""

    text: str
    r: float
    p: float
    q: float
    prevalence: float
    ratio: float
    """Density in wrong rollouts over that in correct ones; infinite where correct ones have none."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A kernel's density on problems that it was not chosen on, folds put together."""

    name: str
    r: Correlation
    within: Ranking

    @property
    def is_present(self) -> bool:
        """Does it tell wrong from right within problems, for certain?"""
        return bool(self.within.interval.low > 0.5)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was learnt. `markers` are empty where nothing met the criterion."""

    markers: tuple[Marker, ...]
    tried: int
    held_out: HeldOut
    paper: HeldOut
    """The paper's kernel on the same rollouts; it has seen none of them."""
    stable: float
    """How many of the markers were chosen in a fold as well, on average: a share."""

    @property
    def kernel(self) -> Kernel | None:
        """The markers as a kernel for `fot:kernel=...`."""
        return Kernel("fitted", tuple(marker.text for marker in self.markers)) if self.markers else None


def candidates(texts: Sequence[tuple[int, str]]) -> list[str]:
    """Strings that enough of these (problem, text) pairs share, the most widespread first."""
    seen: Counter[str] = Counter()
    spread: dict[str, set[int]] = {}
    for problem, text in texts:
        for gram in set(_grams(text)):
            seen[gram] += 1
            spread.setdefault(gram, set()).add(problem)
    problems = len({problem for problem, _ in texts})
    least = max(3.0, _LEAST_PREVALENCE * len(texts))
    wide = [
        gram
        for gram, count in seen.items()
        if count >= least and count < len(texts) and len(spread[gram]) >= max(2, _LEAST_PROBLEMS * problems)
    ]
    return sorted(wide, key=lambda gram: (-len(spread[gram]), -seen[gram], gram))


def _grams(text: str) -> Iterator[str]:
    """Runs of tokens as they stand in the text, on one line, with a letter in them."""
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    for first, (start, end) in enumerate(tokens):
        most = 4 if end == start + 1 and re.match(_WITHOUT_SPACES, text[start]) else 3
        for last in range(first, min(first + most, len(tokens))):
            stop = tokens[last][1]
            if last > first and stop - tokens[last][0] + tokens[last - 1][1] - stop not in (0, -1):
                break  # something that is no token stands between
            gram = text[start:stop]
            if "\n" in gram or len(gram) > 30:
                break
            if _LETTER.match(gram):
                yield gram


def fit(
    material: Material,
    *,
    size: int = 21,
    count: int = 5,
    criterion: str = "pooled",
    progress: Callable[[int], None] = lambda _: None,
) -> Fitted:
    """Learn at most `size` markers, and judge the way of learning on `count` folds of problems.

    `criterion` is `pooled`, the paper's, or `within`: more frequent in wrong rollouts of the same problem (AUROC above
    0.5, p < 0.05). `progress` is told the texts read. Raises `ConfigError` for too few problems.
    """
    if criterion not in ("pooled", "within"):
        raise ConfigError(f"the criterion is '{criterion}'", "Give pooled or within.")
    if size < 1:
        raise ConfigError(f"the size is {size}; a kernel needs at least one marker", "Give --size 1 or more.")
    rollouts = material.rollouts
    if rollouts.correct.all() or not rollouts.correct.any():
        raise NotHere("all rollouts are right, or all wrong: there is nothing to tell apart")
    units = [(problem.benchmark, problem.problem_id) for problem in material.problems]
    if len(set(units)) < count:
        raise ConfigError(f"{len(set(units))} problems cannot be dealt into {count} folds", "Give fewer --folds.")
    fold = folds(units, count, material.seed, [benchmark for benchmark, _ in units])[rollouts.problem]
    sample = _sample(material)
    strings = candidates([(int(rollouts.problem[at]), text) for at, text in _texts(material, sample)])[:MOST_CANDIDATES]
    densities = _densities(material, sample, strings, progress)
    judge = _Judge(material, np.flatnonzero(sample), strings, densities, criterion)
    chosen = judge.choose(np.ones(len(sample), np.bool_), size)
    by_fold = [judge.choose(fold != one, size) for one in range(count)]
    union = sorted({at for own in (chosen, *by_fold) for at in own})
    full = _densities(material, np.ones(len(sample), np.bool_), [strings[at] for at in union], progress)
    whole = dict(zip(union, full, strict=True))
    composite = np.zeros(len(sample))
    for one, own in enumerate(by_fold):
        held = fold == one
        composite[held] = sum((whole[at][held] for at in own), np.zeros(int(held.sum())))
    return Fitted(
        markers=judge.describe(chosen, whole),
        tried=len(strings),
        held_out=_held_out("learnt on other problems", material, composite),
        paper=_held_out("the paper's", material, rollouts.density),
        stable=float(np.mean([len(set(own) & set(chosen)) / max(len(chosen), 1) for own in by_fold])),
    )


def _sample(material: Material) -> Bools:
    """At most `LARGEST_SAMPLE` rollouts, spread evenly over the problems."""
    each = max(2, LARGEST_SAMPLE // len(material.problems))
    first = np.concatenate([[0], np.cumsum(material.sizes)[:-1]])
    rank = np.arange(int(material.sizes.sum())) - first[material.rollouts.problem]
    return np.asarray(rank < each)


def _texts(material: Material, which: Bools) -> Iterator[tuple[int, str]]:
    return ((at, text) for at, text in material.texts() if which[at])


def _densities(
    material: Material, which: Bools, strings: Sequence[str], progress: Callable[[int], None]
) -> list[Floats]:
    """For each string its occurrences per 1,000 characters in the rollouts `which`."""
    found = np.zeros((len(strings), int(which.sum())))
    for at, (done, text) in enumerate(_texts(material, which)):
        found[:, at] = [text.count(string) for string in strings]
        found[:, at] *= 1000.0 / max(len(text), 1)
        progress(done)
    return list(found)


class _Judge:
    """Chooses strings on some rollouts of the sample."""

    def __init__(
        self, material: Material, rows: Ints, strings: Sequence[str], densities: Sequence[Floats], criterion: str
    ) -> None:
        self._material = material
        self._rows = rows
        self._strings = strings
        self._densities = densities
        self._criterion = criterion
        benchmark = np.array([problem.benchmark for problem in material.problems])
        self._benchmark = benchmark[material.rollouts.problem]
        self._told: list[Correlation] = []

    def choose(self, which: Bools, size: int) -> list[int]:
        """The strings that meet the criterion on the rollouts `which`, strongest first, no two of them alike."""
        own = which[self._rows]
        rows = self._rows[own]
        right = self._material.rollouts.correct[rows]
        weights = equal_groups(self._benchmark[rows])
        scored: list[tuple[float, int]] = []
        for at, density in enumerate(self._densities):
            strength = self._strength(density[own], right, rows, weights)
            if strength is not None:
                scored.append((strength, at))
        chosen: list[int] = []
        for _, at in sorted(scored, reverse=True):
            mine = self._densities[at][own]
            if len(chosen) < size and not any(self._alike(mine, self._densities[other][own]) for other in chosen):
                chosen.append(at)
        return chosen

    def _strength(self, density: Floats, right: Bools, rows: Ints, weights: Floats) -> float | None:
        if self._criterion == "pooled":
            told = correlation(right, density, weights)
            return -told.r if told.r < 0 and told.p < 0.05 else None
        ranking = auroc_within(density, ~right, self._material.rollouts.problem[rows], self._material.seed)
        return ranking.auroc if ranking.auroc > 0.5 and ranking.p < 0.05 else None

    @staticmethod
    def _alike(one: Floats, other: Floats) -> bool:
        return correlation(one, other).r > _ALIKE

    def describe(self, chosen: Sequence[int], whole: dict[int, Floats]) -> tuple[Marker, ...]:
        """The chosen strings over all rollouts of the pool; q corrects for all candidates that were tried."""
        right = self._material.rollouts.correct
        weights = equal_groups(self._benchmark)
        rows, sample_weights = self._rows, equal_groups(self._benchmark[self._rows])
        tried = [correlation(right[rows], density, sample_weights).p for density in self._densities]
        adjusted = benjamini_hochberg(np.nan_to_num(np.array(tried), nan=1.0))
        markers = []
        for at in chosen:
            told = correlation(right, whole[at], weights)
            low = float(whole[at][right].mean())
            ratio = float(whole[at][~right].mean()) / low if low > 0 else float("inf")
            share = float((whole[at] > 0).mean())
            markers.append(Marker(self._strings[at], told.r, told.p, float(adjusted[at]), share, ratio))
        return tuple(sorted(markers, key=lambda marker: marker.r))


def _held_out(name: str, material: Material, density: Floats) -> HeldOut:
    rollouts = material.rollouts
    benchmark = np.array([problem.benchmark for problem in material.problems])[rollouts.problem]
    return HeldOut(
        name,
        correlation(rollouts.correct, density, equal_groups(benchmark)),
        auroc_within(density, ~rollouts.correct, rollouts.problem, material.seed),
    )
