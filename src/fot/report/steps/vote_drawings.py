"""The figures of the vote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fot.report import drawing
from fot.report.table import Value, number
from fot.report.words import percent, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from matplotlib.patches import Rectangle

__all__ = ["concentration", "discordant", "early_voting", "typology"]

Rows = Sequence[tuple[Value, ...]]


def concentration(canvas: Canvas, rows: Rows) -> None:
    """Left: answers changed by the leader's share of the votes. Right: problems gained."""
    at = list(range(len(rows)))
    names = [f"{row[0]}\n({number(row[1]):.0f})" for row in rows]
    under = "votes of the leading answer (problems)"
    left = drawing.panel(canvas, 1, 2, 1, x=under, title="answers changed")
    shares = [number(row[3]) if row[1] else 0.0 for row in rows]
    left.bar(at, shares, 0.6, color=drawing.SERIES[0])
    drawing.bar_labels(
        left, at, shares, [percent(share) if row[1] else "" for share, row in zip(shares, rows, strict=True)]
    )
    left.set_ylim(0, max([*shares, 0.1]) * 1.2)
    drawing.percent_axis(left.yaxis)
    right = drawing.panel(canvas, 1, 2, 2, x=under, title="problems gained")
    gains = [number(row[4]) if row[1] else 0.0 for row in rows]
    right.bar(at, gains, 0.6, color=drawing.SERIES[1], hatch="////", edgecolor=drawing.PAPER)
    drawing.bar_labels(
        right, at, gains, [signed(gain) if row[1] else "" for gain, row in zip(gains, rows, strict=True)]
    )
    right.axhline(0, color=drawing.MUTED, lw=0.7)
    right.set_ylim(min(*gains, 0) * 1.3 - 0.2, max(*gains, 1) * 1.3)
    drawing.count_axis(right.yaxis, signed=True)
    for axes in (left, right):
        axes.set_xticks(at, names)


def discordant(canvas: Canvas, rows: Rows) -> None:
    """Left: both right, one alone, both wrong. Right: wins and losses by model."""
    grid = canvas.add_gridspec(1, 2, width_ratios=(1, 2.2))
    left = canvas.add_subplot(grid[0, 0])
    both, neither, won, lost = (sum(int(number(row[at])) for row in rows) for at in (1, 2, 3, 4))
    counts = np.array([[both, lost], [won, neither]])
    shades = [[drawing.FAINT, drawing.SERIES[1]], [drawing.SERIES[0], drawing.FAINT]]
    for (down, across), count in np.ndenumerate(counts):
        left.add_patch(_square(across, down, shades[down][across]))
        ink = drawing.PAPER if (down, across) == (1, 0) else drawing.INK
        left.annotate(f"{count:,}", (across, down), ha="center", va="center", fontsize=11, color=ink)
    left.set(xlim=(-0.5, 1.5), ylim=(1.5, -0.5), xlabel="fot", ylabel="sc")
    for axis in (left.xaxis, left.yaxis):
        axis.set_ticks([0, 1], ["right", "wrong"])
    left.grid(visible=False)
    right = canvas.add_subplot(grid[0, 1])
    at = np.arange(len(rows))
    wins, losses = (np.array([number(row[column]) for row in rows]) for column in (3, 4))
    right.barh(at, wins, 0.55, color=drawing.SERIES[0], label="fot alone right")
    right.barh(at, -losses, 0.55, color=drawing.SERIES[1], hatch="////", edgecolor=drawing.PAPER,
               label="sc alone right")  # fmt: skip
    reach = max(1.0, float(wins.max()), float(losses.max())) * 1.1
    right.set(xlim=(-reach, reach), ylim=(len(rows) - 0.4, -0.6), xlabel="problems")
    right.axvline(0, color=drawing.MUTED, lw=0.7)
    right.set_yticks(at, [drawing.short(str(row[0])) for row in rows])
    right.grid(visible=True, axis="x")
    right.grid(visible=False, axis="y")
    drawing.count_axis(right.xaxis)
    drawing.legend(canvas, 2, "outside upper center")


def _square(x: float, y: float, colour: str) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color=colour, lw=0)


def early_voting(
    canvas: Canvas, banked: NDArray[np.int64], most: int, groups: Rows, shares: Sequence[tuple[str, float, float]]
) -> None:
    """Left: banked rollouts a problem. Middle: where a right answer is in the bank. Right: who votes, by model."""
    left = drawing.panel(canvas, 1, 3, 1, x="banked rollouts", y="problems")
    left.hist(banked, bins=(np.arange(most + 2) - 0.5).tolist(), color=drawing.SERIES[0], edgecolor=drawing.PAPER)
    drawing.count_axis(left.yaxis)
    drawing.count_axis(left.xaxis)
    middle = drawing.panel(canvas, 1, 3, 2, y="a right answer in the bank")
    heights = [number(row[5]) if row[1] else 0.0 for row in groups]
    at = list(range(len(groups)))
    middle.bar(at, heights, 0.6, color=drawing.SERIES[2], hatch=drawing.HATCHES[2], edgecolor=drawing.PAPER)
    drawing.bar_labels(
        middle, at, heights, [f"{h:.0%}" if row[1] else "" for h, row in zip(heights, groups, strict=True)]
    )
    middle.set_xticks(
        at,
        [
            f"{name}\n({number(row[1]):.0f})"
            for name, row in zip(("all", "fot\nalone", "sc\nalone"), groups, strict=True)
        ],
    )
    middle.set_ylim(0, 1.12)
    drawing.percent_axis(middle.yaxis)
    right = drawing.panel(canvas, 1, 3, 3, x="share of the rollouts")
    place = np.arange(len(shares))
    base = np.zeros(len(shares))
    for series, label in enumerate(("banked", "survivors")):
        own = np.array([one[series + 1] for one in shares])
        right.barh(place, own, 0.4, left=base, color=drawing.SERIES[series], hatch=drawing.HATCHES[series],
                   edgecolor=drawing.PAPER, label=label)  # fmt: skip
        base += own
    for at_, (name, _, _) in enumerate(shares):
        right.annotate(drawing.short(name, 30), (0.01, at_ - 0.24), fontsize=7, va="bottom")
    right.set(xlim=(0, 1), ylim=(max(len(shares), 2) - 0.6, -0.7), yticks=[])
    right.grid(visible=True, axis="x")
    right.grid(visible=False, axis="y")
    drawing.percent_axis(right.xaxis)
    drawing.legend(canvas, 2, "outside upper right")


def typology(canvas: Canvas, rows: Rows) -> None:
    """Left: attention by kind of rollout, under both. Right: votes."""
    for place, (title, columns) in enumerate({"attention": (2, 3), "votes cast": (4, 5)}.items()):
        axes = drawing.panel(canvas, 1, 2, place + 1, title=f"{title}, share of sc's")
        base = np.zeros(2)
        for at, row in enumerate(rows):
            parts = np.array([number(row[column]) for column in columns])
            axes.bar([0, 1], parts, 0.6, bottom=base, color=drawing.SERIES[at], hatch=drawing.HATCHES[at],
                     edgecolor=drawing.PAPER, label=str(row[0]) if not place else None)  # fmt: skip
            base += parts
        drawing.bar_labels(axes, [0, 1], list(base), [percent(one) for one in base])
        axes.set_xticks([0, 1], ["sc", "fot"])
        axes.set_ylim(0, 1.1)
        drawing.percent_axis(axes.yaxis)
    drawing.legend(canvas, 4, "outside lower center")
