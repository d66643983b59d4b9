"""Rows on disk as they come, one JSON line each, in the form of the contract; safe against crashes.

A line is written in one go and synchronised, so that a crash loses at most the line that is being written; what is
left of that one is cut off when the file is opened again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import msgspec

from fot.errors import PoolCorrupt
from fot.online.lane import Lane

__all__ = ["Journal", "row_of"]


def row_of(lane: Lane, about: Mapping[str, object]) -> dict[str, object]:
    """A rollout as a row; `about` names its model, benchmark and problem."""
    text = lane.text
    row: dict[str, object] = dict(about) | {
        "rollout_id": lane.rollout,
        "text": text.text,
        "finish_reason": None if lane.failure is not None else lane.finish_reason or "abort",
        "seed": lane.seed,
    }
    if lane.prompt_tokens:
        row["prompt_tokens"] = lane.prompt_tokens
    if text.cut != "estimated":
        row |= {"n_tokens": text.tokens, "token_ends": text.ends}
    if text.is_interpolated:
        row["token_ends_within_chunks"] = "interpolated"
    if lane.failure is not None:
        row["failure"] = str(lane.failure)
    if text.confidences:
        row["confidences"] = text.confidences
    return row


class Journal:
    """A file of rows to which rows are added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab+")
        self._mend()

    def _mend(self) -> None:
        """Cut off a line that was not finished."""
        self._file.seek(0)
        end = 0
        for line in self._file:
            if line.endswith(b"\n"):
                end += len(line)
        self._file.truncate(end)
        self._file.seek(0, os.SEEK_END)

    def rows(self) -> Iterator[dict[str, object]]:
        """What has been written so far."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield msgspec.json.decode(line, type=dict[str, object])
                except msgspec.DecodeError:
                    raise PoolCorrupt(
                        f"{self.path}, line {number} is no JSON object", "Remove that line, or write to another file."
                    ) from None

    def add(self, row: Mapping[str, object]) -> None:
        """Returns once the row is on disk."""
        self._file.write(msgspec.json.encode(row) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
