"""What is paid: attention regimes, methods of both axes on one basis, compositions, and one problem's funnel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fot.core.ledger import reach
from fot.core.policy import Fate
from fot.replay.evaluate import Row
from fot.report import drawing
from fot.report.exhibit import Exhibit, Figure, NotHere
from fot.report.material import CHECKPOINTS, Material
from fot.report.steps.outcome import halves, method_table
from fot.report.table import Column, Table, Value, number
from fot.report.words import gains, interval_pp, joined, percent
from fot.stats.resampling import ratio_bootstrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["attention", "baselines", "composition", "funnel"]

Lanes = tuple[tuple[Value, ...], ...]

WINDOWS: tuple[tuple[str, int | None], ...] = (
    ("full", None), ("window 8K", 8_192), ("window 4K", 4_096), ("window 2K", 2_048), ("window 1K", 1_024),
    ("linear", 0),
)  # fmt: skip


def attention(material: Material) -> Exhibit:
    """What the funnel saves when attention is not quadratic."""
    rollouts_of = np.repeat(np.arange(len(material.problems)), material.sizes)
    full = material.flat(lambda index, rows: index.n_tokens[rows])
    stops = material.stops("fot")
    rows: list[tuple[Value, ...]] = []
    for name, window in WINDOWS:
        before, after = (
            np.bincount(rollouts_of, [reach(tokens, window) for tokens in lengths.tolist()], len(material.problems))
            for lengths in (full, stops)
        )
        interval = ratio_bootstrap(before - after, before, material.seed)
        rows.append((name, float(1 - after.sum() / before.sum()), (interval.low, interval.high)))
    columns = (
        Column("regime", "attention"),
        Column("saved", "saved", "share"),
        Column("interval", "95% interval", "interval-share"),
    )
    sentence = (
        f"Of {percent(number(rows[0][1]))} saved under full attention {percent(number(rows[2][1]))} remain with a "
        f"window of 4K tokens and {percent(number(rows[-1][1]))} under linear attention, which is the share of the "
        "tokens."
    )
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), notes=("Intervals resample problems.",))


BASELINES = (
    ("sc", "sc"), ("esc", "ESC"), ("ac", "Adaptive Consistency"), ("dsc", "DSC"),
    ("certaindex", "Certaindex (offline proxy)"), ("fot", "fot"), ("dsc+fot", "DSC with fot inside"),
)  # fmt: skip


def baselines(material: Material) -> Exhibit:
    """Methods of the sample axis and of the token axis by whole-model FLOPs, overall and on hard problems."""
    material.need_gold()
    parts, rule = halves(material)
    rows: list[tuple[Value, ...]] = []
    missing: list[str] = []
    for text, name in BASELINES:
        try:
            whole, hard = material.result(text), material.result(text, parts["hard"])
        except NotHere as reason:
            missing.append(f"{name} ({reason})")
            continue
        rows.append((name, whole.accuracy, whole.savings.full_model, whole.savings.attention, whole.savings.latency,
                     hard.accuracy, hard.savings.full_model, hard.savings.attention))  # fmt: skip
    if not rows:
        raise NotHere("none of the baselines can run on this pool")
    columns = (
        Column("method", "method"),
        Column("accuracy", "accuracy", "share"),
        Column("full_model", "full model saved", "share"),
        Column("attention", "attention saved", "share"),
        Column("latency", "latency saved", "share"),
        Column("hard_accuracy", "hard: accuracy", "share"),
        Column("hard_full_model", "hard: full model saved", "share"),
        Column("hard_attention", "hard: attention saved", "share"),
    )
    fot = next(row for row in rows if row[0] == "fot")
    rivals = [row for row in rows if row[0] in ("DSC", "Adaptive Consistency")]
    axis = 2 if fot[2] is not None else 3
    told = [f"{row[0]} {percent(number(row[axis]))} ({percent(number(row[axis + 4]))})" for row in rivals]
    unit = "whole-model FLOPs" if axis == 2 else "attention"
    sentence = f"Of {unit} fot saves {percent(number(fot[axis]))} ({percent(number(fot[axis + 4]))} on hard problems)"
    sentence += f"; {joined(told)}. " if told else ". "
    sentence += "The methods that ask one after the other pay for it in latency, which stands beside."
    notes = [rule, *([f"Not run: {'; '.join(missing)}."] if missing else [])]
    if any(row[0].startswith("Certaindex") and number(row[3]) < 0.005 for row in rows if isinstance(row[0], str)):
        notes.append(
            "Certaindex probes a running rollout for its answer. Its offline proxy can only read answers that stand in "
            "the text; these rollouts state theirs at the end, so it stops none."
        )
    if fot[2] is None:
        notes.append("The shape of a model is unknown, so there is no whole-model figure; give --cost-model.")
    return Exhibit(
        sentence=sentence, table=Table(columns, tuple(rows), frozenset({rows.index(fot)})), notes=tuple(notes)
    )


COMPOSED = (
    "fot",
    "fot+decided",
    "sc+decided",
    "ac+fot",
    "dsc+fot",
    "adaptive",
    "adaptive+decided",
    "waves",
    "waves+decided",
)


def composition(material: Material) -> Exhibit:
    """The funnel with stops and inside methods that ask for rollouts in rounds."""
    material.need_gold()
    texts = [text for text in COMPOSED if material.can(text)]
    table = method_table([material.result(text) for text in texts])
    fot, stop = material.result("fot"), material.result("fot+decided")
    sentence = (
        f"Ending a problem once nothing that still runs could change its vote costs no answer and raises the funnel's "
        f"saving of latency from {percent(fot.savings.latency)} to {percent(stop.savings.latency)}, of attention from "
        f"{percent(fot.savings.attention)} to {percent(stop.savings.attention)}. "
    )
    most = max(texts, key=lambda text: material.result(text).savings.attention)
    saved = material.result(most)
    sentence += (
        f"Of all shown {most} saves most attention ({percent(saved.savings.attention)}) and "
        f"{gains(saved.delta)} ({interval_pp(saved.ci95_pp)})."
    )
    return Exhibit(sentence=sentence, table=table)


def chosen_problem(material: Material) -> int:
    """The problem to show: one that only the funnel gets right, else the one of which it prunes most."""
    fates = [row.outcome.fates for row in material.rows("fot")]
    pruned = np.array([sum(fate is Fate.PRUNED for fate in own) for own in fates])
    gained = (material.hits("fot") > material.baseline) * 1_000 if material.rollouts.correct.any() else 0
    return int(np.argmax(pruned + gained))


def funnel(material: Material) -> Exhibit:
    """One problem's rollouts, where each was stopped, and the two votes."""
    at = chosen_problem(material)
    row, base = material.rows("fot")[at], material.rows("sc")[at]
    problem = material.problems[at]
    fates = list(row.outcome.fates)
    first = int(material.sizes[:at].sum())
    lengths = material.rollouts.tokens[first : first + len(fates)]
    right = material.rollouts.correct[first : first + len(fates)]
    rows = tuple(
        (number_, fate.value, int(stop), int(length), bool(is_right))
        for number_, (fate, stop, length, is_right) in enumerate(
            zip(fates, row.outcome.stops, lengths, right, strict=True)
        )
    )
    columns = (
        Column("rollout", "rollout", "count"),
        Column("fate", "fate"),
        Column("stop", "tokens charged", "count"),
        Column("length", "tokens in full", "count"),
        Column("correct", "final answer correct"),
    )
    finals = [answers for sheet in material.sheets for answers in sheet.finals][at]
    good = {answer for answer, is_right in zip(finals, right, strict=True) if is_right}
    told = {fate: fates.count(fate) for fate in (Fate.BANKED, Fate.PRUNED, Fate.FINISHED)}
    saved = 1 - sum(stop**2 for stop in row.outcome.stops) / max(float((lengths.astype(float) ** 2).sum()), 1.0)
    sentence = (
        f"Problem {problem.problem_id} ({problem.model}, {problem.benchmark}): {told[Fate.BANKED]} of {len(fates)} "
        f"rollouts are banked, {told[Fate.PRUNED]} pruned, {told[Fate.FINISHED]} run to their end, and "
        f"{percent(saved)} of the "
        f"attention is saved. Self-consistency answers {base.outcome.verdict.answer}, the funnel "
        f"{row.outcome.verdict.answer}; the reference is {problem.gold}."
    )
    figure = Figure("funnel", f"The funnel on {problem.problem_id}. Pale: what self-consistency would have generated.",
                    lambda canvas: _draw_funnel(canvas, rows, row, base, good), 7, 4.6)  # fmt: skip
    note = "Shown is a problem that only the funnel gets right, else that of which it prunes most: not a typical one."
    return Exhibit(sentence=sentence, table=Table(columns, rows), figures=(figure,), notes=(note,), folded=True)


FATE_LOOK = {Fate.BANKED: (0, ""), Fate.PRUNED: (1, "////"), Fate.FINISHED: (2, drawing.HATCHES[2])}


def _draw_funnel(canvas: Canvas, rows: Lanes, row: Row, base: Row, good: set[str | None]) -> None:
    grid = canvas.add_gridspec(2, 3, height_ratios=(1.7, 1))
    _draw_lanes(canvas.add_subplot(grid[0, :]), rows)
    _draw_narrowing(canvas.add_subplot(grid[1, 0]), rows)
    highest = max([1.0, *base.outcome.verdict.votes.values(), *row.outcome.verdict.votes.values()])
    for place, (name, one_row) in enumerate({"sc": base, "fot": row}.items(), start=1):
        axes = canvas.add_subplot(grid[1, place])
        votes = sorted(one_row.outcome.verdict.votes.items(), key=lambda item: -item[1])[:5]
        winner = one_row.outcome.verdict.answer
        colours = [drawing.SERIES[0] if answer == winner else drawing.FAINT for answer, _ in votes]
        labels = [drawing.short(answer, 9) + (" ✓" if answer in good else "") for answer, _ in votes]
        axes.bar(range(len(votes)), [number_ for _, number_ in votes], 0.6, color=colours)
        axes.set_xticks(range(len(votes)), labels, fontsize=7.5, parse_math=False)
        axes.set_title(f"votes of {name}")
        axes.set_ylim(0, highest * 1.2)
        drawing.count_axis(axes.yaxis)
        drawing.bar_labels(axes, list(range(len(votes))), [v for _, v in votes], [f"{v:.0f}" for _, v in votes])
    drawing.legend(canvas, 3, "outside upper center")


def _draw_lanes(top: Axes, rows: Lanes) -> None:
    x = np.arange(len(rows))
    top.bar(x, [number(one[3]) for one in rows], 0.82, color=drawing.FAINT)
    for fate, (colour, hatch) in FATE_LOOK.items():
        own = [at for at, one in enumerate(rows) if one[1] == fate.value]
        if own:
            top.bar(own, [number(rows[at][2]) for at in own], 0.82, color=drawing.SERIES[colour], hatch=hatch,
                    edgecolor=drawing.PAPER, label=f"{fate.value} ({len(own)})")  # fmt: skip
    for at, one in enumerate(rows):
        if one[4]:
            top.annotate("✓", (at, number(one[2])), xytext=(0, 1), textcoords="offset points", ha="center", fontsize=7)
    top.set_ylabel("tokens")
    top.set_xlabel("rollouts in sampling order (✓: correct in full)")
    top.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    top.set_xticks([])


def _draw_narrowing(axes: Axes, rows: Lanes) -> None:
    """How many rollouts are still active after each checkpoint, and how many are banked."""
    marks = [0, *CHECKPOINTS]
    counts = {fate: [sum(one[1] == fate.value and number(one[2]) <= mark for one in rows) for mark in marks]
              for fate in (Fate.BANKED, Fate.PRUNED)}  # fmt: skip
    banked, pruned = (np.array(counts[fate]) for fate in (Fate.BANKED, Fate.PRUNED))
    active = len(rows) - banked - pruned
    axes.bar(range(len(marks)), active, 0.6, color=drawing.MUTED)
    axes.bar(range(len(marks)), banked, 0.6, bottom=active, color=drawing.SERIES[0])
    drawing.bar_labels(
        axes,
        list(range(len(marks))),
        (active + banked).tolist(),
        [f"{n} + {m}" if m else f"{n}" for n, m in zip(active, banked, strict=True)],
    )
    axes.set_xticks(range(len(marks)), ["start", *(f"{mark // 1000}K" for mark in CHECKPOINTS)], fontsize=7.5)
    axes.set_title("active (grey) + banked")
    axes.set_ylim(0, len(rows) * 1.2)
    drawing.count_axis(axes.yaxis)
