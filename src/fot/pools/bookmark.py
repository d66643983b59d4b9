"""How far an import has come, so that one that was killed goes on there.

Rows are written in runs (`fot.pools.write`). Once a run is on disk, a line in a journal beside it says so, and how much
of the files had been read by then. What was read of them is passed over by the next import; what was in no complete run
is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from fot.pools.staging import LOCK
from fot.pools.write import Run

__all__ = ["Bookmark", "Place"]


class Place(msgspec.Struct, frozen=True):
    """A place in the files of an import."""

    source: int = 0
    """Number of the file."""
    items: int = 0
    """Rows and rejected rows of that file that lie before."""
    rejected: int = 0
    """Rejected rows of all files that lie before, and the bytes that they take in their own file."""
    rejected_bytes: int = 0


class _Entry(msgspec.Struct, frozen=True):
    run: Run
    place: Place


class Bookmark:
    """The journal in the folder `stage` of an import whose rejected rows go to `rejects`.

    Where what it tells of is not there, it is at the very beginning, and the folder empty but for its lock.
    """

    def __init__(self, stage: Path, rejects: Path) -> None:
        self.path = stage / "journal.jsonl"
        self._entries: list[_Entry] = []
        for line in self.path.read_bytes().splitlines() if self.path.exists() else ():
            try:
                self._entries.append(msgspec.json.decode(line, type=_Entry))
            except msgspec.MsgspecError:
                break  # cut by the kill
        rejected = rejects.stat().st_size if rejects.exists() else 0
        if rejected < self.place.rejected_bytes or any(not (stage / run.file).is_file() for run in self.runs):
            self._entries.clear()
        if not self._entries:
            for left in stage.iterdir():
                if left.name != LOCK:
                    left.unlink()

    @property
    def runs(self) -> Sequence[Run]:
        """The runs that are on disk."""
        return [entry.run for entry in self._entries]

    @property
    def place(self) -> Place:
        """All rows before here are in runs."""
        return self._entries[-1].place if self._entries else Place()

    def put(self, run: Run, place: Place) -> None:
        """Note that `run` is on disk, and with it every row before `place`."""
        self._entries.append(_Entry(run, place))
        self.path.write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in self._entries))

    def remove(self) -> None:
        """The import is done."""
        self.path.unlink(missing_ok=True)
