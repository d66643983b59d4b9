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

    What is no file of its own (a device, a pipe, a link such as `/dev/stdout`) is written into directly. An `OSError`
    of the writing names `path`.
    """
    is_stream = path.is_symlink() or (path.exists() and not path.is_file())
    partial = path if is_stream else path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        if not is_stream:
            partial.replace(path)
    except BaseException as error:
        if not is_stream:
            with suppress(OSError):
                partial.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(partial)):
            error.filename = str(path)
        raise
