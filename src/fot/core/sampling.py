"""Self-consistency: all rollouts to their end, then the vote. The mark that every other method is measured against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fot.core.policy import Action, Event, Launch, Observation
from fot.core.vote import Ballot, Seat

__all__ = ["Majority"]


class Majority:
    """Plurality over k rollouts, in order of `rollout_id`."""

    def __init__(self, k: int) -> None:
        self.k = k
        self._open = set(range(k))
        self._answers: dict[int, str] = {}

    def start(self) -> Sequence[Action]:
        return [Launch(self.k)]

    def observe(self, observation: Observation) -> Sequence[Action]:
        rollout, answer = observation.prefix.rollout, observation.prefix.answer
        if observation.event in (Event.ENDED, Event.FAILED):
            self._open.discard(rollout)
        if observation.event is Event.ENDED and answer is not None:
            self._answers[rollout] = answer
        return []

    def ballots(self) -> Sequence[Ballot]:
        return [Ballot(rollout, self._answers[rollout]) for rollout in sorted(self._answers)]

    def seats(self) -> Sequence[Seat]:
        taken = [Seat(answer, (rollout,), (rollout,)) for rollout, answer in self._answers.items()]
        return taken + [Seat(None, (rollout,), (rollout,)) for rollout in self._open]

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        return ()
