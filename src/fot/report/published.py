"""The figures that the paper prints, as data: its 21 tables, and what its text says about its 8 figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from fot.report.table import Column, Table

__all__ = ["Published", "published", "stated"]


@dataclass(frozen=True, slots=True)
class Published:
    """One of the paper's tables or figures. Cells are as printed; an empty one is a dash or a blank."""

    kind: str
    number: int
    name: str
    title: str
    table: Table


class _Entry(msgspec.Struct):
    number: int
    name: str
    title: str
    columns: list[str]
    rows: list[list[str]]


class _File(msgspec.Struct):
    source: str
    tables: list[_Entry]
    figures: list[_Entry]
    stated: list[tuple[str, str]]


@cache
def _file() -> _File:
    return msgspec.json.decode((files("fot.report") / "data" / "published.json").read_bytes(), type=_File)


@cache
def published() -> dict[tuple[str, int], Published]:
    """By kind (`table`, `figure`) and number."""
    entries = [("table", entry) for entry in _file().tables] + [("figure", entry) for entry in _file().figures]
    return {
        (kind, entry.number): Published(kind, entry.number, entry.name, entry.title, _table(entry))
        for kind, entry in entries
    }


def stated() -> dict[str, str]:
    """Figures that stand only in the text, by what they are of."""
    return dict(_file().stated)


def _table(entry: _Entry) -> Table:
    numeric = [
        all(not row[at] or row[at][0] in "+-<0123456789" for row in entry.rows) and at > 0
        for at in range(len(entry.columns))
    ]
    columns = tuple(
        Column(f"c{at}", header, "printed" if right else "text")
        for at, (header, right) in enumerate(zip(entry.columns, numeric, strict=True))
    )
    return Table(columns, tuple(tuple(row) for row in entry.rows))
