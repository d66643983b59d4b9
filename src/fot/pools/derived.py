"""Keeping derived arrays beside their pool: memory-mapped, found again by what they were derived from.

Every set of arrays is a folder that appears by one rename, so it is whole or absent. Its name says what it depends on;
when that changes, another folder is made. All of it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import inspect
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fot.pools.read import Pool, cache_folder
from fot.pools.schema import INDEX

__all__ = ["Arrays", "code_digest", "load_derived", "save_derived"]

Arrays = dict[str, NDArray[Any]]
_STRINGS = "strings.json"


def code_digest(*modules: ModuleType) -> str:
    """Identifies the source of modules: arrays that they made are made anew when it changes."""
    sources = "\0".join(inspect.getsource(module) for module in modules)
    return hashlib.sha256(sources.encode()).hexdigest()[:12]


def load_derived(pool: Pool, name: str) -> tuple[Arrays, dict[str, tuple[str, ...]]] | None:
    """The arrays and lists of strings saved for this pool's content under `name`; None when there are none."""
    for folder in _places(pool):
        try:
            strings = msgspec.json.decode((folder / name / _STRINGS).read_bytes(), type=dict[str, tuple[str, ...]])
            arrays = {path.stem: _load(path) for path in (folder / name).glob("*.npy")}
        except (OSError, ValueError, EOFError):
            continue  # absent, or damaged: it is built again
        return arrays, strings
    return None


def _load(path: Path) -> NDArray[Any]:
    small = path.stat().st_size < 2**20  # an empty file cannot be mapped, a small one need not be
    array: NDArray[Any] = np.load(path, mmap_mode=None if small else "r", allow_pickle=False)
    return array


def save_derived(pool: Pool, name: str, fill: Callable[[Path], None], strings: Mapping[str, tuple[str, ...]]) -> None:
    """Let `fill` write `.npy` files into a new folder, and keep it as `name`.

    Nothing is kept, without an error, where neither the pool nor the cache can be written.
    """
    for place in _places(pool):
        try:
            place.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=".making-", dir=place))
        except OSError:
            continue
        try:
            fill(made)
            (made / _STRINGS).write_bytes(msgspec.json.encode(strings))
            shutil.rmtree(place / name, ignore_errors=True)  # damaged, or it would have been loaded
            made.rename(place / name)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            continue
        return


def _places(pool: Pool) -> tuple[Path, Path]:
    """Where derived arrays of a pool may be: beside it, or in the cache."""
    content = pool.manifest.sha256[:16]
    return pool.path / INDEX / content, cache_folder("index") / content
