"""``fot grade``."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple

from cyclopts import Parameter

from fot.cli.output import ExitCode, print_note, print_table, progress
from fot.errors import UsageError

if TYPE_CHECKING:
    from fot.grading.base import Grade, Grader, Pair

__all__ = ["grade"]


class _Read(NamedTuple):
    """One line of the file: a pair, or what is wrong with it."""

    line: int
    pair: "Pair | None"
    reason: str = ""


def grade(  # noqa: PLR0913 - a flag each
    file: Path | None = None,
    /,
    *,
    grader: str,
    gold: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    answer: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    store: Path | None = None,
    workers: int | None = None,
    limit_s: float | None = None,
    accept_risk: bool = False,
    json: bool = False,
) -> int:
    """Judge committed answers against reference answers.

    Each pair is correct, wrong, undecided (with a reason), or has no answer. A row that cannot be read is named on
    stderr, is undecided in its place, and makes the exit code 4.

    Parameters
    ----------
    file
        JSON lines with `gold` and `answer`, texts or null; - for standard input.
    grader
        How to judge: exact, math, choice, code, or one that an installed package brings.
    gold
        One reference answer, in place of a file.
    answer
        The committed answer to judge against it.
    store
        Keep grades in this file and take known ones from it, so that a run that was ended goes on.
    workers
        Processes at once; one a core when not given.
    limit_s
        Seconds for one pair (math: 5, of processor time) or one test (code: 6).
    accept_risk
        Run programs without a sandbox where there is none.
    json
        Print one JSON object a pair, in order.
    """
    from fot.grading.base import Grade, GraderOptions, Judgement
    from fot.grading.base import grader as find_grader

    options = GraderOptions(workers=workers, limit_s=limit_s, accept_risk=accept_risk)
    with find_grader(grader, options) as judge:
        rows = list(_rows(file, gold, answer))
        grades = iter(_judge(judge, [row.pair for row in rows if row.pair is not None], store))
        results = [
            next(grades) if row.pair is not None else Grade(Judgement.UNDECIDED, f"line {row.line}: {row.reason}")
            for row in rows
        ]
        version = judge.version
    _show(results, version, json=json, single=file is None)
    bad = [row for row in rows if row.pair is None]
    for row in bad:
        print_note(f"line {row.line}: {row.reason}")
    return ExitCode.PARTIAL if bad else ExitCode.OK


def _judge(judge: "Grader", pairs: "list[Pair]", store: Path | None) -> "list[Grade]":
    from fot.grading.base import distinct

    with progress("grading", len(distinct(pairs))) as done:
        if store is None:
            return judge.grade_all(pairs, done)
        from fot.grading.store import GradeStore, grade_stored

        with GradeStore(store) as kept:
            return grade_stored(judge, pairs, kept, done)


def _rows(file: Path | None, gold: str | None, answer: str | None) -> Iterator[_Read]:
    if file is None:
        if gold is None or answer is None:
            raise UsageError("there is nothing to grade", "name a file, or give both --gold and --answer")
        yield _Read(1, (gold, answer))
        return
    if gold is not None or answer is not None:
        raise UsageError("a file and --gold or --answer exclude each other", "give one of the two")
    with _opened(file) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _parse(number, line)


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    if str(file) == "-":
        yield sys.stdin.buffer
    else:
        with file.open("rb") as lines:
            yield lines


def _parse(number: int, line: bytes) -> _Read:
    import msgspec

    try:
        row = msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _Read(number, None, f"not JSON: {error}")
    if not isinstance(row, dict):
        return _Read(number, None, "not a JSON object")
    texts: list[str | None] = []
    for name in ("gold", "answer"):
        if name not in row:
            return _Read(number, None, f"no field '{name}'")
        value = row[name]
        if isinstance(value, bool) or not (value is None or isinstance(value, str | int | float)):
            return _Read(number, None, f"field '{name}' is neither text nor null")
        texts.append(None if value is None else str(value))
    return _Read(number, (texts[0], texts[1]))


def _show(results: "list[Grade]", version: str, *, json: bool, single: bool) -> None:
    from collections import Counter

    import msgspec

    if json:
        for result in results:
            sys.stdout.write(
                msgspec.json.encode({"verdict": result.verdict.value, "reason": result.reason}).decode() + "\n"
            )
        return
    print_table(["verdict", "reason"], [[result.verdict.value, result.reason] for result in results], text_columns=2)
    if not single:
        counts = Counter(result.verdict.value for result in results)
        shares = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.most_common())
        print_note(f"{len(results):,} pairs by {version}: {shares}")
