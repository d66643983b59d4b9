"""What a report is made of: exhibits, each a table, figures and a sentence about this pool's own figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fot.report.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from fot.report.material import Material

__all__ = ["Exhibit", "Figure", "NotHere", "Step"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing: `draw` is given an empty matplotlib figure of `width` by `height` inches."""

    name: str
    caption: str
    draw: Callable[[Canvas], None]
    width: float = 7.0
    height: float = 3.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """One finding. `sentence` says what it shows, `notes` how it was made; both are text, not HTML."""

    sentence: str
    table: Table | None = None
    more: tuple[tuple[str, Table], ...] = ()
    """Further tables, each with its name."""
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    banner: str | None = None
    folded: bool = False
    """The table only repeats what a figure shows: a page folds it away."""


class NotHere(Exception):
    """An exhibit that a pool cannot support; the message is the reason, one sentence."""


@dataclass(frozen=True, slots=True)
class Step:
    """An analysis by name, what makes its exhibit, and the paper's tables and figures that it corresponds to."""

    name: str
    title: str
    make: Callable[[Material], Exhibit]
    tables: tuple[int, ...] = ()
    figures: tuple[int, ...] = ()

    @property
    def paper(self) -> str:
        """Where it stands in the paper; empty where it is this project's own."""
        parts = [_numbered(word, numbers) for word, numbers in (("table", self.tables), ("figure", self.figures))]
        return ", ".join(part for part in parts if part)


def _numbered(word: str, numbers: tuple[int, ...]) -> str:
    if not numbers:
        return ""
    *first, last = map(str, numbers)
    return f"{word}s {', '.join(first)} and {last}" if first else f"{word} {last}"
