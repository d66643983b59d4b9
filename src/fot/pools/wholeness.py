"""Are a pool's rows the bytes that were written? By the digests in its manifest, once for each state of a file.

What Parquet checks of itself leaves out its dictionaries and metadata: a file that was damaged there may read well,
and say something else. Reading whole files at every opening would be dear, so the states in which files were found
whole are kept with what is derived from the pool.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from fot.errors import PoolCorrupt
from fot.pools.cores import cores
from fot.pools.schema import INDEX, Manifest, RowsFile, rows_file

__all__ = ["cache_folder", "check_rows", "derived_places"]

_KEPT = ".whole.json"
_SETTLED_NS = 100_000_000  # clocks of file systems are coarse: who changed just now may change again at the same time
State = tuple[int, int, int]
"""Of a file: its size, its time of change in nanoseconds, its inode."""


def cache_folder(kind: Literal["pools", "index"]) -> Path:
    """Where derived files go that cannot lie beside what they are derived from: in `FOT_HOME`, or `~/.cache/fot`."""
    home = os.environ.get("FOT_HOME")
    return (Path(home) if home else Path.home() / ".cache" / "fot") / kind


def derived_places(path: Path, manifest: Manifest) -> tuple[Path, Path]:
    """Where what is derived from the pool at `path` may be: beside it, or in the cache."""
    content = manifest.sha256[:16]
    return path / INDEX / content, cache_folder("index") / content


def check_rows(path: Path, manifest: Manifest) -> None:
    """Raises `PoolCorrupt` when a rows file of the pool at `path` is not the one that its manifest speaks of."""
    try:
        states = {part.file: _state(path / part.file) for part in manifest.parts}
        known = _known(path, manifest)
        doubtful = [part for part in manifest.parts if (part.file, states[part.file]) not in known]
        with ThreadPoolExecutor(cores()) as executor:
            found = list(executor.map(lambda part: rows_file(path / part.file), doubtful))
    except OSError as error:
        raise _corrupt(path, error.strerror or str(error)) from None
    for part, own in zip(doubtful, found, strict=True):
        _compare(path, part, own)
    settled = time.time_ns() - _SETTLED_NS
    if doubtful and all(changed < settled for _, changed, _ in states.values()):
        _keep(path, manifest, states)


def _compare(path: Path, part: RowsFile, found: RowsFile) -> None:
    if found.bytes != part.bytes:
        raise _corrupt(path, f"{part.file} has {found.bytes} bytes where its manifest says {part.bytes}")
    if found != part:
        raise _corrupt(path, f"{part.file} has another SHA-256 than its manifest says")


def _corrupt(path: Path, reason: str) -> PoolCorrupt:
    return PoolCorrupt(
        f"rows of {path} cannot be read: {reason}",
        "it was damaged, or replaced while it was read: run again, or import the pool again",
    )


def _state(path: Path) -> State:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def _known(path: Path, manifest: Manifest) -> set[tuple[str, State]]:
    """From all places: what lies beside a copy of a pool that cannot be written speaks of the files copied from."""
    found: set[tuple[str, State]] = set()
    for place in derived_places(path, manifest):
        try:
            found.update(msgspec.json.decode((place / _KEPT).read_bytes(), type=dict[str, State]).items())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            continue  # absent, or damaged itself: the files are read
    return found


def _keep(path: Path, manifest: Manifest, states: Mapping[str, State]) -> None:
    """Note the states, whole or not at all; where nothing can be written, the files are read again the next time."""
    for place in derived_places(path, manifest):
        try:
            place.mkdir(parents=True, exist_ok=True)
            handle, made = tempfile.mkstemp(dir=place, prefix=_KEPT)
        except OSError:
            continue
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(states))
            Path(made).replace(place / _KEPT)
        except OSError:
            with suppress(OSError):
                Path(made).unlink()
            continue
        return
