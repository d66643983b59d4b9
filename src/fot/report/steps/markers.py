"""The signal: which markers go with being wrong, and what any signal can tell among rollouts that pruning compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fot.core.markers import PAPER_KERNEL
from fot.core.policy import Need
from fot.core.vote import Ballot
from fot.methods import Context
from fot.methods.signals import signal_for, signal_names
from fot.report import drawing
from fot.report.exhibit import Exhibit, Figure, NotHere
from fot.report.material import Material
from fot.report.table import Column, Table, Value, number
from fot.report.words import count
from fot.stats.correlation import correlation, equal_groups
from fot.stats.ranking import Ranking, auroc_within

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["markers", "signals"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def markers(material: Material) -> Exhibit:
    """Each marker of the kernel against correctness: over the pool as the paper has it, and within problems."""
    rollouts = material.rollouts
    benchmark = np.array([problem.benchmark for problem in material.problems])[rollouts.problem]
    weights = equal_groups(benchmark)
    chars = np.maximum(material.chars, 1)
    rows: list[tuple[Value, ...]] = []
    for name, counts in zip(PAPER_KERNEL.markers, material.marker_counts, strict=True):
        rows.append((name, *_marker(material, 1000.0 * counts / chars, counts > 0, weights)))
    rows.sort(key=lambda row: number(row[1]) if row[1] is not None else 1.0)
    rows.append(("all together", *_marker(material, rollouts.density, rollouts.density > 0, weights)))
    columns = (
        Column("marker", "marker"),
        Column("r", "weighted r with correct", "number3"),
        Column("p", "p", "p"),
        Column("prevalence", "rollouts with it", "share"),
        Column("ratio", "wrong / correct", "times"),
        Column("auroc", "AUROC within problems", "number"),
        Column("interval", "95% interval", "interval-number"),
    )
    passing = sum(number(row[1]) < 0 and number(row[2]) < 0.05 for row in rows[:-1])
    inside = sum(isinstance(row[6], tuple) and row[6][0] > 0.5 for row in rows[:-1])
    n = correlation(rollouts.correct, rollouts.density, weights).n
    whole = rows[-1]
    sentence = (
        f"{passing} of the {count(len(rows) - 1, 'marker')} meet the paper's criterion here (weighted r < 0, p < 0.05; "
        f"effective n {n:,.0f}). Compared within a problem, where nothing but the rollout differs, {inside} are denser "
        f"in wrong rollouts (their intervals lie above 0.5); all together they tell wrong from right with an AUROC of "
        f"{number(whole[5]):.2f}."
    )
    notes = (
        "r is between the marker's density and being correct, every benchmark counting alike; p takes rollouts for "
        "independent, as the paper does. Within problems: how often a wrong rollout has the higher density of the two, "
        "over all pairs of a wrong and a right rollout of one problem; 0.5 is chance. Whole texts, so that length has "
        "had its say.",
    )
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows), frozenset({len(rows) - 1})), notes=notes)


def _marker(material: Material, density: Floats, present: Bools, weights: Floats) -> tuple[Value, ...]:
    right = material.rollouts.correct
    told = correlation(right, density, weights)
    ranking = auroc_within(density, ~right, material.rollouts.problem, material.seed)
    low = density[right].mean() if right.any() else 0.0
    ratio = float(density[~right].mean() / low) if low > 0 and (~right).any() else None
    r = None if np.isnan(told.r) else told.r
    return (r, told.p, float(present.mean()), ratio, ranking.auroc, (ranking.interval.low, ranking.interval.high))


@dataclass(frozen=True, slots=True)
class _Seen:
    """One rollout at a checkpoint as a signal sees it."""

    rollout: int
    tokens: int
    text: str
    density: float
    final_tokens: int
    answer: str | None = None

    @property
    def chars(self) -> int:
        return len(self.text)


SIGNAL_CUTS = (2_000, 4_000, 6_000, 10_000, 14_000)
TOLD = frozenset({"density", "length", "random"})
"""Signals that need no reading: the index has the first two, and the third is chance."""


def read_signals() -> list[str]:
    """The signals that read text and need nothing else, those of third parties included."""
    named = {name: signal_for(name, Context(k=1)).needs for name in signal_names() if name not in TOLD}
    return [name for name, needs in named.items() if needs <= {Need.TEXT}]


SIGNAL_COLUMNS = (
    Column("tokens", "at tokens", "count"),
    Column("signal", "signal"),
    Column("running", "rollouts running", "count"),
    Column("problems", "problems with both kinds", "count"),
    Column("auroc", "AUROC", "number"),
    Column("interval", "95% interval", "interval-number"),
    Column("p", "p of 0.5", "p"),
)


def signals(material: Material) -> Exhibit:
    """AUROC within problems of every signal among rollouts that are still running, at several cuts."""
    rollouts = material.rollouts
    rows: list[tuple[Value, ...]] = []
    wanted: list[tuple[int, Bools]] = []
    for tokens in SIGNAL_CUTS:
        cut = material.at(tokens)
        going = cut.running & ~cut.answered
        if going.sum() >= 30:
            wanted.append((tokens, going))
    if not wanted:
        raise NotHere("fewer than 30 rollouts are still running at any checkpoint")
    names = read_signals()
    read = {(name, tokens): values for name in names for tokens, values in _from_texts(material, name, wanted).items()}
    for tokens, going in wanted:
        measured: dict[str, Floats] = {"density": material.at(tokens).density}
        measured |= {name: read[name, tokens] for name in names}
        measured["final length"] = rollouts.tokens.astype(np.float64)
        for name, values in measured.items():
            ranking = auroc_within(values[going], ~rollouts.correct[going], rollouts.problem[going], material.seed)
            if ranking.pairs:
                rows.append((tokens, name, int(going.sum()), *_told(ranking)))
    if not rows:
        raise NotHere("no problem has both right and wrong rollouts among those still running")
    density = [row for row in rows if row[1] == "density"]
    best = max(density, key=lambda row: number(row[4]))
    sure = [row for row in density if isinstance(row[5], tuple) and row[5][0] > 0.5]
    sentence = (
        f"Among the rollouts that pruning really compares (of one problem, running and without an answer) density "
        f"tells wrong from right with an AUROC of {number(best[4]):.2f} at best (at {best[0]:,} tokens; 0.5 is "
        "chance); its "
        f"interval lies above 0.5 at {len(sure)} of {count(len(density), 'cut')}."
    )
    figure = Figure("signals", "AUROC among running rollouts of one problem, with 95% intervals over problems.",
                    lambda canvas: _draw(canvas, rows), 7, 3.1)  # fmt: skip
    notes = (
        "Final length is known to no live run; it shows how much there is to be told. Repetition: how well the last "
        "6,000 characters compress. Agreement: whether the answer that a rollout last named leads among those that "
        "have "
        "answered. Compare methods by the vote, not by this table alone: a signal may rank badly and "
        "still prune what the vote can spare.",
    )
    return Exhibit(sentence=sentence, table=Table(SIGNAL_COLUMNS, tuple(rows)), figures=(figure,), notes=notes)


def _told(ranking: Ranking) -> tuple[Value, ...]:
    return ranking.groups, ranking.auroc, (ranking.interval.low, ranking.interval.high), ranking.p


def _from_texts(material: Material, name: str, wanted: list[tuple[int, Bools]]) -> dict[int, Floats]:
    """A signal that reads text (of several ranks the first), at each cut; 0 where a rollout does not run."""
    measure: Callable[..., float | tuple[float, ...]] = signal_for(name, Context(k=1)).measure
    cuts = {tokens: material.cut_chars(tokens) for tokens, _ in wanted}
    found = {tokens: np.zeros(len(going)) for tokens, going in wanted}
    banks = {tokens: _banks(material, tokens) for tokens, _ in wanted}
    problem = material.rollouts.problem.tolist()
    for at, text in material.texts():
        for tokens, going in wanted:
            if going[at]:
                seen = _Seen(0, tokens, text[: cuts[tokens][at]], 0.0, 0)
                told = measure(seen, banks[tokens][problem[at]])
                found[tokens][at] = told[0] if isinstance(told, tuple) else told
    return found


def _banks(material: Material, tokens: int) -> list[list[Ballot]]:
    """For each problem the answers of the rollouts that have one by then."""
    numbers = material.flat(lambda index, rows: index.committed(rows, index.cuts(rows, tokens)))
    banks: list[list[Ballot]] = [[] for _ in material.problems]
    which = np.repeat(np.arange(len(material.sheets)), [sum(len(p.rows) for p in s.parts) for s in material.sheets])
    for at in np.flatnonzero(numbers >= 0).tolist():
        problem = int(material.rollouts.problem[at])
        banks[problem].append(Ballot(at, material.indexes[which[at]].answers[numbers[at]]))
    return banks


def _draw(canvas: Canvas, rows: list[tuple[Value, ...]]) -> None:
    axes = drawing.panel(canvas, x="tokens generated", y="AUROC, wrong above right")
    names = list(dict.fromkeys(str(row[1]) for row in rows))
    for at, name in enumerate(names):
        own = [row for row in rows if row[1] == name]
        x = np.array([number(row[0]) for row in own]) + 120 * (at - (len(names) - 1) / 2)  # beside each other
        y = np.array([number(row[4]) for row in own])
        reach = np.abs(np.array([row[5] for row in own], float).T - y)
        axes.errorbar(x, y, reach, fmt=drawing.MARKS[at], ls=drawing.DASHES[at], color=drawing.SERIES[at], label=name,
                      capsize=2, elinewidth=0.9)  # fmt: skip
    axes.axhline(0.5, color=drawing.MUTED, lw=0.9, label="chance")
    axes.set_xticks(sorted({number(row[0]) for row in rows}))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    drawing.legend(canvas, len(names) + 1, "outside upper center")
