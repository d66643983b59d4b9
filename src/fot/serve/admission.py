"""Who runs when. All rollouts of a problem begin together; what does not fit waits, in a queue of bounded length.

Among clients that wait, the one with the fewest rollouts underway is next. When the queue is full, the client with most
places in it makes room for one that has fewer.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fot.errors import FotError
from fot.serve.upstreams import Upstream, Upstreams

__all__ = ["Admission", "Bucket", "Buckets", "Refused"]

_LONGEST_WAIT_S = 600.0
_CLIENTS = 4096


class Refused(FotError):
    """Not now: `status` is 429 (too much asked) or 503 (nobody there), to be tried again after some seconds."""

    def __init__(self, message: str, status: int, retry_after_s: float) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = min(max(retry_after_s, 1.0), _LONGEST_WAIT_S)


@dataclass(eq=False)
class _Waiting:
    client: str
    rollouts: int
    model: str | None
    turn: asyncio.Future[Upstream] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Admission:
    """The queue before the upstreams."""

    def __init__(self, upstreams: Upstreams, limit: int) -> None:
        self._upstreams = upstreams
        self._limit = limit
        self._queues: OrderedDict[str, deque[_Waiting]] = OrderedDict()
        self._underway: Counter[str] = Counter()
        self._mean_s = 10.0
        self.running = 0
        self.is_closed = False

    @property
    def waiting(self) -> int:
        """Problems that wait."""
        return sum(len(queue) for queue in self._queues.values())

    @asynccontextmanager
    async def admitted(self, client: str, rollouts: int, model: str | None = None) -> AsyncIterator[Upstream]:
        """Wait for room for a problem where its model is served, and hold it. Raises `Refused`."""
        asked = _Waiting(client, rollouts, model)
        upstream = await self._enter(asked)
        began = time.monotonic()
        try:
            yield upstream
        finally:
            self._mean_s += 0.2 * (time.monotonic() - began - self._mean_s)
            self._leave(upstream, asked)

    def close(self) -> None:
        """Let nobody in any more; whoever waits is refused."""
        self.is_closed = True
        for queue in self._queues.values():
            for waiting in queue:
                if not waiting.turn.done():
                    waiting.turn.set_exception(_shutting_down())
        self._queues.clear()

    def dispatch(self) -> None:
        """Let in whoever is next, as long as there is room."""
        while (found := self._next()) is not None:
            waiting, upstream = found
            self._forget(waiting)
            if not waiting.turn.done():
                self._take(upstream, waiting)
                waiting.turn.set_result(upstream)

    def _next(self) -> tuple[_Waiting, Upstream] | None:
        """Who is next, and where: nobody overtakes those who wait for the same upstreams."""
        wanted: set[Upstream] = set()
        for client in sorted(self._queues, key=self._underway.__getitem__):
            for waiting in self._queues[client]:
                upstream = self._upstreams.with_room(waiting.rollouts, waiting.model, wanted)
                if upstream is not None:
                    return waiting, upstream
                wanted.update(self._upstreams.serving(waiting.model))
                if len(wanted) == len(self._upstreams.all):
                    return None
        return None

    async def _enter(self, asked: _Waiting) -> Upstream:
        if self.is_closed:
            raise _shutting_down()
        serving = self._upstreams.serving(asked.model)
        if not any(upstream.is_up for upstream in serving):
            raise Refused("no upstream answers", 503, 5.0)
        wanted = {
            each for queue in self._queues.values() for other in queue for each in self._upstreams.serving(other.model)
        }
        if (upstream := self._upstreams.with_room(asked.rollouts, asked.model, wanted)) is not None:
            self._take(upstream, asked)
            return upstream
        self._make_place(asked.client)
        self._queues.setdefault(asked.client, deque()).append(asked)
        self.dispatch()
        try:
            return await asked.turn
        except asyncio.CancelledError:
            self._forget(asked)
            if asked.turn.done() and not asked.turn.cancelled() and asked.turn.exception() is None:
                self._leave(asked.turn.result(), asked)
            raise

    def _make_place(self, client: str) -> None:
        if self.waiting < self._limit:
            return
        full = Refused(
            f"{self.waiting} problems wait already", 429, self._mean_s * (self.waiting + 1) / max(self.running, 1)
        )
        most = max(self._queues, key=lambda name: len(self._queues[name]), default=None)
        if most is None or len(self._queues[most]) <= len(self._queues.get(client, ())) + 1:
            raise full
        evicted = self._queues[most][-1]
        self._forget(evicted)
        if not evicted.turn.done():
            evicted.turn.set_exception(full)

    def _take(self, upstream: Upstream, asked: _Waiting) -> None:
        upstream.used += asked.rollouts
        self._underway[asked.client] += asked.rollouts
        self.running += 1

    def _leave(self, upstream: Upstream, asked: _Waiting) -> None:
        upstream.used -= asked.rollouts
        self.running -= 1
        self._underway[asked.client] -= asked.rollouts
        if not self._underway[asked.client]:
            del self._underway[asked.client]
        self.dispatch()

    def _forget(self, waiting: _Waiting) -> None:
        queue = self._queues.get(waiting.client)
        if queue is not None and waiting in queue:
            queue.remove(waiting)
            if not queue:
                del self._queues[waiting.client]
            else:
                self._queues.move_to_end(waiting.client)


def _shutting_down() -> Refused:
    return Refused("the server is shutting down", 503, 10.0)


class Bucket:
    """An allowance that fills up evenly, to at most a minute's worth."""

    def __init__(self, per_minute: float, now: Callable[[], float]) -> None:
        self._rate = per_minute / 60.0
        self._most = self._level = max(per_minute, 1.0)
        self._now = now
        self._at = now()

    def _fill(self) -> None:
        now = self._now()
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now

    def wait_s(self, amount: float) -> float:
        """Seconds until so much is there; 0 when it is."""
        self._fill()
        return max(0.0, (amount - self._level) / self._rate)

    def spend(self, amount: float) -> None:
        """Take so much, even if that makes debts."""
        self._fill()
        self._level -= amount


class Buckets:
    """One bucket for each client; None where there is no limit."""

    def __init__(self, per_minute: float, now: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._now = now
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def of(self, client: str) -> Bucket | None:
        """The client's own."""
        if not self._per_minute:
            return None
        if client not in self._buckets and len(self._buckets) >= _CLIENTS:
            self._buckets.popitem(last=False)
        bucket = self._buckets.setdefault(client, Bucket(self._per_minute, self._now))
        self._buckets.move_to_end(client)
        return bucket
