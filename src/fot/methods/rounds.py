"""Sampling in rounds: start some rollouts, wait until all of them have stopped, look at the vote, start more or not.

What each round does with its rollouts is another policy's business: to run them all to their end, or a funnel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fot.core.policy import Action, Bank, Conclude, Event, Launch, Observation, Policy, Prefix, Probe, Prune, Watch
from fot.core.sampling import Majority
from fot.core.vote import Ballot, Seat

__all__ = ["Allotment", "Rounds", "Steps"]


class Allotment(Protocol):
    """Says how many rollouts the next round starts; 0: the vote stands."""

    def more(self, ballots: Sequence[Ballot], launched: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Steps:
    """A first round, then rounds of one size until the vote is enough."""

    is_enough: Callable[[Sequence[Ballot]], bool]
    first: int
    size: int

    def more(self, ballots: Sequence[Ballot], launched: int) -> int:
        if not launched:
            return self.first
        return 0 if self.is_enough(ballots) else self.size


class _Shifted:
    """A prefix whose rollout is numbered within its round."""

    def __init__(self, prefix: Prefix, offset: int) -> None:
        self._prefix = prefix
        self.rollout = prefix.rollout - offset

    @property
    def tokens(self) -> int:
        return self._prefix.tokens

    @property
    def chars(self) -> int:
        return self._prefix.chars

    @property
    def answer(self) -> str | None:
        return self._prefix.answer

    @property
    def density(self) -> float:
        return self._prefix.density

    @property
    def text(self) -> str:
        return self._prefix.text

    @property
    def confidences(self) -> Sequence[float]:
        return self._prefix.confidences

    @property
    def final_tokens(self) -> int:
        return self._prefix.final_tokens


class _Round(NamedTuple):
    """One round: the first of its rollouts, when they started, and what works on them."""

    offset: int
    start: int
    policy: Policy


class Rounds:
    """At most k rollouts, in rounds. With `is_closed`, everything ends in mid-round once the vote satisfies it."""

    def __init__(
        self,
        k: int,
        allotment: Allotment,
        make: Callable[[int], Policy] = Majority,
        is_closed: Callable[[Sequence[Ballot]], bool] | None = None,
    ) -> None:
        self.k = k
        self.launched = 0
        self._allotment = allotment
        self._make = make
        self._is_closed = is_closed
        self._rounds: list[_Round] = []
        self._cast: list[Ballot] = []  # in the rounds before the last: they do not change any more
        self._running: set[int] = set()
        self._clock = 0

    def start(self) -> Sequence[Action]:
        return self._next()

    def observe(self, observation: Observation) -> Sequence[Action]:
        self._clock = observation.clock
        if observation.event in (Event.ENDED, Event.FAILED):
            self._running.discard(observation.prefix.rollout)
        offset, start, policy = self._rounds[-1]
        actions: list[Action] = []
        if observation.prefix.rollout >= offset:
            local = observation._replace(clock=observation.clock - start, prefix=_Shifted(observation.prefix, offset))
            actions = self._translate(policy.observe(local))
        if self._is_closed is not None and self._is_closed(self.ballots()):
            return [*actions, Conclude()]
        return actions if self._running else [*actions, *self._next()]

    def _next(self) -> list[Action]:
        left = self.k - self.launched
        count = min(self._allotment.more(self.ballots(), self.launched), left)
        if count <= 0:
            return [Conclude()]
        if self._rounds:
            self._cast += self.last_ballots()
        policy = self._make(count)
        self._rounds.append(_Round(self.launched, self._clock, policy))
        return self._translate(policy.start())

    def _translate(self, actions: Iterable[Action]) -> list[Action]:
        """A round's actions with the rollouts' own numbers."""
        translated: list[Action] = []
        for action in actions:
            translated += self._one(action, self._rounds[-1].offset)
        return translated

    def _one(self, action: Action, offset: int) -> list[Action]:
        match action:
            case Launch(rollouts):
                self._running |= set(range(self.launched, self.launched + rollouts))
                self.launched += rollouts
                return [action]
            case Watch(rollout, tokens):
                return [Watch(rollout + offset, tokens)]
            case Probe(rollout, tokens):
                return [Probe(rollout + offset, tokens)]
            case Bank(rollout):
                self._running.discard(rollout + offset)
                return [Bank(rollout + offset)]
            case Prune(rollout):
                self._running.discard(rollout + offset)
                return [Prune(rollout + offset)]
            case Conclude():
                # Only this round is over: what still runs in it stops without a vote.
                stopped = sorted(self._running)
                self._running.clear()
                return [Prune(rollout) for rollout in stopped]

    def last_ballots(self) -> list[Ballot]:
        """The last round's votes, in its own order."""
        offset, _, policy = self._rounds[-1]
        return [Ballot(rollout + offset, answer, weight) for rollout, answer, weight in policy.ballots()]

    def ballots(self) -> Sequence[Ballot]:
        return [*self._cast, *self.last_ballots()] if self._rounds else []

    def seats(self) -> Sequence[Seat] | None:
        """Those of each round, and an open one for every rollout that may yet be started."""
        seats: list[Seat] = []
        for which, (_, _, policy) in enumerate(self._rounds):
            own = policy.seats()
            if own is None:
                return None
            seats += [Seat(s.answer, (which, *s.earliest), (which, *s.latest)) for s in own]
        later = (len(self._rounds),)
        return seats + [Seat(None, later, (*later, self.k)) for _ in range(self.k - self.launched)]

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        return ()
