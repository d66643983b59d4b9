"""What every command shares: exit codes, data on stdout, everything else on stderr.

Text is printed as it is: no markup is read out of a pool's names or of a model's words.
Colour follows the terminal and ``NO_COLOR``; a table that goes into a pipe or a file is not cut to a width.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, TextIO

from fot.errors import ConfigError, EngineTimeout, EngineUnavailable, FotError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "ExitCode",
    "console",
    "exit_code",
    "print_error",
    "print_json",
    "print_note",
    "print_table",
    "progress",
    "synthetic_line",
]

UNCUT = 10_000  # columns; wider than any table of ours
GAP = 2  # between two columns
TOLD_EVERY_S = 20.0  # where there is no terminal
FORETOLD_FROM = 0.01
"""No time left is told from less than this share: the first steps of a run are not like the others."""


class ExitCode(IntEnum):
    """What a command tells the shell."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    PARTIAL = 4
    INTERRUPTED = 130


def exit_code(error: FotError) -> ExitCode:
    """Give the exit code that stands for ``error``."""
    if isinstance(error, ConfigError | UsageError):
        return ExitCode.USAGE
    if isinstance(error, EngineUnavailable | EngineTimeout):
        return ExitCode.UNREACHABLE
    return ExitCode.FAILED


def console(stream: TextIO) -> "Console":
    """Give a rich console on ``stream`` that prints text literally."""
    from rich.console import Console

    width = None if stream.isatty() else UNCUT
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def print_json(value: object) -> None:
    """Print one object (a dict, dataclass or msgspec struct) as one line of JSON; NaN becomes null."""
    import msgspec

    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1, title: str = ""
) -> None:
    """Print a table; the first ``text_columns`` columns are set left, the others, being numbers, right.

    On a terminal that is too narrow for all of them, numbers go on below, behind the same text columns.
    """
    from rich.table import Table
    from rich.text import Text

    out = console(sys.stdout)
    columns = list(zip_longest(headers, *rows, fillvalue=""))
    if title:
        sys.stdout.write(f"{title}\n")
    for number, block in enumerate(_blocks(columns, text_columns, out.width)):
        table = Table(box=None, pad_edge=False)
        for at in block:
            table.add_column(Text(columns[at][0]), justify="left" if at < text_columns else "right", overflow="fold")
        for row in range(1, len(rows) + 1):
            table.add_row(*(Text(columns[at][row]) for at in block))
        with out.capture() as drawn:
            out.print(table)
        sys.stdout.write("\n" if number else "")
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in drawn.get().splitlines())


def _blocks(columns: Sequence[Sequence[str]], lead: int, width: int) -> list[list[int]]:
    """Which columns stand side by side: behind the first ``lead``, as many of the others as ``width`` holds."""
    from rich.cells import cell_len

    widths = [max(cell_len(line) for cell in column for line in cell.splitlines() or [""]) for column in columns]
    room = max(width - sum(widths[:lead]) - GAP * (lead - 1), width // 2)  # a text past the half is folded
    blocks: list[list[int]] = [[]]
    left = room
    for at in range(lead, len(columns)):
        if blocks[-1] and widths[at] + GAP > left:
            blocks.append([])
            left = room
        blocks[-1].append(at)
        left -= widths[at] + GAP
    return [[*range(lead), *block] for block in blocks]


def synthetic_line(made_by: str | None) -> str:
    """What the title of a table goes on with where texts were made up."""
    return f"\nSYNTHETIC texts ({made_by}): nothing here speaks of a real model" if made_by else ""


def print_note(message: str) -> None:
    """Tell the reader something on stderr that is no error."""
    sys.stderr.write(f"note: {message}\n")


def print_error(message: str, hint: str = "") -> None:
    """Print ``error: ...`` and, where there is something to do about it, ``hint: ...`` on stderr."""
    sys.stderr.write(f"error: {message}\n")
    if hint:
        sys.stderr.write(f"hint: {hint}\n")


@contextmanager
def progress(description: str, total: float | None = None, unit: str = "") -> Iterator[Callable[[float], None]]:
    """Show on stderr how far the block is while it runs; call what it yields with the amount done so far.

    A terminal gets a bar with the rate and the time left; anything else a line now and then, of a long run alone.
    ``total`` None: a bar of unknown length. ``unit`` "B" counts bytes.
    """
    if not sys.stderr.isatty():
        yield _lines(description, total, unit)
        return
    from rich import progress as bars

    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.TaskProgressColumn())
    told = (bars.TextColumn("{task.fields[rate]}"), bars.TimeRemainingColumn())
    began = time.monotonic()
    with bars.Progress(*columns, *told, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(description, total=total, rate="")
        yield lambda done: bar.update(task, completed=done, rate=_rate(done, time.monotonic() - began, total, unit))


def _lines(description: str, total: float | None, unit: str) -> Callable[[float], None]:
    began = told = time.monotonic()

    def note(done: float) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told < TOLD_EVERY_S or done <= 0:
            return
        told = now
        parts = [_rate(done, now - began, total, unit)]
        if total and done / total >= FORETOLD_FROM:
            left = (total - done) * (now - began) / done / 60
            parts = [f"{done / total:.0%}", *parts, f"about {left:,.1f} min left"]
        if any(parts):
            print_note(f"{description}: {', '.join(filter(None, parts))}")

    return note


def _rate(done: float, seconds: float, total: float | None, unit: str) -> str:
    """How much a second, in three figures; nothing where shares of one whole are counted."""
    if total == 1 and not unit:
        return ""
    rate = done / seconds if seconds > 0 else 0.0
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= factor:
            return f"{rate / factor:.3g} {prefix}{unit}/s"
    return f"{rate:.3g} {unit}/s".replace(" /", "/")
