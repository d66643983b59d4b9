"""Files that commands write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["written"]


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file to write into, which stands at `path` once the block has ended well; until then, what was there before.

    An `OSError` names `path`.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        error.filename = str(path)
        raise
