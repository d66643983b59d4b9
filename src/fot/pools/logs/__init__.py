"""Runs of other harnesses as rows, and pools as runs of theirs: lm-eval samples, Inspect logs, lighteval details.

    log = LogFile(path, "inspect", Names(), Counter())
    for item in log.rows():        # as `RowFile.rows`: a row with its place, or why there is none
        ...

A log's rollouts are numbered in the order in which they come, over all files of an import. A log that `fot pool
export` wrote carries what its format has no field for under `fot`, and comes back as it was.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import msgspec

from fot.core.registry import unknown_name
from fot.core.rollout import ProblemKey
from fot.errors import PoolError
from fot.pools.logs.entry import Entry, Harness, Names
from fot.pools.logs.inspect_log import Inspect
from fot.pools.logs.lighteval import Lighteval
from fot.pools.logs.lm_eval import LmEval
from fot.pools.rows import BadRow, Row, parse_line
from fot.pools.sources import Rejected, RowFile

__all__ = ["HARNESSES", "ROWS", "LogFile", "Names", "source_of"]

HARNESSES: Mapping[str, Harness] = {
    "lm-eval": LmEval(),
    "inspect": Inspect(),
    "lighteval": Lighteval(),
}
ROWS = "rows"
"""The name of the format that is not a harness's: a pool's own."""


class LogFile:
    """One file of a harness's log."""

    def __init__(self, path: Path, harness: str, names: Names, numbers: Counter[ProblemKey]) -> None:
        """`names` says what the log may not; `numbers` holds the rollouts so far of each problem, and is kept up."""
        self.path = path
        self.size = path.stat().st_size
        self._harness = HARNESSES[harness]
        self._names = names
        self._numbers = numbers

    def rows(
        self, progress: Callable[[int], None] = lambda _: None, skip: int = 0
    ) -> Iterator[tuple[int | None, Row] | Rejected]:
        """Every rollout with its place in the file, or why there is none; the first `skip` are counted, not given."""
        items = self._harness.read(self.path, self._names, progress)
        return islice((item if isinstance(item, Rejected) else self._row(item) for item in items), skip, None)

    def pass_over(self) -> None:
        """Nothing in this file is wanted, but its rollouts count for the numbers of those in later files."""
        deque(self.rows(), maxlen=0)

    def _row(self, entry: Entry) -> tuple[int | None, Row] | Rejected:
        record = {**entry.record, **self._names.said()}
        key = (str(record["model"]), str(record["benchmark"]), str(record["problem_id"]))
        try:
            row = parse_line(msgspec.json.encode({"rollout_id": self._numbers[key], **record}))
        except (BadRow, UnicodeEncodeError) as bad:
            reason = str(bad) if isinstance(bad, BadRow) else "half of a character (a lone surrogate)"
            return Rejected(entry.line, reason, json.dumps(record))
        self._numbers[key] = max(self._numbers[key], row.fields.rollout_id) + 1
        return entry.line, row


def source_of(path: Path, form: str | None, names: Names, numbers: Counter[ProblemKey]) -> RowFile | LogFile:
    """A file as a source of rows. `form` is a key of `HARNESSES` or `ROWS`; without it the content tells."""
    if form not in (None, ROWS, *HARNESSES):
        raise unknown_name("format", str(form), [ROWS, *HARNESSES])
    rows = RowFile(path)
    found = form or next((name for name, one in HARNESSES.items() if one.recognises(path)), ROWS)
    if found != ROWS:
        return LogFile(path, found, names, numbers)
    if names.model or names.benchmark:
        raise PoolError(
            f"{path} is no log of another harness: its rows name their models and benchmarks",
            f"leave --model and --benchmark out, or name its --format: {', '.join(HARNESSES)}",
        )
    return rows
