"""`import_rows`: row files into a pool. Bad rows are set aside with file, line and reason; the import goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from fot.core.rollout import ProblemKey
from fot.errors import PoolError
from fot.pools.logs import LogFile, Names, source_of
from fot.pools.rows import BadRow, Row
from fot.pools.schema import Manifest, RowsFile, rows_file, write_manifest
from fot.pools.sources import Rejected, RowFile
from fot.pools.staging import check_replaceable, publish, staged
from fot.pools.write import RowsWriter

__all__ = ["ImportReport", "import_rows", "named_by_content"]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. `rejects` is the file with the rejected rows, None when there are none."""

    pool: Path
    rollouts: int
    problems: int
    rejected: int
    rejects: Path | None


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
    ledger = _Ledger()
    where = rejects or out.with_name(f"{out.name}.rejects.jsonl")
    if any(where.exists() and where.samefile(path) for path in files):
        raise PoolError(f"{where} is one of the files to import", "write the rejected rows to another file")
    with staged(out) as stage, _Rejects(where) as bad:
        chars = 0
        with RowsWriter(stage) as writer:
            for row in _admitted(sources, ledger, bad, progress):
                writer.add(ledger.place(row.key), row)
                chars += len(row.fields.text)
            if not ledger.rollouts:
                raise _nothing(sources, bad)
            rows_path = writer.finish(ledger.place)
        part = named_by_content(rows_path)
        manifest = Manifest(
            name=name or out.name,
            parts=(part,),
            sha256=part.sha256,
            rollouts=ledger.rollouts,
            problems=len(ledger.problems),
            chars=chars,
            rejected=bad.count,
            synthetic=synthetic,
        )
        write_manifest(stage, manifest)
        publish(stage, out, [part.file])
    return ImportReport(out, manifest.rollouts, manifest.problems, bad.count, where if bad.count else None)


def _admitted(
    sources: Sequence[RowFile | LogFile], ledger: _Ledger, bad: _Rejects, progress: Callable[[int], None]
) -> Iterator[Row]:
    """The rows of all files that go into the pool; the others go to `bad`."""
    done = 0
    for source in sources:
        for item in source.rows(lambda position, start=done: progress(start + position)):  # type: ignore[misc]
            if isinstance(item, Rejected):
                bad.add(source.path, item)
                continue
            line, row = item
            try:
                ledger.admit(row)
            except BadRow as reason:
                bad.add(source.path, Rejected(line, str(reason), _as_json(row)))
            else:
                yield row
        done += source.size


def _nothing(sources: Sequence[RowFile | LogFile], bad: _Rejects) -> PoolError:
    names = ", ".join(str(source.path) for source in sources)
    if bad.first is None:
        return PoolError(f"no rows in {names}", "a row file has one JSON object per line, or is Parquet")
    place = "" if bad.first.line is None else f"line {bad.first.line}: "
    return PoolError(
        f"nothing could be imported from {names}: {bad.count} rejected, the first because of {place}{bad.first.reason}",
        f"all reasons are in {bad.path}",
    )


def named_by_content(rows: Path) -> RowsFile:
    """Give a file of rows the name that it has in a pool."""
    part = rows_file(rows)
    named = rows.rename(rows.with_name(f"rows-{part.sha256[:16]}.parquet"))
    return RowsFile(named.name, part.bytes, part.sha256)


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
        known.rollout_ids.add(fields.rollout_id)
        known.gold = fields.gold if known.gold is None else known.gold
        known.problem = fields.problem if known.problem is None else known.problem
        self.problems[row.key] = known
        self.rollouts += 1


def _as_json(row: Row) -> str:
    ends = None if row.token_ends is None else row.token_ends.tolist()
    extra = msgspec.json.decode(row.extra) if row.extra else {}
    known = {**msgspec.to_builtins(row.fields), "token_ends": ends}
    return msgspec.json.encode(
        {**{name: value for name, value in known.items() if value is not None}, **extra}
    ).decode()


class _Rejects:
    """The file of rejected rows: there when there is one, and only then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.first: Rejected | None = None
        self._file: BinaryIO | None = None

    def __enter__(self) -> _Rejects:
        self.path.unlink(missing_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, source: Path, item: Rejected) -> None:
        """Write down one row that was not imported."""
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("wb")
        self.first = self.first or item
        self.count += 1
        entry = {"file": str(source), "line": item.line, "reason": item.reason, "row": item.row}
        self._file.write(msgspec.json.encode(entry) + b"\n")
