"""One protocol for every method, on both axes.

A policy is a pure state machine. It is told what happens to rollouts (observations) and answers with what to do about
them (actions); it never sees a clock, an engine or a file. Two drivers run the same object: the live controller and
the replay simulator. What makes them decide alike is the order of observations, which both keep:

    Time is counted in tokens. A rollout that was launched at time s has, at time c, its first c - s tokens. All
    rollouts are looked at in step: observations come by rising time, at one time by rollout id, and for one rollout
    as committed, reached, ended. A driver whose rollouts run at different speeds holds an observation back until no
    earlier one can come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from fot.core.vote import Ballot, Seat

__all__ = [
    "Action",
    "Bank",
    "Conclude",
    "Event",
    "Fate",
    "Launch",
    "Need",
    "Observation",
    "Policy",
    "Prefix",
    "Probe",
    "Prune",
    "Watch",
]


class Event(Enum):
    """What happened to a rollout; the order is that of observations at one time."""

    COMMITTED = 0  # the answer that its prefix commits to has changed
    REACHED = 1  # it has the number of tokens that the policy asked to be told of, and runs on
    PROBED = 2  # the answer to a probe is there
    ENDED = 3  # it stopped by itself
    FAILED = 4  # it was lost for good; it has no vote


class Fate(Enum):
    """What became of a rollout in the end."""

    FINISHED = "finished"  # ran to its own end and kept its vote, if it had an answer
    BANKED = "banked"  # stopped with its vote kept
    PRUNED = "pruned"  # stopped without a vote
    CANCELLED = "cancelled"  # stopped because nothing depended on it any more
    FAILED = "failed"  # lost to the engine
    UNUSED = "unused"  # never launched


class Need(Enum):
    """What a policy must be given beyond token counts, answers and the density of its kernel."""

    TEXT = "text"
    COMMITMENTS = "commitments"  # observations of Event.COMMITTED
    LOGPROBS = "logprobs"
    PROBES = "probes"
    EMBEDDINGS = "embeddings"
    FUTURE = "future"  # the final length: only a replay knows it
    DATASET = "dataset"  # all problems at once: only a replay has them


class Prefix(Protocol):
    """One rollout as far as it had come at the time of an observation; it does not change afterwards."""

    @property
    def rollout(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def chars(self) -> int: ...
    @property
    def answer(self) -> str | None:
        """The vote key of the answer that the prefix commits to."""
        ...

    @property
    def density(self) -> float:
        """Markers of the policy's kernel per 1,000 characters."""
        ...

    @property
    def text(self) -> str: ...
    @property
    def confidences(self) -> Sequence[float]:
        """One token confidence for each token (Need.LOGPROBS)."""
        ...

    @property
    def final_tokens(self) -> int:
        """The length that the rollout will have (Need.FUTURE)."""
        ...


class Observation(NamedTuple):
    """`event` happened to `prefix.rollout` at time `clock`; `probe` is what a probe answered."""

    event: Event
    clock: int
    prefix: Prefix
    probe: str | None = None


class Launch(NamedTuple):
    """Start this many more rollouts, now; they get the next ids."""

    rollouts: int


class Watch(NamedTuple):
    """Tell me when this rollout has `tokens` tokens (no observation comes if it ends at or before them)."""

    rollout: int
    tokens: int


class Bank(NamedTuple):
    """Stop this rollout here; the policy keeps its vote."""

    rollout: int


class Prune(NamedTuple):
    """Stop this rollout here; it has no vote."""

    rollout: int


class Probe(NamedTuple):
    """Ask this rollout, aside from its text, what it would answer now; costs at most `tokens`."""

    rollout: int
    tokens: int


class Conclude(NamedTuple):
    """The vote stands: stop everything that runs."""


Action = Launch | Watch | Bank | Prune | Probe | Conclude


class Policy(Protocol):
    """A method at work on one problem."""

    def start(self) -> Sequence[Action]:
        """The first actions; some rollouts must be launched."""
        ...

    def observe(self, observation: Observation) -> Sequence[Action]:
        """Take one observation in, in the order told above; returns what to do now."""
        ...

    def ballots(self) -> Sequence[Ballot]:
        """The votes in order of insertion, as they stand; final once all rollouts have stopped."""
        ...

    def seats(self) -> Sequence[Seat] | None:
        """The votes as they will stand, certain ones and open ones; None where they cannot be told."""
        ...

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        """Rollouts that are certain to be stopped at these observations, whatever else comes.

        `ahead` holds what a live driver has seen but must hold back. It may stop such rollouts at once and save their
        tokens; the decision itself is made when the observations are due. Returning nothing is always right.
        """
        ...
