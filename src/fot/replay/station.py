"""An engine with continuous batching, modelled: slots, KV positions, a queue, and a clock that only counts.

Time leaps from one thing that matters to the next; in between all running work takes its steps together. Work waits in
order of arrival for a slot and for room. When what runs outgrows the room, the work that was admitted last goes back
to the head of the queue and computes all it had anew later, as vLLM does it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from fot.core.timing import Span, Timing
from fot.errors import ConfigError
from fot.replay.trace import Trace

__all__ = ["Books", "Owner", "Room", "Station", "Work"]

FAR = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much an engine has room for."""

    slots: int
    kv_tokens: int | None = None
    """Positions held at once, prompts included and counted for each rollout; None: never short."""

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ConfigError(f"{self.slots} slots", "At least one rollout must run.")
        if self.kv_tokens is not None and self.kv_tokens < 1:
            raise ConfigError(f"room for {self.kv_tokens} positions", "A rollout needs at least its own length.")


class Owner(Protocol):
    """Whom the station tells what became of work. It may submit, stop and release in answer."""

    def reached(self, work: Work) -> None:
        """It has the tokens of `work.look`, or more."""
        ...

    def held(self, work: Work) -> None:
        """It has the tokens of `work.hold`, and waits."""
        ...

    def ended(self, work: Work) -> None:
        """It has all its tokens."""
        ...

    def gone(self, work: Work) -> None:
        """Nothing of it is in the engine any more; always told last."""
        ...


class Work:
    """One request: `prompt` positions of which `computed` are not in the cache, then `until` tokens."""

    __slots__ = ("computed", "done", "hold", "look", "owner", "prompt", "rollout", "since", "state", "station", "until")

    def __init__(self, owner: Owner, rollout: int, *, prompt: int, computed: float, until: int) -> None:
        self.owner = owner
        self.rollout = rollout
        self.prompt = prompt
        self.computed = computed
        self.until = until
        self.hold: int | None = None
        self.look: int | None = None
        """The next number of tokens at which the owner wants to hear of it."""
        self.done = 0  # tokens up to `since`
        self.since = 0  # the step after which it went on
        self.state = "new"
        self.station: Station | None = None

    @property
    def tokens(self) -> int:
        """Tokens so far."""
        if self.state == "running" and self.station is not None:
            return self.done + self.station.step - self.since
        return self.done

    @property
    def positions(self) -> int:
        """What it holds."""
        return self.prompt + self.tokens

    def next_step(self) -> int:
        """The step at which something is to be done about it."""
        stops = [tokens for tokens in (self.until, self.hold, self.look) if tokens is not None]
        return self.since + min(stops) - self.done


@dataclass(slots=True)
class Books:
    """What an engine has done."""

    seconds: float = 0.0
    tokens: int = 0
    prompt_tokens: float = 0.0
    """Computed ones."""
    token_steps: float = 0.0
    token_seconds: float = 0.0
    batch_seconds: float = 0.0
    kv_peak: int = 0
    batch_peak: int = 0
    preemptions: int = 0
    waits: float = 0.0
    """Seconds that work waited for a slot or for room, in all."""


class Station:
    """The engine. `run` goes on until nothing is left to do."""

    def __init__(self, timing: Timing, room: Room) -> None:
        self.timing = timing
        self.room = room
        self.books = Books()
        self.trace = Trace()
        self.step = 0
        self._running: dict[Work, None] = {}  # in order of admission
        self._parked: dict[Work, None] = {}
        self._waiting: deque[tuple[float, Work]] = deque()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._attended = 0
        self._idle = 0  # positions of what is parked

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.books.seconds

    # --- what owners want

    def submit(self, work: Work) -> None:
        """Send a request."""
        work.station, work.state = self, "sent"
        self._later(self.timing.request_s, lambda: self._arrive(work))

    def stop(self, work: Work) -> None:
        """Tell the engine to let go of it."""
        self._later(self.timing.stop_s, lambda: self._leave(work))

    def release(self, work: Work, hold: int | None) -> None:
        """Let parked work go on, to `hold` tokens or to its end."""
        work.hold = hold
        self._later(0.0, lambda: self._unpark(work))

    # --- time

    def run(self) -> None:
        """Until nothing is left."""
        while True:
            while self._agenda and self._agenda[0][0] <= self.now:
                heapq.heappop(self._agenda)[2]()
            if self._admit():
                continue  # its prompt took time
            if self._running:
                self._advance()
            elif self._agenda:
                self._pass(Span(self._agenda[0][0] - self.now, 0.0, 0.0))
            elif self._waiting or self._parked:
                raise ConfigError(
                    "the engine is full of rollouts that wait for others which find no room",
                    "Give it more slots and more room for KV positions, or plan another way.",
                )
            else:
                return

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now + seconds, next(self._number), what))

    def _advance(self) -> None:
        """Take steps until something is to be done."""
        batch = len(self._running)
        steps = min(work.next_step() for work in self._running) - self.step
        if self.room.kv_tokens is not None:
            fit = (self.room.kv_tokens - self._attended - self._idle) // batch
            if fit < 1:
                self._preempt()
                return
            steps = min(steps, fit)
        if self._agenda:
            steps = self._steps_before(self._agenda[0][0] - self.now, batch, steps)
        span = self.timing.span(batch, self._attended, steps)
        self.step += steps
        self._attended += steps * batch
        self.books.tokens += steps * batch
        self._pass(span)
        for work in [work for work in self._running if work.next_step() <= self.step]:
            self._tell(work)

    def _steps_before(self, seconds: float, batch: int, most: int) -> int:
        """The first number of steps that take so long."""
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            if self.timing.span(batch, self._attended, middle).seconds < seconds:
                low = middle + 1
            else:
                high = middle
        return low

    def _pass(self, span: Span, attended: int | None = None) -> None:
        """Time goes by; `attended` positions are held throughout where no step is taken."""
        books, batch, idle = self.books, len(self._running), self._idle
        held = span.token_seconds + (idle + (attended or 0)) * span.seconds
        books.seconds += span.seconds
        books.token_steps += span.token_steps
        books.token_seconds += held
        books.batch_seconds += batch * span.seconds
        books.kv_peak = max(books.kv_peak, self._attended + idle)
        books.batch_peak = max(books.batch_peak, batch)
        self.trace.add(span.seconds, batch * span.seconds, held)

    def _tell(self, work: Work) -> None:
        if work.state != "running":  # gone by what was told of another
            return
        if work.tokens >= work.until:
            work.owner.ended(work)
            self._leave(work)
        elif work.hold is not None and work.tokens >= work.hold:
            self._park(work)
            work.owner.held(work)
        else:
            work.owner.reached(work)

    # --- the life of work

    def _arrive(self, work: Work) -> None:
        if work.state == "sent":
            work.state = "waiting"
            self._waiting.append((self.now, work))

    def _admit(self) -> bool:
        """Let the first in the queue in, if there is room for it."""
        if not self._waiting or len(self._running) + len(self._parked) >= self.room.slots:
            return False
        since, work = self._waiting[0]
        most = self.room.kv_tokens
        if most is not None:
            if work.prompt + work.until > most:
                raise ConfigError(
                    f"a rollout of {work.prompt + work.until:,} positions does not fit into {most:,}",
                    "Give the engine more room.",
                )
            if self._attended + self._idle + work.positions + len(self._running) + 1 > most:
                return False
        self._waiting.popleft()
        self.books.waits += self.now - since
        computed, work.computed = work.computed, 0.0
        self.books.prompt_tokens += computed
        self._attended += work.positions
        self._pass(Span(self.timing.prefill_s * computed, 0.0, 0.0), self._attended)
        self._running[work] = None
        work.state, work.since = "running", self.step
        if work.until <= work.done:
            self._tell(work)
        return True

    def _settle(self, work: Work) -> None:
        """It takes no more steps for now."""
        work.done, work.since = work.tokens, self.step
        self._attended -= work.positions
        del self._running[work]

    def _park(self, work: Work) -> None:
        self._settle(work)
        work.state = "parked"
        self._parked[work] = None
        self._idle += work.positions

    def _unpark(self, work: Work) -> None:
        if work.state == "parked":
            del self._parked[work]
            self._idle -= work.positions
            self._attended += work.positions
            self._running[work] = None
            work.state, work.since = "running", self.step

    def _preempt(self) -> None:
        """Out of room: the last one in goes back to the head of the queue."""
        work = next(reversed(self._running))
        self._settle(work)
        work.state = "waiting"
        work.computed = float(work.positions)
        self._waiting.appendleft((self.now, work))
        self.books.preemptions += 1

    def _leave(self, work: Work) -> None:
        if work.state == "gone":
            return
        if work.state == "running":
            self._settle(work)
        elif work.state == "parked":
            del self._parked[work]
            self._idle -= work.positions
        elif work.state == "waiting":
            self._waiting = deque(entry for entry in self._waiting if entry[1] is not work)
        work.state = "gone"
        work.owner.gone(work)
