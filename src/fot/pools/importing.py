"""`import_rows`: row files into a pool. Bad rows are set aside with file, line and reason; the import goes on.

An import that was killed goes on after the last run of rows that it had on disk (`fot.pools.bookmark`), and one that is
done already is not done again.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec
import pyarrow.parquet as pq

import fot.pools.logs
import fot.pools.rows
import fot.pools.sources
import fot.pools.write
from fot.core.rollout import ProblemKey
from fot.errors import PoolError
from fot.pools.bookmark import Bookmark, Place
from fot.pools.logs import LogFile, Names, source_of
from fot.pools.recipe import code_digest, recipe_of
from fot.pools.rows import BadRow, Row
from fot.pools.schema import (
    REQUIRED,
    Manifest,
    RowsFile,
    is_pool,
    joint_digest,
    read_manifest,
    rows_file,
    write_manifest,
)
from fot.pools.sources import Rejected, RowFile
from fot.pools.staging import check_replaceable, publish, staged
from fot.pools.write import RowsWriter, Run

__all__ = ["ImportReport", "import_rows"]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. `rejects` is the file with the rejected rows, None when there are none."""

    pool: Path
    rollouts: int
    problems: int
    rejected: int
    rejects: Path | None
    resumed: int
    """Rollouts that an import before this one had written."""


def import_rows(
    files: Sequence[Path],
    out: Path,
    *,
    rejects: Path | None = None,
    synthetic: str | None = None,
    name: str | None = None,
    form: str | None = None,
    names: Names = Names(),  # noqa: B008 - it cannot be changed
    progress: Callable[[int], None] = lambda _: None,
) -> ImportReport:
    """Make a pool at `out` from row files; a pool that stands there is replaced once the new one is complete.

    Logs of other harnesses are recognised by their content, or by `form`; `names` says what they may not.

    Rejected rows go to `rejects` (by default beside `out`, with the suffix `.rejects.jsonl`) as
    `{"file", "line", "reason", "row"}`. `progress` is told how many bytes of all files are done. Raises `PoolError`
    when a file cannot be read, when `out` cannot be written, or when no row can be imported.
    """
    numbers: Counter[ProblemKey] = Counter()
    sources = [source_of(path, form, names, numbers) for path in files]
    out = out.absolute()
    check_replaceable(out)
    where = rejects or out.with_name(f"{out.name}.rejects.jsonl")
    if any(where.exists() and where.samefile(path) for path in files):
        raise PoolError(f"{where} is one of the files to import", "write the rejected rows to another file")
    recipe = _recipe(files, where.absolute(), name or out.name, synthetic, form, names)
    if (there := _done(out, recipe, where)) is not None:
        return there
    with staged(out, recipe) as stage:
        mark = Bookmark(stage, where)
        ledger = _Ledger()
        ledger.restore([stage / run.file for run in mark.runs])
        resumed = ledger.rollouts
        with _Rejects(where, mark.place) as bad:
            reading = _Reading(sources, ledger, bad, mark)
            with RowsWriter(stage, reading) as writer:
                for row in reading.rows(progress):
                    writer.add(ledger.place(row.key), row)
                if not ledger.rollouts:
                    raise _nothing(sources, bad)
                parts = _named(writer.finish(ledger.place))
            manifest = Manifest(
                name=name or out.name,
                parts=tuple(parts),
                sha256=joint_digest(parts),
                rollouts=ledger.rollouts,
                problems=len(ledger.problems),
                chars=ledger.chars,
                rejected=bad.count,
                synthetic=synthetic,
                recipe=recipe,
            )
        write_manifest(stage, manifest)
        mark.remove()
        publish(stage, out, [part.file for part in parts])
    return _report(out, manifest, where, resumed)


def _report(out: Path, manifest: Manifest, where: Path, resumed: int) -> ImportReport:
    rejects = where if manifest.rejected else None
    return ImportReport(out, manifest.rollouts, manifest.problems, manifest.rejected, rejects, resumed)


def _recipe(files: Sequence[Path], *how: object) -> str:
    """All that the pool depends on: an import with the same recipe makes the same pool."""
    code = code_digest(sys.modules[__name__], fot.pools.rows, fot.pools.sources, fot.pools.logs, fot.pools.write)
    stats = [path.stat() for path in files]
    identities = [
        (str(path.absolute()), stat.st_size, stat.st_mtime_ns) for path, stat in zip(files, stats, strict=True)
    ]
    return recipe_of(code, fot.__version__, identities, *how)


def _done(out: Path, recipe: str, where: Path) -> ImportReport | None:
    """The report of this very import, when it has been done before and what it made is whole."""
    if not is_pool(out):
        return None
    try:
        there = read_manifest(out)
    except PoolError:
        return None  # damaged, or of another version: it is replaced
    whole = there.recipe == recipe and where.exists() == (there.rejected > 0)
    if not whole or any(rows_file(out / part.file) != part for part in there.parts):
        return None
    return _report(out, there, where, there.rollouts)


def _named(paths: Sequence[Path]) -> list[RowsFile]:
    """Give files of rows the names that they have in a pool, and remove what is not needed any more."""
    made = [rows_file(path) for path in paths]
    parts = [RowsFile(f"rows-{part.sha256[:16]}.parquet", part.bytes, part.sha256) for part in made]
    for path, part in zip(paths, parts, strict=True):
        path.rename(path.with_name(part.file))
    for left in paths[0].parent.glob("run-*"):
        left.unlink()
    return parts


class _Reading:
    """Reads what lies behind the mark in all files, and moves the mark as rows reach the disk."""

    def __init__(self, sources: Sequence[RowFile | LogFile], ledger: _Ledger, bad: _Rejects, mark: Bookmark) -> None:
        self._sources, self._ledger, self._bad, self._mark = sources, ledger, bad, mark
        self._source, self._items = mark.place.source, mark.place.items
        self.runs = mark.runs

    def mark(self) -> Callable[[Run], None]:
        """See `fot.pools.write.Journal`."""
        here = Place(self._source, self._items, self._bad.count, self._bad.flush())
        return lambda run: self._mark.put(run, here)

    def rows(self, progress: Callable[[int], None]) -> Iterator[Row]:
        """The rows that go into the pool; the others go to the rejects."""
        done = 0
        for number, source in enumerate(self._sources):
            if number < self._source:
                source.pass_over()
                done += source.size
                continue
            if number > self._source:
                self._source, self._items = number, 0
            skip = self._items
            for item in source.rows(lambda position, start=done: progress(start + position), skip):  # type: ignore[misc]
                self._items += 1
                if (row := self._admitted(source, item)) is not None:
                    yield row
            done += source.size

    def _admitted(self, source: RowFile | LogFile, item: tuple[int | None, Row] | Rejected) -> Row | None:
        if isinstance(item, Rejected):
            self._bad.add(source.path, item)
            return None
        line, row = item
        try:
            self._ledger.admit(row)
        except BadRow as reason:
            self._bad.add(source.path, Rejected(line, str(reason), _as_json(row)))
            return None
        return row


def _nothing(sources: Sequence[RowFile | LogFile], bad: _Rejects) -> PoolError:
    names = ", ".join(str(source.path) for source in sources)
    if bad.first is None:
        return PoolError(f"no rows in {names}", "a row file has one JSON object per line, or is Parquet")
    plain = any(isinstance(source, RowFile) for source in sources)
    needed = f"; a row is one JSON object on a line, with {', '.join(REQUIRED)}" if plain else ""
    place = "" if bad.first.line is None else f"line {bad.first.line}: "
    return PoolError(
        f"nothing could be imported from {names}: {bad.count} rejected, the first because of {place}{bad.first.reason}",
        f"all reasons are in {bad.path}{needed}",
    )


@dataclass(slots=True)
class _Problem:
    """What the rows of one problem have said so far."""

    place: int
    rollout_ids: set[int] = field(default_factory=set)
    problem: str | None = None
    gold: str | None = None


class _Ledger:
    """Which rows there are already: finds duplicates, and rows that contradict their problem."""

    def __init__(self) -> None:
        self.problems: dict[ProblemKey, _Problem] = {}
        self.rollouts = 0
        self.chars = 0

    def place(self, key: ProblemKey) -> int:
        """Where the problem stands in the order of problems: first seen, first."""
        return self.problems[key].place

    def admit(self, row: Row) -> None:
        """Enter a row; `BadRow` when it cannot stand beside those before it."""
        known = self.problems.get(row.key) or _Problem(len(self.problems))
        fields = row.fields
        if fields.rollout_id in known.rollout_ids:
            raise BadRow(f"rollout {fields.rollout_id} of problem {fields.problem_id} is there already")
        for name in ("gold", "problem"):
            before, now = getattr(known, name), getattr(fields, name)
            if now is not None and before is not None and now != before:
                raise BadRow(f"field `{name}` differs from an earlier row of problem {fields.problem_id}")
        self.problems[row.key] = known
        self._enter(known, fields.rollout_id, fields.problem, fields.gold, len(fields.text))

    def restore(self, runs: Sequence[Path]) -> None:
        """Enter the rows that are in these files, in whose order problems were first seen."""
        columns = ["model", "benchmark", "problem_id", "rollout_id", "problem", "gold", "n_chars"]
        for run in runs:
            for model, benchmark, name, *said in zip(
                *pq.read_table(run, columns=columns).to_pydict().values(), strict=True
            ):
                known = self.problems.setdefault((model, benchmark, name), _Problem(len(self.problems)))
                self._enter(known, *said)

    def _enter(self, known: _Problem, rollout_id: int, problem: str | None, gold: str | None, chars: int) -> None:
        known.rollout_ids.add(rollout_id)
        known.gold = gold if known.gold is None else known.gold
        known.problem = problem if known.problem is None else known.problem
        self.rollouts += 1
        self.chars += chars


def _as_json(row: Row) -> str:
    ends = None if row.token_ends is None else row.token_ends.tolist()
    extra = msgspec.json.decode(row.extra) if row.extra else {}
    known = {**msgspec.to_builtins(row.fields), "token_ends": ends}
    return msgspec.json.encode(
        {**{name: value for name, value in known.items() if value is not None}, **extra}
    ).decode()


class _Rejects:
    """The file of rejected rows: there when there is one, and only then. Those before `place` are in it already."""

    def __init__(self, path: Path, place: Place) -> None:
        self.path = path
        self.count = place.rejected
        self.first: Rejected | None = None
        self._kept = place.rejected_bytes
        self._file: BinaryIO | None = None

    def __enter__(self) -> _Rejects:
        if self._kept:
            self._file = self.path.open("r+b")
            self._file.truncate(self._kept)
            self._file.seek(self._kept)
        else:
            self.path.unlink(missing_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def flush(self) -> int:
        """Hand over what was written; the bytes that it takes."""
        if self._file is None:
            return 0
        self._file.flush()
        return self._file.tell()

    def add(self, source: Path, item: Rejected) -> None:
        """Write down one row that was not imported."""
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb")
        self.first = self.first or item
        self.count += 1
        entry = {"file": str(source), "line": item.line, "reason": item.reason, "row": item.row}
        self._file.write(msgspec.json.encode(entry) + b"\n")
