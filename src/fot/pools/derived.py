"""Keeping derived arrays beside their pool: memory-mapped, found again by what they were derived from.

Every set of arrays is a folder that appears by one rename, so it is whole or absent. Its name says what it depends on;
when that changes, another folder is made. All of it may be deleted at any time.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from fot.pools.read import Pool
from fot.pools.staging import locked
from fot.pools.wholeness import derived_places

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "alone",
    "drop_derived",
    "keep_derived",
    "load_derived",
    "places",
    "save_derived",
    "write_array",
    "write_fields",
]

T = TypeVar("T")
_STRINGS = "strings.json"
_LOCK = ".lock"


def load_derived(pool: Pool, name: str, kind: type[T]) -> T | None:
    """What was saved for this pool's content under `name`, as the dataclass `kind`; None when there is nothing."""
    for place in places(pool):
        try:
            return _loaded(place / name, kind)
        except (OSError, ValueError, TypeError, EOFError):
            continue  # absent, or damaged: it is made again
    return None


def _loaded(folder: Path, kind: type[T]) -> T:
    strings = msgspec.json.decode((folder / _STRINGS).read_bytes(), type=dict[str, tuple[str, ...]])
    values: dict[str, Any] = {path.stem: _load(path) for path in folder.glob("*.npy")}
    return kind(**values, **strings)


def _load(path: Path) -> NDArray[Any]:
    small = path.stat().st_size < 2**20  # an empty file cannot be mapped, a small one need not be
    array: NDArray[Any] = np.load(path, mmap_mode=None if small else "r", allow_pickle=False)
    return array


def write_fields(value: DataclassInstance, folder: Path) -> None:
    """Write the arrays and the tuples of strings of a dataclass into `folder`."""
    values = {field.name: getattr(value, field.name) for field in fields(value)}
    strings = {name: value for name, value in values.items() if isinstance(value, tuple)}
    for name in values.keys() - strings.keys():
        np.save(folder / f"{name}.npy", values[name], allow_pickle=False)
    (folder / _STRINGS).write_bytes(msgspec.json.encode(strings))


def write_array(path: Path, kind: type[np.generic], total: int, parts: Iterable[NDArray[np.generic]]) -> None:
    """Write `total` numbers, part by part, as one array. Not through a mapping: a full disk would kill the process."""
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": (total,)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part, kind).data)


def save_derived(pool: Pool, name: str, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new folder, and keep it as `name`.

    Nothing is kept, without an error, where neither the pool nor the cache can be written.
    """
    for place in places(pool):
        try:
            place.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=".making-", dir=place))
        except OSError:
            continue
        try:
            write(made)
            shutil.rmtree(place / name, ignore_errors=True)  # damaged, or it would have been loaded
            made.rename(place / name)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            continue
        return


def keep_derived(pool: Pool, name: str, kind: type[T], write: Callable[[Path], None]) -> T:
    """What `write` leaves in a folder, kept as `name`; where nothing can be kept, for as long as it is used."""
    save_derived(pool, name, write)
    kept = load_derived(pool, name, kind)
    if kept is not None:
        return kept
    with tempfile.TemporaryDirectory() as folder:  # what is mapped stays readable when its file has gone
        write(Path(folder))
        return _loaded(Path(folder), kind)


def drop_derived(pool: Pool, pattern: str) -> None:
    """Delete what was kept under names like this."""
    for place in places(pool):
        for folder in place.glob(pattern):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def alone(pool: Pool) -> Iterator[None]:
    """Hold the pool's derived arrays against others that would make them; where no lock can be had, go on without."""
    with ExitStack() as held:
        for place in places(pool):
            try:
                place.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(place / _LOCK))
                break
            except OSError:
                continue
        yield


def places(pool: Pool) -> tuple[Path, Path]:
    """Where derived arrays of a pool may be: beside it, or in the cache."""
    return derived_places(pool.path, pool.manifest)
