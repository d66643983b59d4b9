"""Pieces of finished work, each a file named by everything that it depends on.

Work is cut into pieces by what it is about, never by who does it. A piece that is there is not made again, neither by
the next run nor by another worker that sees the same folder; whoever comes last joins them. So results are the same
whatever the number of workers, and whatever befell them. Pieces may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from fot.pools.derived import places
from fot.pools.read import Pool

__all__ = ["Pieces", "name_of"]

_CHECK_BYTES = 16


class Pieces:
    """Pieces in the first of some folders that can be written; found in any of them."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    @classmethod
    def beside(cls, pool: Pool) -> Self:
        """Those of a pool's content: in its folder, or in the cache where that cannot be written."""
        return cls([place / "pieces" for place in places(pool)])

    def load(self, name: str) -> bytes | None:
        """A piece; None when it is not there, or damaged."""
        for folder in self._folders:
            try:
                data = (folder / name).read_bytes()
            except OSError:
                continue
            check, piece = data[:_CHECK_BYTES], data[_CHECK_BYTES:]
            if check == _check(piece):
                return piece
        return None

    def keep(self, name: str, piece: bytes) -> None:
        """Write a piece; it appears whole. Nothing is kept, without an error, where nothing can be written."""
        for folder in self._folders:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                handle, partial = tempfile.mkstemp(prefix=".making-", dir=folder)
                with os.fdopen(handle, "wb") as out:
                    out.write(_check(piece) + piece)
                Path(partial).replace(folder / name)
            except OSError:
                continue
            return

    def drop(self, names: Iterable[str]) -> None:
        """Delete pieces that are kept elsewhere now."""
        for name in names:
            for folder in self._folders:
                (folder / name).unlink(missing_ok=True)


def name_of(kind: str, *depends: object) -> str:
    """A piece's name: what it is, and a digest of all that it depends on (bytes as they are, the rest by `repr`)."""
    digest = hashlib.sha256()
    for one in depends:
        data = one if isinstance(one, bytes) else repr(one).encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return f"{kind}-{digest.hexdigest()[:32]}"


def _check(piece: bytes) -> bytes:
    return hashlib.sha256(piece).digest()[:_CHECK_BYTES]
