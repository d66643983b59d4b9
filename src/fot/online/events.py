"""What a run tells those who watch it, as it happens. Every tally here is in tokens; `rollout` counts from 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "Banked",
    "Cancelled",
    "Event",
    "Failed",
    "Finished",
    "Progress",
    "Pruned",
    "Retried",
    "Started",
    "Voted",
]


@dataclass(frozen=True, slots=True)
class Started:
    """A rollout was sent to the engine for the first time."""

    rollout: int
    seed: int


@dataclass(frozen=True, slots=True)
class Progress:
    """A rollout has grown. Told a few times a second; `answer` is what it commits to so far."""

    rollout: int
    tokens: int
    density: float
    answer: str | None


@dataclass(frozen=True, slots=True)
class Finished:
    """A rollout came to its own end; a bank, prune or cancellation may still follow."""

    rollout: int
    tokens: int
    answer: str | None
    finish_reason: str


@dataclass(frozen=True, slots=True)
class Banked:
    """Stopped with its vote kept, by what it was at `tokens`."""

    rollout: int
    tokens: int
    density: float
    answer: str | None


@dataclass(frozen=True, slots=True)
class Pruned:
    """Stopped without a vote, by what it was at `tokens`."""

    rollout: int
    tokens: int
    density: float


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Stopped because the vote no longer depends on it."""

    rollout: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Retried:
    """The engine lost a rollout at `tokens`; it will be resumed from there in `wait_s` seconds."""

    rollout: int
    tokens: int
    reason: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class Failed:
    """A rollout is lost for good; the vote goes on without it."""

    rollout: int
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Voted:
    """The vote changed; nothing follows one that `is_final`."""

    answer: str | None
    votes: Mapping[str, float]
    is_final: bool


Event = Started | Progress | Finished | Banked | Pruned | Cancelled | Retried | Failed | Voted
