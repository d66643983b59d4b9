"""A sweep: what every configuration of a grid gets right and saves, and an honest choice among them.

Choosing the best of 340 on the problems that it is then reported on flatters it. So a choice is nested here: problems
are dealt into folds, the choice for each fold is made on all the others, and what it did in its fold is what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fot.core.ledger import full_model_flops
from fot.core.markers import PAPER_KERNEL
from fot.core.shapes import Shape, shape_of
from fot.errors import ConfigError
from fot.grading.base import Judgement
from fot.pools.index import index_of
from fot.pools.pieces import Pieces
from fot.pools.read import Problem
from fot.pools.shard import Shard
from fot.replay.evaluate import Judge
from fot.replay.grid import Configuration
from fot.replay.sheet import Sheet
from fot.replay.tree import Cells, sweep_share, sweep_sheet
from fot.stats.correlation import equal_groups
from fot.stats.paired import Interval, paired_bootstrap, sign_flip
from fot.stats.selection import folds

__all__ = ["BANNER", "Choice", "Figures", "Front", "Nested", "Rule", "Sweep", "front", "nested", "share", "sweep"]

BANNER = "TUNED ON TEST: chosen on the very problems that it is reported on, so it looks better than it is"

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rule = Literal["accuracy", "saving"]


@dataclass(frozen=True, slots=True)
class Figures:
    """All configurations on some problems; each field has one value a configuration. Savings are fractions."""

    problems: int
    correct: NDArray[np.int64]
    delta: NDArray[np.int64]
    wins: NDArray[np.int64]
    losses: NDArray[np.int64]
    balanced: Floats
    """Accuracy with every benchmark counting alike, as the paper weights its sweep."""
    attention: Floats
    attention_macro: Floats
    tokens: Floats
    latency: Floats
    full_model: Floats | None
    votes: Floats


class Sweep:
    """The outcome of every configuration on every problem, with self-consistency as the mark."""

    def __init__(
        self,
        configurations: Sequence[Configuration],
        problems: Sequence[Problem],
        cells: Cells,
        correct: Bools,
        shape: Callable[[str], Shape | None],
    ) -> None:
        """`cells` and `correct` hold self-consistency in a last row, behind the configurations."""
        self.configurations = tuple(configurations)
        self.problems = tuple(problems)
        self.cells = cells
        self.correct = correct[:-1]
        self.baseline: Bools = correct[-1]
        self._shapes = [shape(problem.model) for problem in problems]

    @property
    def everything(self) -> Bools:
        """The mask of all problems."""
        return np.ones(len(self.problems), np.bool_)

    def figures(self, which: Bools | None = None) -> Figures:
        """Sum the problems of the mask `which` up (all by default)."""
        which = self.everything if which is None else which
        correct, baseline = self.correct[:, which], self.baseline[which]
        wins = (correct & ~baseline).sum(axis=1)
        losses = (~correct & baseline).sum(axis=1)
        weights = equal_groups([p.benchmark for p, taken in zip(self.problems, which, strict=True) if taken])
        attention, tokens = self.cells.attention[:, which], self.cells.tokens[:, which].astype(np.float64)
        return Figures(
            problems=int(which.sum()),
            correct=correct.sum(axis=1),
            delta=wins - losses,
            wins=wins,
            losses=losses,
            balanced=correct @ weights / weights.sum() if len(weights) else np.zeros(len(correct)),
            attention=_saved(attention.sum(axis=1)),
            attention_macro=_macro(attention),
            tokens=_saved(tokens.sum(axis=1)),
            latency=_saved(self.cells.latency[:, which].sum(axis=1).astype(np.float64)),
            full_model=self._full_model(attention, tokens, which),
            votes=self.cells.votes[:-1, which].mean(axis=1) if which.any() else np.zeros(len(correct)),
        )

    def _full_model(self, attention: Floats, tokens: Floats, which: Bools) -> Floats | None:
        shapes = [shape for shape, taken in zip(self._shapes, which, strict=True) if taken]
        if not shapes or any(shape is None for shape in shapes):
            return None
        # Linear in Σ s² and Σ s: what one token adds beyond its attention is the price of a token.
        squares = np.array([4.0 * shape.layers * shape.hidden for shape in shapes if shape])
        singles = np.array([full_model_flops(1, shape) for shape in shapes if shape]) - squares
        return _saved(attention @ squares + tokens @ singles)


def _saved(costs: Floats) -> Floats:
    """One minus each cost over the last one, which is self-consistency's."""
    return 1.0 - costs[:-1] / costs[-1] if costs[-1] else np.zeros(len(costs) - 1)


def _macro(costs: Floats) -> Floats:
    baseline = costs[-1]
    if not costs.shape[1]:
        return np.zeros(len(costs) - 1)
    return np.asarray(
        np.where(baseline > 0, 1.0 - costs[:-1] / np.where(baseline > 0, baseline, 1.0), 0.0).mean(axis=1)
    )


def sweep(
    sheets: Sequence[Sheet],
    judge: Judge,
    configurations: Sequence[Configuration],
    *,
    shape: Callable[[str], Shape | None] = shape_of,
    pieces: Callable[[Sheet], Pieces | None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Sweep:
    """Run and judge every configuration on the problems of all sheets; `pieces` says where what is done is kept."""
    problems = [part.problem for sheet in sheets for part in sheet.parts]
    everything = _with_baseline(configurations)
    cells: list[Cells] = []
    correct: list[Bools] = []
    done = 0
    for sheet in sheets:
        cells.append(sweep_sheet(sheet, everything, pieces=pieces(sheet), progress=_from(progress, done)))
        correct.append(_judged(sheet, cells[-1], judge))
        done += len(sheet.parts)
    return Sweep(configurations, problems, Cells.joined(cells), np.concatenate(correct, axis=1), shape)


def share(
    sheets: Sequence[Sheet],
    configurations: Sequence[Configuration],
    pieces: Callable[[Sheet], Pieces],
    shard: Shard,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Leave one worker's share of a sweep as pieces, for `sweep` to join; how many were made now."""
    made = done = 0
    for sheet in sheets:
        made += sweep_share(sheet, _with_baseline(configurations), pieces(sheet), shard, _from(progress, done))
        done += len(sheet.parts)
    return made


def _with_baseline(configurations: Sequence[Configuration]) -> list[Configuration]:
    """Without checkpoints a funnel is self-consistency; any keep ratio and kernel will do."""
    if not configurations:
        raise ConfigError("a sweep needs at least one configuration", "Give schedules, keep ratios and kernel sizes.")
    return [*configurations, replace(configurations[0], checkpoints=())]


def _from(progress: Callable[[int], None], done: int) -> Callable[[int], None]:
    return lambda more: progress(done + more)


def _judged(sheet: Sheet, cells: Cells, judge: Judge) -> Bools:
    """Whether each winner is correct; every distinct answer to a problem is judged once."""
    keys = index_of(sheet.pool, PAPER_KERNEL, sheet.detector).answers
    pairs = cells.winners.astype(np.int64) + 1 + np.arange(len(sheet.parts)) * (len(keys) + 1)
    kinds, where = np.unique(pairs, return_inverse=True)
    at, winner = np.divmod(kinds, len(keys) + 1)
    golds = [sheet.parts[one].problem.gold for one in at.tolist()]
    answers = [keys[one - 1] if one else None for one in winner.tolist()]
    verdicts = np.array([verdict is Judgement.CORRECT for verdict in judge.judge(golds, answers)], np.bool_)
    return verdicts[where].reshape(pairs.shape)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for one fold on the problems outside it, and what it gained there and in the fold."""

    fold: int
    configuration: int
    tuned_on: int
    tuned_delta: int
    reported_on: int
    reported_delta: int


@dataclass(frozen=True, slots=True)
class Nested:
    """The honest estimate: every problem under the configuration that was chosen without it.

    `tuned_on_test` marks the other kind, one choice made and reported on all problems.
    """

    rule: Rule
    tuned_on_test: bool
    choices: tuple[Choice, ...]
    problems: int
    correct: int
    delta: int
    wins: int
    losses: int
    p: float
    ci95_pp: Interval
    attention: float
    tokens: float
    latency: float


def nested(swept: Sweep, *, count: int = 5, seed: int = 0, rule: Rule = "accuracy", on_test: bool = False) -> Nested:
    """Choose in each fold and report the choice's figures in it; `on_test` makes one choice on what it reports."""
    fold = np.zeros(len(swept.problems), np.int64) if on_test else deal(swept, count, seed)
    used = np.full(len(swept.problems), -1, np.int64)
    choices = []
    for one in np.unique(fold).tolist():
        held = fold == one
        tune = held if on_test else ~held
        chosen = best(swept.figures(tune), rule)
        used[held] = chosen
        reported = swept.correct[chosen, held].sum() - swept.baseline[held].sum()
        tuned = swept.correct[chosen, tune].sum() - swept.baseline[tune].sum()
        choices.append(Choice(one, chosen, int(tune.sum()), int(tuned), int(held.sum()), int(reported)))
    return _summed(swept, used, tuple(choices), rule, on_test, seed)


def deal(swept: Sweep, count: int, seed: int) -> NDArray[np.int64]:
    """Folds of problems; one question put to several models lies in one fold."""
    units = [(problem.benchmark, problem.problem_id) for problem in swept.problems]
    if count < 2 or len(set(units)) < count:
        raise ConfigError(
            f"{len(set(units))} problems cannot be dealt into {count} folds", "Give --folds a number from 2 to that."
        )
    return folds(units, count, seed, [benchmark for benchmark, _ in units])


def best(figures: Figures, rule: Rule) -> int:
    """The number of the best configuration.

    `accuracy`: the most accurate; of equals the one that saves most attention. `saving`: the one that saves most
    attention among those that lose nothing against self-consistency; where all lose, the one that loses least.
    """
    if rule == "saving":
        lost = np.minimum(figures.delta, 0)
        return int(np.lexsort((-figures.attention, -lost))[0])
    return int(np.lexsort((-figures.attention, -np.round(figures.balanced, 12)))[0])


def _summed(
    swept: Sweep, used: NDArray[np.int64], choices: tuple[Choice, ...], rule: Rule, on_test: bool, seed: int
) -> Nested:
    columns = np.arange(len(used))
    correct = swept.correct[used, columns]
    differences = correct.astype(np.float64) - swept.baseline
    cells = swept.cells

    def saved(costs: Floats | NDArray[np.int64]) -> float:
        return float(1.0 - costs[used, columns].sum() / costs[-1].sum())

    return Nested(
        rule=rule,
        tuned_on_test=on_test,
        choices=choices,
        problems=len(used),
        correct=int(correct.sum()),
        delta=int(differences.sum()),
        wins=int((differences > 0).sum()),
        losses=int((differences < 0).sum()),
        p=sign_flip(differences, seed),
        ci95_pp=Interval(*(100 * end for end in paired_bootstrap(differences, seed))),
        attention=saved(cells.attention),
        tokens=saved(cells.tokens),
        latency=saved(cells.latency),
    )


@dataclass(frozen=True, slots=True)
class Front:
    """Configurations that no other beats in both accuracy and attention saved, by rising saving.

    They were found on one half of the problems, and `figures` are those of the other half (`tuned_on_test`: of the
    same).
    """

    tuned_on_test: bool
    configurations: tuple[int, ...]
    tuned_on: int
    figures: Figures


def front(swept: Sweep, *, seed: int = 0, on_test: bool = False) -> Front:
    """The Pareto front of accuracy (benchmarks counting alike) and attention saved."""
    half = swept.everything if on_test else deal(swept, 2, seed) == 0
    tuned = swept.figures(half)
    order = np.lexsort((-tuned.balanced, -tuned.attention))  # by falling saving; of equal ones the most accurate first
    members: list[int] = []
    reached = -1.0
    for at in order.tolist():
        if tuned.balanced[at] > reached:
            reached = float(tuned.balanced[at])
            members.append(at)
    members.reverse()
    return Front(on_test, tuple(members), int(half.sum()), swept.figures(half if on_test else ~half))
