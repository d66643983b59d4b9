"""Algorithm 1, the funnel: one readable state machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fot.core.policy import Action, Bank, Event, Launch, Observation, Prefix, Prune, Watch
from fot.core.signals import DENSITY, Signal
from fot.core.vote import Ballot, Position, Seat

__all__ = ["Funnel", "kept"]

_AFTER_ALL = 1 << 30  # survivors vote after every checkpoint


def kept(active: int, keep: float, minimum: int) -> int:
    """How many of `active` rollouts a checkpoint keeps."""
    return max(minimum, int(active * keep))


class Funnel:
    """Starts k rollouts; at each checkpoint banks those that have committed, then prunes the worst of the others.

    A rollout that ended has arrived at every later checkpoint: with an answer it is banked there, without one it stays
    and is ranked. A checkpoint is decided when every active rollout has arrived. With `eager`, a rollout is banked the
    moment it commits. At least `minimum` rollouts stay active.
    """

    def __init__(
        self,
        k: int,
        checkpoints: Sequence[int],
        keep: float,
        *,
        minimum: int = 2,
        early_voting: bool = True,
        eager: bool = False,
        signal: Signal = DENSITY,
    ) -> None:
        self.k = k
        self.checkpoints = tuple(checkpoints)
        self.keep = keep
        self.minimum = minimum
        self.early_voting = early_voting
        self.eager = eager
        self.signal = signal
        self.active = set(range(k))
        self.bank: list[Ballot] = []
        self.stage = 0  # checkpoints that lie behind
        self._arrived: dict[int, Prefix] = {}
        self._ended: dict[int, Prefix] = {}

    def start(self) -> Sequence[Action]:
        return [Launch(self.k), *self._watch()]

    def observe(self, observation: Observation) -> Sequence[Action]:
        rollout = observation.prefix.rollout
        if rollout not in self.active:
            return []
        if observation.event is Event.COMMITTED:
            if not self.eager or observation.prefix.answer is None:
                return []
            return [*self._bank([observation.prefix]), *self._advance()]
        if observation.event is Event.FAILED:
            self.active.discard(rollout)
        else:
            self._arrived[rollout] = observation.prefix
        if observation.event is Event.ENDED:
            self._ended[rollout] = observation.prefix
        return self._advance()

    def _advance(self) -> list[Action]:
        """Decide each checkpoint at which all active rollouts have arrived."""
        actions: list[Action] = []
        while self._is_open() and self.active <= self._arrived.keys():
            actions += self._decide([self._arrived[rollout] for rollout in sorted(self.active)])
            self.stage += 1
            self._arrived = {rollout: self._ended[rollout] for rollout in self.active & self._ended.keys()}
            actions += self._watch()
        return actions

    def _is_open(self) -> bool:
        """Is there another checkpoint to decide?"""
        return self.stage < len(self.checkpoints) and len(self.active) > self.minimum

    def _watch(self) -> list[Action]:
        if not self._is_open():
            return []
        return [Watch(r, self.checkpoints[self.stage]) for r in sorted(self.active - self._ended.keys())]

    def _decide(self, arrived: list[Prefix]) -> list[Action]:
        """Early voting, then pruning."""
        actions = self._bank(arrived) if self.early_voting else []
        running = [prefix for prefix in arrived if prefix.rollout in self.active]
        if len(running) > self.minimum:
            for prefix in self.signal.rank(running, self.bank)[kept(len(running), self.keep, self.minimum) :]:
                self.active.discard(prefix.rollout)
                actions.append(Prune(prefix.rollout))
        return actions

    def _bank(self, prefixes: Iterable[Prefix]) -> list[Action]:
        actions: list[Action] = []
        for prefix in prefixes:
            if prefix.answer is not None:
                self.active.discard(prefix.rollout)
                self.bank.append(Ballot(prefix.rollout, prefix.answer))
                actions.append(Bank(prefix.rollout))
        return actions

    def ballots(self) -> Sequence[Ballot]:
        survivors = [self._ended[rollout] for rollout in sorted(self.active & self._ended.keys())]
        return [*self.bank, *(Ballot(p.rollout, p.answer) for p in survivors if p.answer is not None)]

    def seats(self) -> Sequence[Seat]:
        banked = [Seat(ballot.answer, (0, at), (0, at)) for at, ballot in enumerate(self.bank)]
        return banked + [seat for rollout in sorted(self.active) for seat in self._seats_of(rollout)]

    def _seats_of(self, rollout: int) -> list[Seat]:
        last: Position = (1, _AFTER_ALL, rollout)
        next_up: Position = (1, 0, 0) if self.eager else (1, self.stage, rollout)
        ended = self._ended.get(rollout)
        if ended is None:
            return [Seat(None, next_up, last)]
        if ended.answer is None:
            return []
        if not self._is_open():
            return [Seat(ended.answer, last, last)]
        # Without early voting it may still be pruned: the seat is open.
        return [Seat(ended.answer if self.early_voting else None, next_up, last)]

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        if self.eager:
            return {o.prefix.rollout for o in ahead if o.event is Event.COMMITTED and o.prefix.answer is not None}
        if not self._is_open():
            return set()
        # Of each rollout the first counts: who has reached this checkpoint may also have ended, far behind it.
        present = {o.prefix.rollout: o.prefix for o in reversed(ahead) if o.event in (Event.REACHED, Event.ENDED)}
        present |= self._arrived
        present = {rollout: prefix for rollout, prefix in present.items() if rollout in self.active}
        if len(present) <= self.minimum:  # should all the others fail, nothing would be stopped
            return set()
        banked = {r for r, prefix in present.items() if self.early_voting and prefix.answer is not None}
        running = [prefix for r, prefix in present.items() if r not in banked]
        if self.signal.reads_bank or len(running) <= self.minimum:
            return banked
        # However the stragglers do, no more than this many are kept, and none of them lifts another's rank.
        most = kept(len(self.active) - len(banked), self.keep, self.minimum)
        return banked | {prefix.rollout for prefix in self.signal.rank(running, self.bank)[most:]}
