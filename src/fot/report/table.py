"""Tables: tidy values for files, the same values written for people.

Values are raw (fractions, not percentages); a column's `form` says how they are written. None is a value that there is
none of.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["MINUS", "Column", "Table", "Value", "number", "written"]

Value = str | int | float | bool | tuple[float, float] | None
MINUS = "\N{MINUS SIGN}"
_NONE = "\N{EN DASH}"
_ZERO = re.compile(r"^[+-](0(?:\.0+)?%?)$")  # what rounds to nothing has no sign


@dataclass(frozen=True, slots=True)
class Column:
    """`name` in files, `header` for people; `form` is a key of `FORMS`, `interval-FORM`, or `text`."""

    name: str
    header: str
    form: str = "text"

    @property
    def is_text(self) -> bool:
        """Set left, not right."""
        return self.form == "text"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of raw values under columns; `strong` are the rows to be set off, by number."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    strong: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("a row has not as many values as there are columns")

    def cells(self) -> list[list[str]]:
        """Every value as it is written."""
        return [[written(v, column.form) for v, column in zip(row, self.columns, strict=True)] for row in self.rows]

    def column(self, name: str) -> list[Value]:
        """The raw values of one column."""
        at = [column.name for column in self.columns].index(name)
        return [row[at] for row in self.rows]

    def labelled(self, text: str) -> Table:
        """The same with a last column that says `text` in every row, for files that have no place for a remark."""
        return replace(
            self, columns=(*self.columns, Column("banner", "banner")), rows=tuple((*row, text) for row in self.rows)
        )

    def records(self) -> list[dict[str, Value]]:
        """Tidy rows: an interval becomes two fields."""
        return [self._record(row) for row in self.rows]

    def _record(self, row: Sequence[Value]) -> dict[str, Value]:
        record: dict[str, Value] = {}
        for column, value in zip(self.columns, row, strict=True):
            if column.form.startswith("interval-"):
                low, high = value if isinstance(value, tuple) else (None, None)
                record |= {f"{column.name}_low": low, f"{column.name}_high": high}
            else:
                record[column.name] = value
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value for name, value in record.items()
        }

    def csv(self) -> str:
        """RFC 4180, a header line first; floats with all their digits."""
        out = io.StringIO()
        records = self.records()
        names = list(records[0]) if records else [column.name for column in self.columns]
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return out.getvalue()

    def parquet(self, path: Path) -> None:
        """The same rows as `csv`, typed."""
        import polars as pl

        records = self.records()
        names = list(records[0]) if records else [column.name for column in self.columns]
        frame = pl.DataFrame({name: [record[name] for record in records] for name in names}, strict=False)
        frame.write_parquet(path, compression="zstd", statistics=False)

    def markdown(self) -> str:
        """A pipe table, numbers set right."""
        rules = ["---" if column.is_text else "--:" for column in self.columns]
        rows = [[cell.replace("|", "\\|") for cell in row] for row in self.cells()]
        return "".join(f"| {' | '.join(row)} |\n" for row in [[c.header for c in self.columns], rules, *rows])

    def latex(self) -> str:
        """A `tabular` for the booktabs package."""
        spec = "".join("l" if column.is_text else "r" for column in self.columns)
        head = " & ".join(f"\\textbf{{{_latex(column.header)}}}" for column in self.columns)
        body = []
        for number, row in enumerate(self.cells()):
            cells = [_latex(cell) for cell in row]
            body.append(
                " & ".join(f"\\textbf{{{cell}}}" for cell in cells) if number in self.strong else " & ".join(cells)
            )
        lines = [f"\\begin{{tabular}}{{{spec}}}", "\\toprule", f"{head} \\\\", "\\midrule"]
        return "\n".join([*lines, *(f"{line} \\\\" for line in body), "\\bottomrule", "\\end{tabular}", ""])


def number(value: Value) -> float:
    """A raw value as a number; NaN where there is none."""
    return float(value) if isinstance(value, int | float) else math.nan


def written(value: Value, form: str) -> str:
    """A value as people read it: a true minus, grouped thousands, percentages with one digit."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return _NONE
    if isinstance(value, tuple):
        low, high = (written(end, form.removeprefix("interval-")) for end in value)
        return _NONE if low == high == _NONE else f"{low} to {high}"
    if isinstance(value, str):
        return MINUS + value[1:] if form == "printed" and value[:1] == "-" else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _ZERO.sub(r"\1", FORMS[form](value)).replace("-", MINUS)


def _p(value: float) -> str:
    if value < 1e-300:
        return "<1e-300"
    return f"{value:.0e}".replace("e-0", "e-") if value < 0.001 else f"{value:.3f}"


def _signed(value: float) -> str:
    return f"{value:+.0f}" if float(value).is_integer() else f"{value:+.1f}"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


FORMS: dict[str, Callable[[float], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "mean": _plain,
    "number": lambda value: f"{value:.2f}",
    "number1": lambda value: f"{value:,.1f}",
    "r": lambda value: f"{value:+.2f}",
    "number3": lambda value: f"{value:+.3f}",
    "times": lambda value: f"{value:.1f}\N{MULTIPLICATION SIGN}",
    "share": lambda value: "<0.1%" if 0 < value < 0.0005 else f"{100 * value:.1f}%",
    "points": lambda value: f"{100 * value:+.1f}",
    "pp": lambda value: f"{value:+.1f}",
    "signed": _signed,
    "p": _p,
    "printed": _plain,
}

_LATEX = {
    "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}",
    "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", MINUS: "$-$", _NONE: "--",
    "\N{MULTIPLICATION SIGN}": "$\\times$",
    "<": "$<$", ">": "$>$", "\N{LESS-THAN OR EQUAL TO}": "$\\leq$", "\N{RIGHTWARDS ARROW}": "$\\to$",
}  # fmt: skip


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
