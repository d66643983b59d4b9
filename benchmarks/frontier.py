"""The frontier: accuracy against attention, tokens and latency, and tokens against latency, on each pool.

    python -m benchmarks.frontier POOL:K:COMMIT... [--pools 8] --out FOLDER

Every method is run at several settings, on random arrangements of each pool's rollouts (see `benchmarks.resampled`);
methods that draw reading orders draw one for each. Writes `methods-frontier.svg`, `methods-waves.svg` and the figures
behind them as a Markdown table, `methods-frontier.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.methods import Source, name_of, source
from benchmarks.resampled import studies
from fot.methods import parse
from fot.replay.evaluate import MethodResult
from fot.report.drawing import DASHES, INK, MARKS, MUTED, SERIES, panel, svg
from fot.report.exhibit import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

FAMILIES = {
    "fewer rollouts": [f"first-n:n={n},draws=1" for n in (4, 6, 8, 12, 15, 22)],
    "fot": ["fot", "fot+decided", "fot:eager=on+bayes"],
    "adaptive": [f"adaptive:first={share}" for share in (0.3, 0.4, 0.5, 0.6, 0.75, 1)],
    "adaptive, random": [f"adaptive:first={share},signal=random" for share in (0.3, 0.5, 0.75, 1)],
    "waves": [f"waves:first={first},more={more}" for first, more in ((4, 4), (8, 8), (12, 9), (16, 16), (24, 16))],
    "ac": [f"ac:threshold={threshold},draws=1" for threshold in (0.8, 0.9, 0.95, 0.99)],
    "ac in windows": [f"ac:window={window},draws=1" for window in (2, 4, 8)],
    "esc, dsc": ["esc:window=3,draws=1", "esc:draws=1", "esc:window=8,draws=1", "dsc:draws=1"],
}
WAVES = ("fot", "adaptive", "waves", "ac", "ac in windows", "esc, dsc")
"""The families that say how launching fewer at a time trades latency for tokens."""
APART = {"esc, dsc"}
"""Families whose settings are no scale: points without a line."""
AXES = ("attention", "tokens", "latency")


class Point(NamedTuple):
    """One setting on one pool, means over its arrangements: problems gained, and shares of `sc` that are left."""

    gained: float
    attention: float
    tokens: float
    latency: float


Found = dict[str, dict[str, list[MethodResult]]]
"""By pool and spec, a result for each arrangement."""


def found_on(one: Source, pools: int) -> dict[str, list[MethodResult]]:
    """Every setting on every arrangement of one pool."""
    specs = [spec for family in FAMILIES.values() for spec in family]
    results: dict[str, list[MethodResult]] = {spec: [] for spec in specs}
    for study in studies(one, None, pools):
        for spec in specs:
            results[spec].append(study.evaluate(parse(spec)))
    return results


def point(results: Sequence[MethodResult]) -> Point:
    """The mean over arrangements."""
    left = (1 - fmean(getattr(result.savings, axis) for result in results) for axis in AXES)
    return Point(fmean(result.delta for result in results), *left)


def frontier(found: Found) -> Figure:
    """Problems gained against what is left, a row for each pool and a column for each kind of cost."""

    def draw(canvas: Canvas) -> None:
        first: Axes | None = None
        for row, (pool, results) in enumerate(found.items()):
            for column, axis in enumerate(AXES):
                axes = panel(
                    canvas, len(found), len(AXES), row * len(AXES) + column + 1, title=pool if not column else ""
                )
                first = first or axes
                lines(axes, results, FAMILIES, axis, "gained")
                axes.plot(1, 0, marker="+", color=INK, markersize=9)
                axes.axhline(0, color=MUTED, linewidth=0.6)
                if axis == "latency":
                    doublings(axes)
                axes.set_xlabel(f"{axis} left, sc = 1" if row == len(found) - 1 else "")
                axes.set_ylabel("" if column else "problems gained")
        if first is not None:
            canvas.legend(*first.get_legend_handles_labels(), loc="outside upper center", ncols=4)

    return Figure("methods-frontier", "Problems gained over sc against what is left of its cost.", draw, 8.0, 7.2)


def between(found: Found) -> Figure:
    """Tokens against latency: from the parallel funnel over waves to the sequential methods."""

    def draw(canvas: Canvas) -> None:
        for column, (pool, results) in enumerate(found.items(), start=1):
            axes = panel(canvas, 1, len(found), column, x="latency left, sc = 1", title=pool)
            lines(axes, results, WAVES, "latency", "tokens")
            axes.plot(1, 1, marker="+", color=INK, markersize=9)
            doublings(axes)
            axes.set_ylabel("" if column > 1 else "tokens left, sc = 1")
            if column == 1:
                canvas.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=len(WAVES))

    return Figure("methods-waves", "Tokens against latency.", draw, 8.0, 3.2)


def doublings(axes: Axes) -> None:
    """Give the horizontal axis steps of two."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def on_paper(drawing: str) -> str:
    """The drawing with a white ground, for pages that may be dark."""
    return drawing.replace(
        '<g id="figure_1">', '<rect width="100%" height="100%" fill="#ffffff"/>\n <g id="figure_1">', 1
    )


def lines(axes: Axes, results: dict[str, list[MethodResult]], families: Collection[str], x: str, y: str) -> None:
    """A line for each family, through its settings."""
    for at, (family, specs) in enumerate(FAMILIES.items()):
        if family in families:
            points = [point(results[spec]) for spec in specs]
            axes.plot(
                [getattr(one, x) for one in points],
                [getattr(one, y) for one in points],
                marker=MARKS[at],
                linestyle="" if family in APART else DASHES[at],
                color=SERIES[at],
                linewidth=0.9,
                label=family,
            )


def table(found: Found) -> Iterator[str]:
    """Every setting: means over pools, and the sum of the problems gained."""
    yield "| setting | gained, by pool | sum | attention left | tokens left | latency left |"
    yield "|---|---|---|---|---|---|"
    for spec in (spec for family in FAMILIES.values() for spec in family):
        by_pool = [results[spec] for results in found.values()]
        points = [point(results) for results in by_pool]
        sums = [sum(result.delta for result in drawn) for drawn in zip(*by_pool, strict=True)]
        gained = ", ".join(f"{one.gained:+.1f}" for one in points)
        left = " | ".join(f"{fmean(getattr(one, axis) for one in points):.2f}" for axis in AXES)
        setting = spec.replace(",draws=1", "").replace(":draws=1", "")
        yield f"| `{setting}` | {gained} | {fmean(sums):+.1f} ± {pstdev(sums):.1f} | {left} |"


def main() -> None:
    """Measure, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=source, nargs="+")
    parser.add_argument("--pools", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found = {f"{name_of(one)}, k = {one.k}": found_on(one, options.pools) for one in options.sources}
    options.out.mkdir(parents=True, exist_ok=True)
    for figure in (frontier(found), between(found)):
        (options.out / f"{figure.name}.svg").write_text(on_paper(svg(figure)), encoding="utf-8")
    (options.out / "methods-frontier.md").write_text("\n".join(table(found)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
