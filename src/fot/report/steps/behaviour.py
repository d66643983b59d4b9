"""What rollouts look like: how they end, how long they are, how much they hesitate."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fot.report import drawing
from fot.report.exhibit import Exhibit, Figure, NotHere
from fot.report.material import Material
from fot.report.table import Column, Table, Value, number, written
from fot.report.words import count, percent
from fot.stats.bins import quantile_bins, trend
from fot.stats.correlation import correlation, partial_correlation

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["deciles", "length", "model_density", "profile", "silence"]

Bools = NDArray[np.bool_]


def outcomes(material: Material) -> dict[str, Bools]:
    """The rollouts by how they ended."""
    rollouts = material.rollouts
    return {
        "correct": rollouts.correct,
        "incorrect": rollouts.answered & ~rollouts.correct,
        "no answer": ~rollouts.answered,
    }


def profile(material: Material) -> Exhibit:
    """Share, length, density and attention of rollouts by how they ended."""
    rollouts = material.rollouts
    kinds = outcomes(material)
    squares = rollouts.tokens.astype(np.float64) ** 2
    right = squares[kinds["correct"]].mean() if kinds["correct"].any() else np.nan
    rows: list[tuple[Value, ...]] = []
    for name, which in kinds.items():
        n = int(which.sum())
        if not n:
            rows.append((name, 0, 0.0, None, None, None, 0.0))
            continue
        rows.append(
            (
                name,
                n,
                float(which.mean()),
                float(rollouts.tokens[which].mean()),
                float(rollouts.density[which].mean()),
                float(squares[which].mean() / right),
                float(squares[which].sum() / squares.sum()),
            )
        )
    columns = (
        Column("outcome", "outcome"),
        Column("rollouts", "rollouts", "count"),
        Column("share", "share of the pool", "share"),
        Column("tokens", "mean tokens", "count"),
        Column("density", "markers per 1,000 characters", "number"),
        Column("relative_attention", "attention against a correct one", "times"),
        Column("attention_share", "share of all attention", "share"),
    )
    return Exhibit(sentence=_profile_sentence(rows), table=Table(columns, tuple(rows)))


def _profile_sentence(rows: list[tuple[Value, ...]]) -> str:
    correct, wrong, silent = rows
    shares = f"{percent(number(correct[2]))} of the rollouts are correct, {percent(number(wrong[2]))} incorrect"
    if silent[1]:
        text = f"{shares}, and {percent(number(silent[2]))} ({number(silent[1]):,.0f}) never commit to an answer. "
    else:
        text = f"{shares}; all commit to an answer. "
    if wrong[5] is not None and isinstance(wrong[3], float) and isinstance(correct[3], float):
        text += (
            f"An incorrect one is {wrong[3] / correct[3]:.1f} times as long as a correct one and costs "
            f"{number(wrong[5]):.1f} times its attention; "
        )
        change = "denser" if number(wrong[4]) > number(correct[4]) else "no denser"
        text += f"hesitation markers are {change} in it ({wrong[4]:.2f} against {correct[4]:.2f})."
    return text


def deciles(material: Material) -> Exhibit:
    """Accuracy by decile of hesitation density."""
    rollouts = material.rollouts
    bins = quantile_bins(rollouts.density, rollouts.correct)
    if len(bins) < 3:
        raise NotHere("there are too few rollouts for deciles")
    rows = tuple(
        (f"D{at}", (one.low, one.high), one.n, one.share, one.interval) for at, one in enumerate(bins, start=1)
    )
    columns = (
        Column("decile", "decile"),
        Column("density", "markers per 1,000 characters", "interval-number"),
        Column("rollouts", "rollouts", "count"),
        Column("accuracy", "correct", "share"),
        Column("interval", "95% interval", "interval-share"),
    )
    slope = trend(bins)
    single = correlation(rollouts.correct, rollouts.density)
    falls = all(a.share >= b.share for a, b in pairwise(bins))
    sentence = (
        f"From the least to the most hesitant tenth of the rollouts accuracy goes from {percent(bins[0].share)} to "
        f"{percent(bins[-1].share)} ({'falling' if falls else 'though not falling'} at every step; its correlation "
        f"with the number of the decile is {_r(slope.r)}). Rollout by rollout, density and being correct correlate at "
        f"{_r(single.r)}."
    )

    def draw(canvas: Canvas) -> None:
        axes = drawing.panel(canvas, x="decile of hesitation density", y="correct")
        at = np.arange(1, len(bins) + 1)
        shares = np.array([one.share for one in bins])
        reach = np.abs(np.array([one.interval for one in bins]).T - shares)
        axes.bar(at, shares, width=0.72, color=drawing.SERIES[0], edgecolor=drawing.PAPER)
        axes.errorbar(at, shares, reach, fmt="none", ecolor=drawing.INK, elinewidth=0.9, capsize=2)
        names = [f"D{one}\n{b.low:.1f}–{b.high:.1f}" for one, b in zip(at, bins, strict=True)]  # noqa: RUF001
        axes.set_xticks(at, names, fontsize=7.5)
        axes.set_ylim(0, 1)
        drawing.percent_axis(axes.yaxis)

    note = (
        "Deciles mix problems: where hard problems make rollouts both hesitant and wrong, accuracy falls even if "
        "density tells nothing within a problem. What pruning can use is shown under signals among running rollouts."
    )
    return Exhibit(
        sentence=sentence,
        table=Table(columns, rows),
        figures=(Figure("deciles", "Correct rollouts by decile of density, with 95% Wilson intervals.", draw),),
        notes=(note,),
    )


def model_density(material: Material) -> Exhibit:
    """Mean density by model, of correct and of other rollouts."""
    rollouts = material.rollouts
    rows: list[tuple[Value, ...]] = []
    for model in material.models:
        mine = material.where(model)[rollouts.problem]
        right, wrong = mine & rollouts.correct, mine & ~rollouts.correct
        means = [float(rollouts.density[which].mean()) if which.any() else None for which in (mine, right, wrong)]
        ratio = means[2] / means[1] if means[1] and means[2] is not None else None
        rows.append((model, *means, ratio))
    columns = (
        Column("model", "model"),
        *(Column(name, name, "number") for name in ("all", "correct", "wrong")),
        Column("ratio", "wrong / correct", "number"),
    )
    ratios = [number(row[4]) for row in rows if isinstance(row[4], float)]
    denser = sum(ratio > 1 for ratio in ratios)
    lowest, highest = (f(number(row[1]) for row in rows) for f in (min, max))
    if len(rows) > 1:
        sentence = (
            f"Mean density lies between {lowest:.2f} and {highest:.2f} across {count(len(rows), 'model')}; wrong "
            f"rollouts are denser than correct ones in {denser} of {count(len(ratios), 'model')}."
        )
    else:
        sentence = f"{rows[0][0]} writes {highest:.2f} markers per 1,000 characters"
        sentence += f", {'more' if denser else 'no more'} in wrong rollouts than in correct ones." if ratios else "."
    return Exhibit(
        sentence=sentence,
        table=Table(columns, tuple(rows)),
        notes=("Wrong counts every rollout that is not correct, those without an answer included.",),
    )


def silence(material: Material) -> Exhibit:
    """pass@1, the vote, the ceiling and the rollouts without an answer, by model and benchmark."""
    rollouts = material.rollouts
    silent = np.bincount(rollouts.problem, ~rollouts.answered, len(material.problems))
    rows: list[tuple[Value, ...]] = []
    for cell in material.cells:
        rows.append(
            (
                cell.model,
                cell.benchmark,
                float(material.pass_rate[cell.which].mean()),
                float(material.baseline[cell.which].mean()),
                float((material.right[cell.which] > 0).mean()),
                float(silent[cell.which].mean()),
                float((silent / material.sizes)[cell.which].mean()),
            )
        )
    columns = (
        Column("model", "model"),
        Column("benchmark", "benchmark"),
        Column("pass_1", "pass@1", "share"),
        Column("sc", "sc", "share"),
        Column("pass_k", "pass@k", "share"),
        Column("silent", "without an answer, a problem", "number"),
        Column("silent_share", "share of the rollouts", "share"),
    )
    most = max(rows, key=lambda row: number(row[6]))
    kind = (
        "a heavy tail that narrowing can remove"
        if number(most[6]) > 0.2
        else "too few for pruning to gain much from them"
    )
    total = int(silent.sum())
    told = f"{total:,} of {len(rollouts.answered):,} rollouts {'ends' if total == 1 else 'end'} without an answer"
    if len(rows) > 1:
        told += f", most often those of {most[0]} on {most[1]} ({percent(number(most[6]))})"
    sentence = f"{told}: {kind}." if total else "Every rollout ends with an answer."
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)))


LENGTH_CUTS = (2_000, 4_000, 6_000, 8_000)


def length(material: Material) -> Exhibit:
    """Is density more than a forecast of length? Correlations at several cuts, by model."""
    rollouts = material.rollouts
    rows: list[tuple[Value, ...]] = []
    for model in material.models:
        mine = material.where(model)[rollouts.problem]
        for tokens in LENGTH_CUTS:
            cut = material.at(tokens)
            going = mine & cut.running & ~cut.answered
            if going.sum() < 30:
                continue
            density, final, right = cut.density[going], rollouts.tokens[going].astype(float), rollouts.correct[going]
            with_right, with_length = correlation(right, density), correlation(final, density)
            rest = partial_correlation(right, density, final)
            rows.append(
                (
                    model,
                    tokens,
                    int(going.sum()),
                    correlation(right, final).r,
                    with_right.r,
                    with_length.r,
                    rest.r,
                    rest.p,
                )
            )
    if not rows:
        raise NotHere(f"fewer than 30 rollouts of any model run beyond {LENGTH_CUTS[0]:,} tokens")
    columns = (
        Column("model", "model"),
        Column("cut", "cut at tokens", "count"),
        Column("running", "rollouts still running", "count"),
        Column("length_correct", "final length with correct", "number3"),
        Column("density_correct", "density with correct", "number3"),
        Column("density_length", "density with final length", "number3"),
        Column("partial", "density with correct, given length", "number3"),
        Column("p", "p of that", "p"),
    )
    return Exhibit(
        sentence=_length_sentence(rows),
        table=Table(columns, tuple(rows)),
        notes=("Rollouts that have answered by the cut are left out: what they will do is settled.",),
    )


def _length_sentence(rows: list[tuple[Value, ...]]) -> str:
    """Of one cut, 6,000 tokens where there is anything to tell of it; of several models the range."""
    cuts = [int(number(row[1])) for row in rows]
    cut = 6_000 if 6_000 in cuts else max(cuts)
    own = [row for row in rows if row[1] == cut]
    told = []
    for at in (5, 4, 6):
        low, high = (_r(pick(number(row[at]) for row in own)) for pick in (min, max))
        told.append(low if low == high else f"{low} to {high}")
    running = f"{sum(int(number(row[2])) for row in own):,}"
    whose = str(own[0][0]) if len(own) == 1 else count(len(own), "model")
    return (
        f"Among the {running} rollouts of {whose} that are still running without an answer at {cut:,} tokens, density "
        f"correlates at {told[0]} with the length they will have and at {told[1]} with being correct; once that length "
        f"is known, {told[2]} is left."
    )


def _r(value: Value) -> str:
    return written(value, "r")
