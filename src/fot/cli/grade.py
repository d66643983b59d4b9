"""``fot grade``."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple

from cyclopts import Parameter

from fot.cli.graded import grade_rollouts
from fot.cli.output import ExitCode, print_note, print_table, progress
from fot.cli.standard_input import OR_STANDARD_INPUT
from fot.errors import UsageError

if TYPE_CHECKING:
    from fot.grading.base import Grade, Grader, Pair

__all__ = ["grade"]


_MOST_NAMED = 10


class _Read(NamedTuple):
    """One line of the file: a pair, or what is wrong with it."""

    line: int
    pair: "Pair | None"
    reason: str = ""


def grade(  # noqa: PLR0913 - a flag each
    file: Annotated[Path | None, OR_STANDARD_INPUT] = None,
    /,
    *,
    grader: str,
    gold: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    answer: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    store: Path | None = None,
    workers: int | None = None,
    limit_s: float | None = None,
    accept_risk: bool = False,
    commit: str = "boxed",
    out: Path | None = None,
    shard: str | None = None,
    json: bool = False,
) -> int:
    """Judge committed answers against reference answers: pairs from a file, one pair, or a whole pool.

    Each pair is correct, wrong, undecided (with a reason), or has no answer. A row that cannot be read is named on
    stderr, is undecided in its place, and makes the exit code 4.

    A pool's grades are kept beside it, each distinct pair once with the grader's version: a run that was ended goes on
    where it was, and fot simulate and fot report judge nothing again.

    Parameters
    ----------
    file
        JSON lines with `gold` and `answer`, texts or null; - for standard input; or a pool, or a file of rollouts.
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
    commit
        What a rollout's answer is, in a pool: boxed, choice, code or paper.
    out
        Write a JSON line for each rollout of a pool: answer, verdict, reason, and the grader's version.
    shard
        RANK/WORLD: judge this share of a pool's distinct pairs and leave the grades beside it; see fot spread.
    json
        Print one JSON object a pair, in order; for a pool, one object with its counts.
    """
    from fot.grading.base import Grade, GraderOptions, Judgement
    from fot.grading.base import grader as find_grader

    options = GraderOptions(workers=workers, limit_s=limit_s, accept_risk=accept_risk)
    if file is not None and _holds_rollouts(file):
        if gold is not None or answer is not None:
            raise UsageError("a pool and --gold or --answer exclude each other", "give one of the two")
        with find_grader(grader, options) as judge:
            return grade_rollouts(file, judge, commit=commit, store=store, out=out, shard=shard, json=json)
    if out is not None:
        raise UsageError("--out is for a pool's rollouts, and this is no pool", "redirect standard output, with --json")
    if shard is not None:
        raise UsageError("--shard is for a pool's rollouts, and this is no pool", "import them first: fot pool import")
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
    for row in bad[:_MOST_NAMED]:
        print_note(f"line {row.line}: {row.reason}")
    if len(bad) > _MOST_NAMED:
        print_note(f"and {len(bad) - _MOST_NAMED:,} more of {len(rows):,} lines; each is named in its place")
    return ExitCode.PARTIAL if bad else ExitCode.OK


def _holds_rollouts(file: Path) -> bool:
    """A pool, a file of another kind than JSON lines, or JSON lines whose first row has a text and no answer?"""
    if str(file) == "-" or not file.exists():
        return False
    if file.is_dir() or file.suffix in (".gz", ".zst", ".parquet"):
        return True
    with file.open("rb") as lines:
        first = next((line for line in lines if line.strip()), b"")
    read = _decoded(first)
    return isinstance(read, dict) and "text" in read and "answer" not in read


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
    row = _decoded(line)
    if isinstance(row, Exception):
        return _Read(number, None, f"not JSON: {row}")
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


def _decoded(line: bytes) -> object:
    """What the line holds; the error when it is no JSON."""
    import msgspec

    try:
        return msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return error


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
