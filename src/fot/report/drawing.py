"""How figures look: quiet, the same everywhere, and told apart without colour as well as with it.

Every series has its own marker, dash and hatch beside its colour, and the colours differ in lightness. A page that
shows a figure may replace the colours in `PALETTE` by its own, which is how figures follow a dark background.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fot.errors import MissingExtra
from fot.report.exhibit import Figure
from fot.report.table import MINUS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = [
    "DASHES", "FAINT", "HATCHES", "INK", "MARKS", "MUTED", "PALETTE", "SERIES",
    "bar_labels", "count_axis", "legend", "panel", "pdf", "percent_axis", "short", "svg",
]  # fmt: skip

INK = "#1c2a33"
MUTED = "#61707a"
FAINT = "#d5dce0"
PAPER = "#ffffff"
SERIES = ("#0b5d7a", "#d9822b", "#5b9f8f", "#8c3b4a", "#a9b665", "#6f5fa3", "#3b3b3b", "#c79fb7")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
HATCHES = ("", "////", "||||", "xxxx", "\\\\\\\\", "----", "++++", "//")  # lines: a hatch of dots is 250 KB of SVG
PALETTE = {"ink": INK, "muted": MUTED, "faint": FAINT, "paper": PAPER} | {f"s{n}": c for n, c in enumerate(SERIES)}

_STYLE: Any = {
    "svg.hashsalt": "fot", "svg.fonttype": "none", "pdf.fonttype": 42, "font.family": "DejaVu Sans", "font.size": 8.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": MUTED, "axes.labelcolor": INK,
    "axes.titlesize": 9, "axes.titlelocation": "left", "axes.titlecolor": INK, "axes.linewidth": 0.7, "text.color": INK,
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7, "grid.color": FAINT, "grid.linewidth": 0.6, "axes.grid": True, "axes.grid.axis": "y",
    "axes.axisbelow": True, "legend.frameon": False, "legend.fontsize": 8, "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6, "hatch.color": PAPER, "patch.linewidth": 0.5, "figure.constrained_layout.use": True,
    "axes.unicode_minus": True, "figure.facecolor": PAPER, "axes.facecolor": "none",
}  # fmt: skip


@contextmanager
def _drawn(figure: Figure, label: str) -> Iterator[Canvas]:
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise MissingExtra("figures") from None
    with mpl.rc_context(), _defaults(mpl):
        canvas = Canvas(figsize=(figure.width, figure.height))
        FigureCanvasAgg(canvas)
        figure.draw(canvas)
        if label:
            room = 0.16 / figure.height  # inches
            canvas.set_layout_engine("constrained", rect=(0, room, 1, 1 - room))
            canvas.text(0.995, 0.005, label, ha="right", va="bottom", fontsize=7, color=MUTED, style="italic")
        yield canvas


@contextmanager
def _defaults(mpl: Any) -> Iterator[None]:
    """Matplotlib as it comes, whatever the user's own settings are, and then our style."""
    mpl.rcParams.update({name: value for name, value in mpl.rcParamsDefault.items() if name != "backend"})
    mpl.rcParams.update(_STYLE)
    yield


def svg(figure: Figure, label: str = "") -> str:
    """The figure as SVG with real text; the same input gives the same bytes. `label` stands in a corner."""
    out = io.StringIO()
    with _drawn(figure, label) as canvas:
        canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return out.getvalue()


def pdf(figure: Figure, path: Path, label: str = "") -> None:
    """The figure as PDF, fonts embedded; the same input gives the same bytes."""
    with _drawn(figure, label) as canvas:
        canvas.savefig(path, format="pdf", metadata={"CreationDate": None, "Producer": None, "Creator": None})


def panel(canvas: Canvas, *where: int, x: str = "", y: str = "", title: str = "") -> Axes:
    """A panel with its axes named; `where` is rows, columns, number, as matplotlib has it (default: the only one)."""
    axes = canvas.add_subplot(*(where or (1, 1, 1)))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, pad=8)
    return axes


def percent_axis(axis: Any, *, signed: bool = False, unit: str = "%") -> None:
    """Write the fractions of an axis as percentages, or (without a unit) as percentage points."""
    from matplotlib.ticker import FuncFormatter

    def told(value: float, _: object) -> str:
        text = format(100 * value, "+.3g" if signed and value else ".3g").replace("-", MINUS)
        return f"{text}{unit}"

    axis.set_major_formatter(FuncFormatter(told))


def count_axis(axis: Any, *, signed: bool = False) -> None:
    """Whole numbers only; signed ones without their sign where the side tells it."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
    if not signed:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):,.0f}"))


def short(name: str, longest: int = 20) -> str:
    """A model's name for an axis: without who published it, cut in the middle where it is long."""
    own = name.rpartition("/")[2]
    return own if len(own) <= longest else f"{own[: longest // 2]}…{own[-(longest - longest // 2 - 1) :]}"


def legend(axes: Any, columns: int = 1, where: str = "best") -> None:
    """The names of the series, of a panel or (with a place outside of them) of all panels."""
    axes.legend(ncols=columns, loc=where, handlelength=2.2, columnspacing=1.2)


def bar_labels(axes: Axes, positions: Sequence[float], heights: Sequence[float], texts: Sequence[str]) -> None:
    """Write a figure above each bar (below one that hangs down)."""
    for position, height, text in zip(positions, heights, texts, strict=True):
        axes.annotate(
            text, (position, height), xytext=(0, 3 if height >= 0 else -3), textcoords="offset points", ha="center",
            va="bottom" if height >= 0 else "top", fontsize=7.5, color=INK,
        )  # fmt: skip
