"""Recordings that are ready to be run again: as many as the memory allows, and the others made anew."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from fot.pools.cores import memory_bytes
from fot.replay.indexed import IndexedRecording

__all__ = ["Held"]

_ROLLOUT_BYTES = 4096
"""What a rollout takes that is ready to be run, at most: arrays and objects."""


class Held:
    """One problem's recording by key. When there is no more room, those that are there stay: runs read all in order."""

    def __init__(self) -> None:
        self._recordings: dict[Hashable, IndexedRecording] = {}
        self._rollouts = 0

    def of(self, key: Hashable, rollouts: int, make: Callable[[], IndexedRecording]) -> IndexedRecording:
        """The recording under `key`, made when it is not held."""
        held = self._recordings.get(key)
        if held is not None:
            return held
        made = make()
        if (self._rollouts + rollouts) * _ROLLOUT_BYTES <= memory_bytes():
            self._recordings[key] = made
            self._rollouts += rollouts
        return made
