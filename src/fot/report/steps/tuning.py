"""Choosing a configuration: what a choice is worth on problems that it was not made on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fot.replay.grid import NAMED, Configuration
from fot.replay.sweep import BANNER, Front, Sweep, best, deal, front, nested
from fot.report import drawing
from fot.report.exhibit import Exhibit, Figure, NotHere
from fot.report.material import Material
from fot.report.table import Column, Table, Value, number
from fot.report.words import count, gains, interval_pp, percent, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["per_model", "search", "transfer"]

Bools = NDArray[np.bool_]
DEFAULT = Configuration(NAMED["Mid"], 0.67)
FOLDS = 5
CAPTION = (
    "All 340 configurations on all problems, by number of checkpoints (set apart a little). "
    "The front is that of these problems, in hindsight."
)


def search(material: Material) -> Exhibit:
    """All 340 configurations, the Pareto front, and an honest choice."""
    material.rollouts  # noqa: B018
    all_ = material.swept
    folds = min(FOLDS, len({(p.benchmark, p.problem_id) for p in material.problems}))
    if folds < 2:
        raise NotHere("one problem cannot be split into some to choose on and others to report on")
    figures = all_.figures()
    edge = front(all_, seed=material.seed, on_test=material.tune_on_test)
    edge_name, how, other = (
        ("front-tuned", "chosen on them all", "on the same problems")
        if material.tune_on_test
        else ("front", "chosen by folds", "on other problems")
    )
    rows: list[tuple[Value, ...]] = []
    for rule in ("accuracy", "saving"):
        choice = nested(all_, count=folds, seed=material.seed, rule=rule, on_test=material.tune_on_test)
        tuned = sum(one.tuned_delta for one in choice.choices) / sum(one.tuned_on for one in choice.choices)
        interval = (choice.ci95_pp.low, choice.ci95_pp.high)
        rows.append((f"best by {rule}, {how}", choice.problems, tuned, choice.delta / choice.problems,
                     interval, choice.wins, choice.losses, choice.p, choice.attention, choice.latency))  # fmt: skip
    at = all_.configurations.index(DEFAULT)
    share = figures.delta[at] / figures.problems
    rows.append(("the paper's default, not chosen here", figures.problems, None, float(share), None,
                 int(figures.wins[at]), int(figures.losses[at]), None, float(figures.attention[at]),
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
    better = int((figures.delta > figures.delta[at]).sum())
    tied = int((figures.delta == figures.delta[at]).sum()) - 1
    chosen = nested(all_, count=folds, seed=material.seed, on_test=material.tune_on_test)
    tuned_, honest = number(rows[0][2]), number(rows[0][3])
    where = "on the same problems, which flatters it" if material.tune_on_test else "on problems it was not chosen on"
    sentence = (
        f"The most accurate of {len(all_.configurations)} configurations gains {100 * tuned_:+.1f} points where it is "
        f"chosen and {100 * honest:+.1f} {where} ({interval_pp(chosen.ci95_pp)}), saving {percent(chosen.attention)} "
        "of "
        f"the attention. On all problems {count(better, 'configuration')} solve more than the paper's default and "
        f"{tied} solve as many."
    )
    return Exhibit(
        sentence=sentence,
        table=Table(columns, tuple(rows)),
        more=((edge_name, _front_table(all_, edge)), ("configurations", _all_table(all_))),
        figures=(Figure("sweep", CAPTION, lambda canvas: _draw(canvas, all_), 6.6, 3.8),),
        notes=(_how(material, folds),),
        banner=BANNER if material.tune_on_test else None,
    )  # fmt: skip


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
              label="front")  # fmt: skip
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
        tuned, honest, picks = _calibrated(all_, mine, list(twelve.values()), material)
        figures = all_.figures(mine)
        default = twelve["Mid, keep 0.67"]
        names = [name for name, at in twelve.items() if at in picks]
        rows.append((model, int(mine.sum()), "; ".join(names), tuned, honest, int(figures.delta[default]),
                     float(figures.attention[default])))  # fmt: skip
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


def _calibrated(all_: Sweep, mine: Bools, among: list[int], material: Material) -> tuple[float, int, set[int]]:
    """What a choice among some configurations gains for one model: where chosen, elsewhere, and which they were."""
    fold = np.zeros(len(mine), np.int64) if material.tune_on_test else deal(all_, FOLDS, material.seed)
    tuned: list[int] = []
    honest = 0
    picks: set[int] = set()
    for one in range(int(fold.max()) + 1):
        held = mine & (fold == one)
        learn = held if material.tune_on_test else mine & (fold != one)
        figures = all_.figures(learn)
        order = sorted(among, key=lambda at: (-int(figures.delta[at]), -float(figures.attention[at])))
        picks.add(order[0])
        tuned.append(int(figures.delta[order[0]]))
        honest += int(all_.correct[order[0], held].sum() - all_.baseline[held].sum())
    return float(np.mean(tuned)), honest, picks


def transfer(material: Material) -> Exhibit:
    """Each model's best configuration on every other model."""
    if len(material.models) < 2:
        raise NotHere("a transfer between models needs rollouts of at least two; give several pools at once")
    all_ = material.swept
    rows: list[tuple[Value, ...]] = []
    default = all_.configurations.index(DEFAULT)
    sources: dict[str, int] = {"the paper's default": default}
    for model in material.models:
        sources[f"best on {model}"] = best(all_.figures(material.where(model)), "accuracy")
    for name, at in sources.items():
        gained: list[Value] = []
        for model in material.models:
            flattered = name == f"best on {model}"
            gained.append(None if flattered else int(all_.figures(material.where(model)).delta[at]))
        rows.append((name, all_.configurations[at].spec.text, *gained))
    columns = (
        Column("source", "source"),
        Column("spec", "configuration"),
        *(Column(f"on_{number_}", f"on {model}", "signed") for number_, model in enumerate(material.models)),
    )
    away = [number(value) for row in rows[1:] for value in row[2:] if value is not None]
    sentence = (
        f"A configuration that is best on one model {gains(float(np.mean(away)))} on average on another "
        f"({signed(min(away))} to {signed(max(away))})."
    )
    note = "A model's own best is left out on that model: it was chosen there, and its figure would flatter it."
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), notes=(note,))
