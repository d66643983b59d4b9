"""Row files as streams of rows: JSON lines (plain, gzip, zstd) and Parquet, told apart by their first bytes.

Nothing here fails because of a row: what cannot be a row is yielded as `Rejected`, and reading goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from fot.errors import PoolError
from fot.pools.rows import REQUIRED, BadRow, Row, parse_line, parse_record
from fot.pools.schema import POOL_SCHEMA

__all__ = ["LONGEST_LINE", "Rejected", "RowFile"]

LONGEST_LINE = 256 * 2**20
"""Bytes; a longer line is not held in memory, and rejected."""

_BLOCK = 2**16  # what a damaged stream takes with it is at most this much
_BATCH_ROWS = 32
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Rejected:
    """What stood where a row was expected. `line` counts from 1 (rows, in Parquet); None: the file as a whole."""

    line: int | None
    reason: str
    row: str


class RowFile:
    """One file of rows."""

    def __init__(self, path: Path) -> None:
        """Open nothing yet, but fail now when the file cannot be read."""
        self.path = path
        if path.is_dir():
            raise PoolError(f"{path} is a directory, not a file of rows", "name the files in it")
        try:
            with path.open("rb") as file:
                self._magic = file.read(4)
        except OSError as error:
            raise PoolError(f"cannot read {path}: {error.strerror or error}") from None
        self.size = path.stat().st_size

    def rows(
        self, progress: Callable[[int], None] = lambda _: None, skip: int = 0
    ) -> Iterator[tuple[int | None, Row] | Rejected]:
        """Every row with its line, or why there is none; `progress` is told how many bytes of the file are done.

        The first `skip` of what would come are passed over unread.
        """
        if self._magic == b"PAR1":
            return self._records(progress, skip)
        return self._parsed(progress, skip)

    def pass_over(self) -> None:
        """Nothing in this file is wanted; rows say themselves which rollouts they are."""

    def _parsed(self, progress: Callable[[int], None], skip: int) -> Iterator[tuple[int | None, Row] | Rejected]:
        met = 0
        for number, line in enumerate(self.lines(progress), start=1):
            if isinstance(line, bytes) and not line.removeprefix(_BOM if number == 1 else b"").strip():
                continue
            met += 1
            if met <= skip:
                continue
            if isinstance(line, str):
                yield Rejected(number, line, "")
                continue
            whole = line.removesuffix(b"\n")
            whole = whole.removeprefix(_BOM) if number == 1 else whole
            try:
                yield number, parse_line(whole)
            except BadRow as bad:
                cut = "" if line.endswith(b"\n") else " (the last line has no end: half-written?)"
                yield Rejected(number, f"{bad}{cut}", whole.decode("utf-8", "backslashreplace"))

    def lines(self, progress: Callable[[int], None] = lambda _: None) -> Iterator[bytes | str]:
        """Lines with their line end; where one cannot be had, the reason."""
        held: list[bytes] = []
        size = 0
        try:
            for block in self._blocks(progress):
                *ended, rest = block.split(b"\n")
                for line in ended:
                    if size + len(line) <= LONGEST_LINE:
                        yield b"".join([*held, line, b"\n"])
                    else:
                        yield f"longer than {LONGEST_LINE // 2**20} MiB"
                    held, size = [], 0
                size += len(rest)
                held.append(rest)
                if size > LONGEST_LINE:
                    held.clear()
        except OSError as error:
            yield f"the compressed stream is damaged or ends early: {error}"
            return
        if size > LONGEST_LINE:
            yield f"longer than {LONGEST_LINE // 2**20} MiB"
        elif size:
            yield b"".join(held)

    def _blocks(self, progress: Callable[[int], None]) -> Iterator[bytes]:
        codec = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}.get(self._magic[:2])
        with pa.OSFile(str(self.path), "rb") as file:
            stream = pa.CompressedInputStream(file, codec) if codec else file
            while block := stream.read(_BLOCK):
                yield block
                progress(file.tell())

    def _records(self, progress: Callable[[int], None], skip: int) -> Iterator[tuple[int | None, Row] | Rejected]:
        try:
            with pq.ParquetFile(self.path, pre_buffer=False) as file:
                missing = [name for name in REQUIRED if name not in file.schema_arrow.names]
                if missing:
                    yield Rejected(None, f"columns are missing: {', '.join(missing)}", "")
                    return
                yield from self._batches(file, progress, skip)
        except (OSError, pa.ArrowException) as error:
            yield Rejected(None, f"the Parquet file is damaged: {error}", "")

    def _batches(
        self, file: pq.ParquetFile, progress: Callable[[int], None], skip: int
    ) -> Iterator[tuple[int | None, Row] | Rejected]:
        ours = (file.schema_arrow.metadata or {}).get(b"fot.schema") == POOL_SCHEMA.encode()
        total, number = max(file.metadata.num_rows, 1), 0
        for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
            for position in range(batch.num_rows):
                number += 1
                if number > skip:
                    yield _from_record(batch.slice(position, 1), number, ours=ours)
            progress(self.size * number // total)


def _from_record(one: pa.RecordBatch, number: int, *, ours: bool) -> tuple[int | None, Row] | Rejected:
    try:
        record = one.to_pylist()[0]
        return number, parse_record(_unpacked(record) if ours else record)
    except UnicodeDecodeError as error:
        return Rejected(number, f"not UTF-8: {error.reason} at byte {error.start} of a string", "")
    except BadRow as bad:
        return Rejected(number, str(bad), _as_json(record))


def _unpacked(record: dict[str, Any]) -> dict[str, Any]:
    """A row of a pool's own rows file, as it was imported."""
    extra = record.pop("extra")
    for derived in ("n_chars", "cut"):
        del record[derived]
    return {**record, **(msgspec.json.decode(extra) if extra else {})}


def _as_json(record: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(record).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr(record)
