"""What does the work: the signal, early voting, the keep ratio, the schedule, the kernel, the number of rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fot.grading.base import Judgement
from fot.replay.evaluate import MethodResult
from fot.replay.fast import Board, Plan, play
from fot.replay.grid import KERNEL_SIZES, NAMED
from fot.report import drawing
from fot.report.exhibit import Exhibit, Figure, NotHere
from fot.report.material import Material
from fot.report.steps.outcome import halves
from fot.report.table import Column, Table, Value, number
from fot.report.words import between, gains, joined, percent, points, signed
from fot.stats.resampling import draw_bootstrap

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["keep_and_voting", "kernel_size", "mechanism", "pool_size", "schedules"]

RESULT_COLUMNS = (
    Column("correct", "correct", "mean"),
    Column("accuracy", "accuracy", "share"),
    Column("delta", "gained", "signed"),
    Column("ci_pp", "95% interval (pp)", "interval-pp"),
    Column("attention", "attention saved", "share"),
    Column("tokens", "tokens saved", "share"),
    Column("votes", "votes", "number1"),
)


def cells(result: MethodResult) -> tuple[Value, ...]:
    """A result in the order of `RESULT_COLUMNS`."""
    saved, low, high = result.savings, *result.ci95_pp
    return (
        result.correct,
        result.accuracy,
        result.delta,
        (low, high),
        saved.attention,
        saved.tokens,
        result.votes_mean,
    )


SIGNALS = {"random": "random", "density": "fot"}


def mechanism(material: Material) -> Exhibit:
    """Pruning signal by early voting."""
    material.need_gold()
    variants = [(name, method, voting) for name, method in SIGNALS.items() for voting in (False, True)]
    rows: list[tuple[Value, ...]] = [("none (sc)", None, *cells(material.result("sc")))]
    results = {}
    for name, method, voting in variants:
        result = material.result(method if voting else f"{method}:early_voting=off")
        results[name, voting] = result
        rows.append((name, voting, *cells(result)))
    columns = (Column("signal", "pruning signal"), Column("early_voting", "early voting"), *RESULT_COLUMNS)
    told = [
        f"{gains(results[name, voting].delta)} {'with' if voting else 'without'} early voting"
        for name in SIGNALS
        for voting in (False, True)
    ]
    votes = [results["density", voting].votes_mean for voting in (False, True)]
    sentence = (
        f"Pruning at random {told[0]} and {told[1]}; pruning by density {told[2]} and {told[3]}. Early voting "
        f"keeps the ballot at {votes[1]:.1f} votes where {votes[0]:.1f} would be left."
    )
    return Exhibit(
        sentence=sentence,
        table=Table(columns, tuple(rows), frozenset({4})),
        notes=("Random rows are means over 10 draws.",),
    )


KEEPS = (0.67, 0.5, 0.33, 0.25)


def keep_and_voting(material: Material) -> Exhibit:
    """Early voting as the keep ratio falls, on the hard problems."""
    material.need_gold()
    parts, rule = halves(material)
    hard = parts["hard"]
    rows: list[tuple[Value, ...]] = []
    for keep in KEEPS:
        with_, without = (material.result(_spec(keep, voting), hard) for voting in (True, False))
        rows.append(
            (
                keep,
                with_.accuracy,
                without.accuracy,
                with_.accuracy - without.accuracy,
                with_.savings.attention,
                without.savings.attention,
                with_.votes_mean,
                without.votes_mean,
            )
        )
    columns = (
        Column("keep", "keep", "number"),
        Column("with", "accuracy with early voting", "share"),
        Column("without", "accuracy without it", "share"),
        Column("delta", "difference (pp)", "points"),
        Column("attention_with", "attention saved with it", "share"),
        Column("attention_without", "attention saved without", "share"),
        Column("votes_with", "votes with it", "number1"),
        Column("votes_without", "votes without", "number1"),
    )
    first, last = rows[0], rows[-1]
    sentence = (
        f"On the {int(hard.sum())} hard problems, where sc is right on "
        f"{percent(float(material.baseline[hard].mean()))}, "
        f"early voting is worth {points(number(first[3]))} points at keep {KEEPS[0]} and "
        f"{points(number(last[3]))} at {KEEPS[-1]}."
    )
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), notes=(rule,))


def _spec(keep: float, voting: bool) -> str:
    return f"fot:keep={keep}" + ("" if voting else ",early_voting=off")


SCHEDULES = ("Early", "Mid", "Math-only", "Late")
SCHEDULE_KEEPS = (0.50, 0.67, 0.75)


def schedules(material: Material) -> Exhibit:
    """The paper's four named schedules by three keep ratios, and those at half the tokens."""
    material.need_gold()
    rows: list[tuple[Value, ...]] = []
    best: tuple[float, float, str] = (-np.inf, 0.0, "")
    for factor, label in ((1.0, ""), (0.5, ", halved")):
        for name in SCHEDULES:
            marks = [round(mark * factor) for mark in NAMED[name]]
            row: list[Value] = [f"{name}{label}", "/".join(f"{mark / 1000:g}K" for mark in marks)]
            for keep in SCHEDULE_KEEPS:
                result = material.result(f"fot:checkpoints={'/'.join(map(str, marks))},keep={keep}")
                row += [result.correct, result.delta, result.savings.attention]
                best = max(best, (result.delta, result.savings.attention, f"{name}{label} at keep {keep}"))
            rows.append(tuple(row))
    columns = [Column("schedule", "schedule"), Column("checkpoints", "checkpoints")]
    for keep in SCHEDULE_KEEPS:
        columns += [
            Column(f"correct_{keep}", f"keep {keep}: correct", "mean"),
            Column(f"delta_{keep}", "gained", "signed"),
            Column(f"attention_{keep}", "attention saved", "share"),
        ]
    deltas = [number(row[at]) for row in rows for at in (3, 6, 9)]
    sentence = (
        f"Over these {len(deltas)} settings the funnel's gain lies {between(min(deltas), max(deltas), signed)} "
        f"problems; it is largest with {best[2]} ({percent(best[1])} of the attention saved). That one is best was "
        f"not decided before these problems were seen: the sweep says what such a choice is worth on others."
    )
    return Exhibit(sentence=sentence, table=Table(tuple(columns), tuple(rows), frozenset({1})))


def kernel_size(material: Material) -> Exhibit:
    """The funnel with the first 1 to 21 markers."""
    material.need_gold()
    rows: list[tuple[Value, ...]] = []
    for size in KERNEL_SIZES:
        result = material.result("fot" if size == KERNEL_SIZES[-1] else f"fot:kernel=top-{size}")
        rows.append((size, *cells(result)))
    columns = (Column("markers", "markers", "count"), *RESULT_COLUMNS)
    deltas = [number(row[3]) for row in rows]
    saved = [number(row[5]) for row in rows]
    sentence = (
        f"From the one marker 'perhaps' to all {KERNEL_SIZES[-1]} the gain lies "
        f"{between(min(deltas), max(deltas), signed)} problems and the attention saved "
        f"{between(min(saved), max(saved), percent)}."
    )
    return Exhibit(
        sentence=sentence,
        table=Table(columns, tuple(rows), frozenset({len(rows) - 1})),
        notes=("Markers are added in the order of the paper's table.",),
    )


PAPER_PLAN = Plan(NAMED["Mid"], 0.67)
SIZES = (4, 6, 8, 12, 16, 20, 24, 28, 32, 48, 64)
DRAWS = 20


def pool_size(material: Material) -> Exhibit:
    """The funnel against self-consistency on random subsets of the rollouts."""
    material.need_gold()
    sizes = [*(size for size in SIZES if size < material.k), material.k]
    if len(sizes) < 2:
        raise NotHere(f"with {material.k} rollouts a problem there are no smaller pools to compare")
    rows: list[tuple[Value, ...]] = []
    for size in sizes:
        votes, ours, saved = _subsets(material, size, DRAWS if (material.sizes > size).any() else 1)
        gains = ours - votes
        interval = draw_bootstrap(gains, material.seed)
        rows.append((size, len(votes), float(votes.mean()), float(ours.mean()), float(gains.mean()),
                     (100 * interval.low, 100 * interval.high), float(np.mean(saved))))  # fmt: skip
    columns = (
        Column("rollouts", "rollouts a problem", "count"),
        Column("draws", "draws", "count"),
        Column("sc", "sc", "share"),
        Column("fot", "fot", "share"),
        Column("delta", "fot − sc (pp)", "points"),  # noqa: RUF001
        Column("ci_pp", "95% interval (pp)", "interval-pp"),
        Column("attention", "attention saved", "share"),
    )
    harmful = [f"{number(row[0]):.0f}" for row in rows if isinstance(row[5], tuple) and row[5][1] < 0]
    helpful = [f"{number(row[0]):.0f}" for row in rows if isinstance(row[5], tuple) and row[5][0] > 0]
    text = f"below 0 at {joined(harmful)}" if harmful else "below 0 at none"
    text += f" and above 0 at {joined(helpful)}" if helpful else " and above 0 at none"
    sentence = (
        f"From {sizes[0]} to {sizes[-1]} rollouts a problem the funnel's difference to a vote of as many goes from "
        f"{points(number(rows[0][4]))} to {points(number(rows[-1][4]))} points; its 95% interval lies "
        f"{text} of the {len(sizes)} sizes."
    )
    figure = Figure("pool-size", "Difference to a vote of as many rollouts; the band covers problems and draws.",
                    lambda canvas: _draw_sizes(canvas, rows), 6.2, 2.8)  # fmt: skip
    note = f"{DRAWS} random subsets where a problem has more rollouts; intervals resample problems and draws."
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), figures=(figure,), notes=(note,))


def _subsets(material: Material, size: int, draws: int) -> tuple[NDArray[np.float64], NDArray[np.float64], list[float]]:
    """Whether sc and the funnel are right by draw and problem, and the attention saved by draw."""
    golds = [problem.gold for problem in material.problems]
    votes: list[list[float]] = []
    ours: list[list[float]] = []
    saved: list[float] = []
    for draw in range(draws):
        rng = np.random.default_rng((material.seed, size, draw))
        answers: dict[bool, list[str | None]] = {False: [], True: []}
        spent = {False: 0.0, True: 0.0}
        for index, sheet in zip(material.indexes, material.sheets, strict=True):
            board = Board(index, [part.rows[np.sort(rng.permutation(len(part.rows))[:size])] for part in sheet.parts])
            for narrowed, plan in ((False, Plan()), (True, PAPER_PLAN)):
                played = play(board, plan)
                answers[narrowed] += [index.answers[one] if one >= 0 else None for one in played.winners.tolist()]
                spent[narrowed] += float((played.stops.astype(np.float64) ** 2).sum())
        for narrowed, rows in ((False, votes), (True, ours)):
            verdicts = material.judge.judge(golds, answers[narrowed])
            rows.append([float(verdict is Judgement.CORRECT) for verdict in verdicts])
        saved.append(1 - spent[True] / spent[False])
    return np.array(votes), np.array(ours), saved


def _draw_sizes(canvas: Canvas, rows: list[tuple[Value, ...]]) -> None:
    axes = drawing.panel(canvas, x="rollouts a problem", y="fot \N{MINUS SIGN} sc (pp)")
    x = [number(row[0]) for row in rows]
    y = np.array([number(row[4]) for row in rows])
    low, high = np.array([row[5] for row in rows], float).T / 100
    axes.fill_between(x, low, high, color=drawing.FAINT, lw=0, label="95% interval")
    axes.plot(x, y, "-o", color=drawing.SERIES[0], label="difference")
    axes.axhline(0, color=drawing.MUTED, lw=0.8)
    axes.set_xticks(x)
    drawing.percent_axis(axes.yaxis, signed=True, unit="")
    drawing.legend(canvas, 2, "outside upper center")
