"""The token clock: what happened on running rollouts, brought to a policy in the order of the protocol.

Rollouts on an engine, a real one or a modelled one, run at different speeds. An observation is held back until none
that comes before it, by (time, rollout, event), can come any more; so a policy decides exactly as in a replay of the
same tokens. What a policy can foresee from held-back observations is done at once. Nothing here waits, and nothing
knows an event loop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from fot.core.ledger import Charge
from fot.core.policy import (
    Action,
    Bank,
    Conclude,
    Event,
    Fate,
    Launch,
    Observation,
    Policy,
    Prefix,
    Probe,
    Prune,
    Watch,
)

__all__ = ["Clock", "Driver", "Entrant", "Growing"]

_LOOKS = 32  # a look ahead reads all that is held back; this many are taken over its growth to any size


class Growing(Protocol):
    """One rollout's text as far as it has come."""

    @property
    def tokens(self) -> int: ...
    @property
    def is_whole(self) -> bool: ...
    def prefix(self, rollout: int, tokens: int) -> Prefix:
        """The first `tokens` tokens, or all when there are no more."""
        ...

    def new_commitments(self) -> Sequence[int]:
        """Numbers of tokens at which the committed answer changes, as far as not told before; rising."""
        ...


Text = TypeVar("Text", bound=Growing)


class Driver(Protocol):
    """Carries out what the policy wants. Every call returns at once, and none calls the clock back."""

    def launch(self, rollouts: Sequence[int]) -> None:
        """Start these rollouts."""
        ...

    def stop(self, rollout: int) -> None:
        """Stop its generation, if that still runs."""
        ...

    def decide(self, rollout: int, fate: Fate, prefix: Prefix) -> None:
        """Decided, at this prefix of it; a later decision overrules."""
        ...

    def probe(self, number: int, tokens: int, prefix: Prefix) -> None:
        """Ask a rollout, aside from its text, for at most so many tokens; the answer goes to `Clock.probed`."""
        ...

    def release(self, rollout: int) -> None:
        """A rollout that was told to be held may go on."""
        ...


class Entrant(Generic[Text]):
    """One launched rollout as the clock sees it."""

    __slots__ = ("alerts", "fate", "floor", "has_failed", "is_cut", "is_foreseen", "start", "text", "tokens", "watches")

    def __init__(self, start: int, text: Text) -> None:
        self.start = start
        self.text = text
        self.has_failed = False
        self.is_cut = False  # nothing further of it counts
        self.is_foreseen = False
        self.floor = 0  # it is known to go on to so many tokens
        self.watches: set[int] = set()
        self.alerts: list[int] = []  # observations that are certain once it has more tokens than these
        self.tokens = 0  # charged, once there is a fate
        self.fate: Fate | None = None

    @property
    def has_stopped(self) -> bool:
        """Has it come to its end by itself, been lost, or been cut?"""
        return self.text.is_whole or self.has_failed or self.is_cut

    @property
    def is_open(self) -> bool:
        """Can anything new still come from it?"""
        return self.fate is None and not (self.has_stopped or self.is_foreseen)

    @property
    def bound(self) -> int:
        """While it is open, nothing new comes from it before this time."""
        return self.start + max(self.text.tokens, self.floor)

    @property
    def target(self) -> int | None:
        """The next number of tokens at which the policy wants to see it."""
        return min((tokens for tokens in self.watches if tokens > self.text.tokens), default=None)


class _Entry(NamedTuple):
    """An observation in waiting; the first three fields are its place in the order."""

    time: int
    rollout: int
    event: int
    detail: int = 0  # REACHED: the tokens that were watched; PROBED: the number of the probe


class Clock(Generic[Text]):
    """Runs one policy over at most `limit` rollouts: `begin` starts it, then it is told what comes from each."""

    def __init__(self, policy: Policy, limit: int, driver: Driver, make_text: Callable[[], Text]) -> None:
        self.entrants: list[Entrant[Text]] = []
        self.time = 0
        self.is_concluded = False
        self._is_interrupted = False
        self._policy = policy
        self._limit = limit
        self._driver = driver
        self._make_text = make_text
        self._queue: list[_Entry] = []
        self._open: list[tuple[int, int]] = []  # a heap of bound and rollout; bounds may have risen, or it has closed
        self._due: _Entry | None = None  # what everybody waits for
        self._laggard: int | None = None  # a rollout that may still come before it
        self._probes: list[str | None] = []
        self._fresh = 0  # observations that became certain since the last look ahead

    # --- what the driver tells

    def begin(self) -> None:
        """Let the policy make its first moves."""
        self._apply(self._policy.start())

    def grew(self, rollout: int) -> None:
        """More of its text has come (`entrants[rollout].text`)."""
        entrant = self.entrants[rollout]
        if not entrant.is_open:
            return
        text = entrant.text
        self._note_commitments(rollout)
        alerts = entrant.alerts
        if alerts and alerts[0] < text.tokens:
            while alerts and alerts[0] < text.tokens:
                heapq.heappop(alerts)
            self._fresh += 1
        elif self._laggard != rollout:
            return  # whatever is waited for, it is not this
        self._advance()

    def held(self, rollout: int) -> None:
        """It has stopped at its last token, will go on behind it, and waits to be released."""
        entrant = self.entrants[rollout]
        if not entrant.is_open:
            return
        self._note_commitments(rollout)
        entrant.floor = entrant.text.tokens + 1
        # Behind every observation at its time: what nothing there stops goes on.
        heapq.heappush(self._queue, _Entry(max(self.time, entrant.bound - 1), self._limit, 0, rollout))
        self._fresh += 1
        self._advance()

    def ended(self, rollout: int) -> None:
        """Its text is whole."""
        entrant = self.entrants[rollout]
        if entrant.fate is not None or entrant.is_foreseen:
            return
        self._note_commitments(rollout)
        self._push(Event.ENDED, entrant.start + entrant.text.tokens, rollout)
        self._fresh += 1
        self._advance()

    def failed(self, rollout: int) -> None:
        """It is lost for good."""
        entrant = self.entrants[rollout]
        if not entrant.is_open:
            return
        self._note_commitments(rollout)
        entrant.has_failed = True
        self._push(Event.FAILED, entrant.start + entrant.text.tokens, rollout)
        self._fresh += 1
        self._advance()

    def probed(self, number: int, answer: str) -> None:
        """What a probe answered; empty when it got no answer."""
        self._probes[number] = answer
        self._advance()

    def interrupt(self) -> None:
        """End here: what has come is dealt with, nothing further is waited for or begun, and all that is charged."""
        for entrant in self.entrants:
            entrant.is_cut = entrant.is_open
            if entrant.fate is None:
                entrant.tokens = entrant.text.tokens
        self._is_interrupted = True
        self._advance()
        self.is_concluded = True

    def awaited(self, rollout: int) -> int | None:
        """The next number of tokens at which `grew` may change something; None: not before it ends.

        For drivers that know beforehand how far a rollout will get. Commitments that are yet to come are not in it.
        """
        entrant = self.entrants[rollout]
        if not entrant.is_open:
            return None
        now = entrant.text.tokens
        looks = [max(entrant.alerts[0], now) + 1] if entrant.alerts else []
        if self._due is not None:  # what all wait for: when can this one no longer come before it?
            past = self._due.time - entrant.start + (rollout <= self._due.rollout)
            looks += [past] if past > now else []
        return min(looks, default=None)

    # --- what came of it

    @property
    def is_over(self) -> bool:
        """Is nothing left to be decided?"""
        while self._open and not self.entrants[self._open[0][1]].is_open:
            heapq.heappop(self._open)
        return self.is_concluded or not (self._queue or self._open)

    def settle(self) -> list[tuple[Charge, Fate]]:
        """Every rollout's bill and fate, those included that were never launched."""
        for entrant in self.entrants:
            if entrant.fate is None:
                if not self._is_interrupted:
                    entrant.tokens = min(self.time - entrant.start, entrant.text.tokens)
                entrant.fate = Fate.FAILED if entrant.has_failed else Fate.CANCELLED
        launched = [(Charge(e.tokens, e.start), e.fate or Fate.CANCELLED) for e in self.entrants]
        return launched + [(Charge(0), Fate.UNUSED)] * (self._limit - len(launched))

    # --- the order of observations

    def _note_commitments(self, rollout: int) -> None:
        entrant = self.entrants[rollout]
        for tokens in entrant.text.new_commitments():
            self._push(Event.COMMITTED, entrant.start + tokens, rollout)
            heapq.heappush(entrant.alerts, tokens)

    def _push(self, event: Event, time: int, rollout: int, detail: int = 0) -> None:
        heapq.heappush(self._queue, _Entry(max(time, self.time), rollout, event.value, detail))

    def _advance(self) -> None:
        """Deliver what is due; what is foreseen then may make more due."""
        while True:
            while self._queue and not self.is_concluded:
                entry = self._queue[0]
                if self._is_void(entry):
                    heapq.heappop(self._queue)
                elif self._is_due(entry):
                    heapq.heappop(self._queue)
                    self._deliver(entry)
                else:
                    break
            if self.is_concluded or not self._look_ahead():
                return

    def _is_void(self, entry: _Entry) -> bool:
        if entry.rollout == self._limit:
            return not self.entrants[entry.detail].is_open
        entrant = self.entrants[entry.rollout]
        if entrant.fate is not None:
            return True
        return entry.event == Event.REACHED.value and entrant.has_stopped and entry.detail >= entrant.text.tokens

    def _is_due(self, entry: _Entry) -> bool:
        if entry.event == Event.PROBED.value and self._probes[entry.detail] is None:
            return False
        self._due, self._laggard = entry, None
        place, first = entry[:3], Event.COMMITTED.value
        while self._open and (*self._open[0], first) <= place:
            rollout = self._open[0][1]
            entrant = self.entrants[rollout]
            bound = entrant.bound
            if not entrant.is_open:
                heapq.heappop(self._open)
            elif (bound, rollout, first) > place:
                heapq.heapreplace(self._open, (bound, rollout))
            else:
                self._laggard = rollout
                return False
        return True

    def _deliver(self, entry: _Entry) -> None:
        self.time, self._due = entry.time, None
        if entry.rollout == self._limit:
            self._driver.release(entry.detail)
            return
        entrant = self.entrants[entry.rollout]
        event = Event(entry.event)
        prefix = entrant.text.prefix(entry.rollout, self.time - entrant.start)
        if event is Event.ENDED or event is Event.FAILED:
            self._decide(entry.rollout, Fate.FINISHED if event is Event.ENDED else Fate.FAILED)
        probe = self._probes[entry.detail] if event is Event.PROBED else None
        self._fresh += 1
        self._apply(self._policy.observe(Observation(event, self.time, prefix, probe)))

    # --- what the policy wants

    def _apply(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Launch(count):
                    self._launch(count)
                case Watch(rollout, tokens):
                    self._watch(rollout, tokens)
                case Bank(rollout):
                    self._stop(rollout, Fate.BANKED)
                case Prune(rollout):
                    self._stop(rollout, Fate.PRUNED)
                case Probe(rollout, tokens):
                    self._probe(rollout, tokens)
                case Conclude():
                    self.is_concluded = True

    def _launch(self, count: int) -> None:
        if self._is_interrupted:
            return
        first = len(self.entrants)
        rollouts = range(first, min(first + count, self._limit))
        self.entrants += [Entrant(self.time, self._make_text()) for _ in rollouts]
        for rollout in rollouts:
            heapq.heappush(self._open, (self.time, rollout))
        if rollouts:
            self._driver.launch(rollouts)

    def _watch(self, rollout: int, tokens: int) -> None:
        entrant = self.entrants[rollout]
        entrant.watches.add(tokens)
        heapq.heappush(entrant.alerts, tokens)
        self._push(Event.REACHED, entrant.start + tokens, rollout, tokens)

    def _probe(self, rollout: int, tokens: int) -> None:
        entrant = self.entrants[rollout]
        self._push(Event.PROBED, self.time, rollout, len(self._probes))
        self._probes.append(None)
        if self._is_interrupted:
            return
        prefix = entrant.text.prefix(rollout, self.time - entrant.start)
        self._driver.probe(len(self._probes) - 1, tokens, prefix)

    def _stop(self, rollout: int, fate: Fate) -> None:
        self._decide(rollout, fate)
        self._driver.stop(rollout)

    def _decide(self, rollout: int, fate: Fate) -> None:
        """A rollout that had a fate before keeps its bill."""
        entrant = self.entrants[rollout]
        if entrant.fate is None:
            entrant.tokens = min(self.time - entrant.start, entrant.text.tokens)
        entrant.fate = fate
        self._driver.decide(rollout, fate, entrant.text.prefix(rollout, entrant.tokens))

    # --- ahead of the clock

    def _look_ahead(self) -> bool:
        """Stop what is certain to be stopped by what is seen already; its decision still comes when it is due."""
        if not self._fresh or self._fresh * _LOOKS < len(self._queue):
            return False
        self._fresh = 0
        ahead = [self._foreseen(entry) for entry in sorted(self._queue) if self._is_certain(entry)]
        certain = [r for r in self._policy.foresee(ahead) if self.entrants[r].is_open] if ahead else []
        for rollout in certain:
            self.entrants[rollout].is_foreseen = True
            self._driver.stop(rollout)
        return bool(certain)

    def _is_certain(self, entry: _Entry) -> bool:
        if entry.rollout == self._limit or entry.event == Event.PROBED.value or self._is_void(entry):
            return False
        entrant = self.entrants[entry.rollout]
        return entrant.has_stopped or entrant.bound > entry.time

    def _foreseen(self, entry: _Entry) -> Observation:
        entrant = self.entrants[entry.rollout]
        prefix = entrant.text.prefix(entry.rollout, entry.time - entrant.start)
        return Observation(Event(entry.event), entry.time, prefix)
