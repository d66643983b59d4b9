"""Choosing a configuration: what a choice is worth on problems that it was not made on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fot.replay.grid import NAMED, Configuration
from fot.replay.sweep import BANNER, Front, Nested, Rule, Sweep, deal, front, nested
from fot.report import drawing
from fot.report.exhibit import Exhibit, Figure, NotHere
from fot.report.material import Material
from fot.report.table import Column, Table, Value, number
from fot.report.words import count, gains, interval_pp, percent, points, signed, unpublished
from fot.stats.paired import mcnemar, paired_bootstrap

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["per_model", "search", "transfer"]

Bools = NDArray[np.bool_]
DEFAULT = Configuration(NAMED["Mid"], 0.67)
FOLDS = 5
RULES: tuple[Rule, ...] = ("accuracy", "saving")
CAPTION = (
    "All 340 configurations on all problems, by number of checkpoints (set apart a little). "
    "The front is that of these problems, in hindsight."
)


def search(material: Material) -> Exhibit:
    """All 340 configurations, the Pareto front, and a choice among them."""
    material.need_gold()
    all_, on_test = material.swept, material.tune_on_test
    folds = min(FOLDS, len({(p.benchmark, p.problem_id) for p in material.problems}))
    if folds < 2:
        raise NotHere("one problem cannot be split into some to choose on and others to report on")
    chosen = {rule: nested(all_, count=folds, seed=material.seed, rule=rule, on_test=on_test) for rule in RULES}
    table = _choices(material, chosen)
    figures = all_.figures()
    at = all_.configurations.index(DEFAULT)
    better = int((figures.delta > figures.delta[at]).sum())
    tied = int((figures.delta == figures.delta[at]).sum()) - 1
    best = chosen["accuracy"]
    tuned, honest = (points(number(table.column(name)[0])) for name in ("tuned", "reported"))
    where = "on the same problems, which flatters it" if on_test else "on problems it was not chosen on"
    sentence = (
        f"The most accurate of {len(all_.configurations)} configurations gains {tuned} points where it is chosen and "
        f"{honest} {where} ({interval_pp(best.ci95_pp)}), saving {percent(best.attention)} of the attention. On all "
        f"problems {count(better, 'configuration')} solve more than the paper's default and {tied} solve as many."
    )
    edge = _front_table(all_, front(all_, seed=material.seed, on_test=on_test))
    return Exhibit(
        sentence=sentence,
        table=table,
        more=(("front-tuned" if on_test else "front", edge), ("configurations", _all_table(all_))),
        figures=(Figure("sweep", CAPTION, lambda canvas: _draw(canvas, all_), 6.6, 3.8),),
        notes=(_how(material, folds),),
        banner=BANNER if on_test else None,
    )


def _choices(material: Material, chosen: dict[Rule, Nested]) -> Table:
    """What each rule's choice gains where it was made and where it counts, and what the default gains."""
    all_ = material.swept
    how, other = (
        ("chosen on them all", "on the same problems")
        if material.tune_on_test
        else ("chosen by folds", "on other problems")
    )
    rows: list[tuple[Value, ...]] = []
    for rule, choice in chosen.items():
        tuned = sum(one.tuned_delta for one in choice.choices) / sum(one.tuned_on for one in choice.choices)
        interval = (choice.ci95_pp.low, choice.ci95_pp.high)
        rows.append((f"best by {rule}, {how}", choice.problems, tuned, choice.delta / choice.problems,
                     interval, choice.wins, choice.losses, choice.p, choice.attention, choice.latency))  # fmt: skip
    figures, at = all_.figures(), all_.configurations.index(DEFAULT)
    wins, losses = int(figures.wins[at]), int(figures.losses[at])
    low, high = paired_bootstrap(all_.correct[at].astype(float) - all_.baseline, material.seed)
    rows.append(("the paper's default, not chosen here", figures.problems, None, (wins - losses) / figures.problems,
                 (100 * low, 100 * high), wins, losses, mcnemar(wins, losses), float(figures.attention[at]),
                 float(figures.latency[at])))  # fmt: skip
    columns = (
        Column("choice", "configuration"),
        Column("problems", "problems", "count"),
        Column("tuned", "where chosen (pp)", "points"),
        Column("reported", f"{other} (pp)", "points"),
        Column("ci_pp", "95% interval (pp)", "interval-pp"),
        Column("wins", "won", "count"),
        Column("losses", "lost", "count"),
        Column("p", "p", "p"),
        Column("attention", "attention saved", "share"),
        Column("latency", "latency saved", "share"),
    )
    return Table(columns, tuple(rows))


def _how(material: Material, folds: int) -> str:
    if material.tune_on_test:
        return "Everything here was chosen on what it reports."
    halves = "The front is found on one half of the problems; its figures are from the other half."
    return f"Folds: {folds}, seed {material.seed}. {halves}"


def _front_table(all_: Sweep, edge: Front) -> Table:
    columns = (
        Column("configuration", "on the Pareto front"),
        Column("problems", "problems", "count"),
        Column("delta", "gained", "signed"),
        Column("attention", "attention saved", "share"),
        Column("tokens", "tokens saved", "share"),
        Column("latency", "latency saved", "share"),
        Column("votes", "votes", "number1"),
    )
    f = edge.figures
    rows = tuple(
        (all_.configurations[at].spec.text, f.problems, int(f.delta[at]), float(f.attention[at]), float(f.tokens[at]),
         float(f.latency[at]), float(f.votes[at]))
        for at in edge.configurations
    )  # fmt: skip
    return Table(columns, rows)


def _all_table(all_: Sweep) -> Table:
    figures = all_.figures()
    columns = (
        Column("spec", "configuration"),
        Column("checkpoints", "checkpoints", "count"),
        Column("keep", "keep", "number"),
        Column("correct", "correct", "count"),
        Column("delta", "gained", "signed"),
        Column("attention", "attention saved", "share"),
        Column("tokens", "tokens saved", "share"),
        Column("latency", "latency saved", "share"),
    )
    rows = tuple(
        (one.spec.text, len(one.checkpoints), one.keep, int(figures.correct[at]), int(figures.delta[at]),
         float(figures.attention[at]), float(figures.tokens[at]), float(figures.latency[at]))
        for at, one in enumerate(all_.configurations)
    )  # fmt: skip
    return Table(columns, rows)


def _draw(canvas: Canvas, all_: Sweep) -> None:
    figures = all_.figures()
    axes = drawing.panel(canvas, x="attention saved", y="problems gained over sc")
    axes.grid(visible=True, axis="both")
    length = np.array([len(one.checkpoints) for one in all_.configurations])
    shift = (length - 3) * 0.12  # checkpoints that no rollout reaches change nothing: such points would hide each other
    best_ = _edge(figures.attention, figures.delta)
    axes.step(figures.attention[best_], figures.delta[best_], where="pre", color=drawing.MUTED, lw=1.1, ls="--",
              label="front in hindsight")  # fmt: skip
    for at, size in enumerate(sorted(set(length.tolist()))):
        own, label = length == size, f"{size}" if at else f"checkpoints: {size}"
        axes.plot(figures.attention[own], figures.delta[own] + shift[own], drawing.MARKS[at], ms=4.4, ls="none",
                  color=drawing.SERIES[at], mec=drawing.PAPER, mew=0.3, label=label)  # fmt: skip
    default = all_.configurations.index(DEFAULT)
    axes.plot(figures.attention[default], figures.delta[default] + shift[default], "*", ms=15, color=drawing.INK,
              mec=drawing.PAPER, label="default")  # fmt: skip
    axes.axhline(0, color=drawing.MUTED, lw=0.8)
    drawing.percent_axis(axes.xaxis)
    drawing.count_axis(axes.yaxis, signed=True)
    axes.margins(y=0.12)
    drawing.legend(canvas, 7, "outside upper center")


def _edge(saved: NDArray[np.float64], gained: NDArray[np.int64]) -> list[int]:
    """What nothing beats in both, by rising saving."""
    order = sorted(range(len(saved)), key=lambda at: (-float(saved[at]), -int(gained[at])))
    found: list[int] = []
    for at in order:
        if not found or gained[at] > gained[found[-1]]:
            found.append(at)
    return found[::-1]


NAMED_KEEPS = (0.50, 0.67, 0.75)
NAMES = ("Early", "Mid", "Math-only", "Late")


def _twelve(all_: Sweep) -> dict[str, int]:
    """The paper's twelve configurations by name, as numbers of the sweep's."""
    return {
        f"{name}, keep {keep}": all_.configurations.index(Configuration(NAMED[name], keep))
        for name in NAMES
        for keep in NAMED_KEEPS
    }


def per_model(material: Material) -> Exhibit:
    """The best of twelve configurations for each model, chosen on other problems, against the default."""
    all_ = material.swept
    twelve, on_test = _twelve(all_), material.tune_on_test
    if len({(p.benchmark, p.problem_id) for p in material.problems}) < FOLDS:
        raise NotHere(f"fewer than {FOLDS} problems cannot be split into folds")
    rows: list[tuple[Value, ...]] = []
    for model in material.models:
        mine = material.where(model)
        picks = _picks(all_, mine, list(twelve.values()), material)
        tuned = float(np.mean([pick.tuned_delta for pick in picks]))
        figures = all_.figures(mine)
        default = twelve["Mid, keep 0.67"]
        rows.append((model, int(mine.sum()), _named(twelve, picks), tuned, _gained(all_, picks, mine),
                     int(figures.delta[default]), float(figures.attention[default])))  # fmt: skip
    columns = (
        Column("model", "model"),
        Column("problems", "problems", "count"),
        Column("picked", "picked" if on_test else "picked, over folds"),
        Column("tuned", "gained where chosen" if on_test else "gained where chosen (mean fold)", "signed"),
        Column("honest", "gained on the same problems" if on_test else "gained on other problems", "signed"),
        Column("default", "the default gains", "signed"),
        Column("attention", "the default saves attention", "share"),
    )
    total, plain = (sum(number(row[at]) for row in rows) for at in (4, 5))
    where = "the very problems that it was made on" if on_test else "problems that the choice has not seen"
    sentence = (
        f"Choosing for each model among the paper's twelve configurations {gains(total)} in all, on {where}; the "
        f"default, chosen for none of them, {gains(plain)}."
    )
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), banner=BANNER if on_test else None)


@dataclass(frozen=True, slots=True)
class _Pick:
    """What was chosen for the problems `held`, and what it gains where it was chosen."""

    configuration: int
    held: Bools
    tuned_delta: int


def _picks(all_: Sweep, mine: Bools, among: list[int], material: Material) -> list[_Pick]:
    """The best of some configurations on the problems `mine`, for each fold on the other folds.

    A fold holds all models' versions of its questions, so no pick has seen a question that it is held out for.
    """
    on_test = material.tune_on_test
    fold = np.zeros(len(mine), np.int64) if on_test else deal(all_, FOLDS, material.seed)
    picks = []
    for one in range(int(fold.max()) + 1):
        held = fold == one
        figures = all_.figures(mine & (held if on_test else ~held))
        best_ = min(among, key=lambda at: (-int(figures.delta[at]), -float(figures.attention[at])))
        picks.append(_Pick(best_, held, int(figures.delta[best_])))
    return picks


def _gained(all_: Sweep, picks: list[_Pick], target: Bools) -> int:
    """What picks gain on the problems of a mask, each on those that it is held out for."""
    wheres = [(pick.configuration, pick.held & target) for pick in picks]
    return sum(int(all_.correct[at, where].sum() - all_.baseline[where].sum()) for at, where in wheres)


def _named(twelve: dict[str, int], picks: list[_Pick]) -> str:
    chosen = {pick.configuration for pick in picks}
    return "; ".join(name for name, at in twelve.items() if at in chosen)


def transfer(material: Material) -> Exhibit:
    """What was chosen on each model's problems, on every model."""
    if len(material.models) < 2:
        raise NotHere("a transfer between models needs rollouts of at least two; give several pools at once")
    if len({(p.benchmark, p.problem_id) for p in material.problems}) < FOLDS:
        raise NotHere(f"fewer than {FOLDS} problems cannot be split into folds")
    all_, on_test = material.swept, material.tune_on_test
    twelve = _twelve(all_)
    default = twelve["Mid, keep 0.67"]
    masks = [material.where(model) for model in material.models]
    plain = [int(all_.figures(mask).delta[default]) for mask in masks]
    names = unpublished(material.models)
    rows: list[tuple[Value, ...]] = [("the paper's default", *plain, sum(plain))]
    for name, mine in zip(names, masks, strict=True):
        picks = _picks(all_, mine, list(twelve.values()), material)
        gained = [_gained(all_, picks, mask) for mask in masks]
        rows.append((f"chosen on {name}", *gained, sum(gained)))
    columns = (
        Column("source", "source"),
        *(Column(f"on_{number_}", f"on {name}", "signed") for number_, name in enumerate(names)),
        Column("all", "in all", "signed"),
    )
    matrix = np.array([row[1:-1] for row in rows[1:]], float)
    home = np.eye(len(matrix), dtype=bool)
    where = "the very problems that it was made on" if on_test else "questions that the choice has not seen"
    sentence = (
        f"Choosing among the paper's twelve configurations on one model's problems {gains(float(matrix[home].mean()))} "
        f"on average on that model and {gains(float(matrix[~home].mean()))} on another "
        f"({signed(matrix[~home].min())} to {signed(matrix[~home].max())}), on {where}."
    )
    note = "A choice is made for each fold of questions on one model's rollouts of the other folds, so every figure is "
    note += "of questions that it was not made on, those on the model itself too. What was picked stands above."
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), notes=() if on_test else (note,),
                   banner=BANNER if on_test else None)  # fmt: skip
