"""Processes that may be killed: each answers one JSON request a line, and is replaced when it dies.

The limit is processor time, which a busy machine does not change; a worker that uses it up ends itself, also when its
parent has gone. Wall time is only a backstop. A request whose worker dies comes back as `Lost`, and is not tried again.
Workers are started afresh (no fork), so they share nothing with the caller, and need no guard around its main module.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from fot.errors import GradingError
from fot.grading.base import Closing

__all__ = ["Lost", "WorkerPool"]

_START_S = 120.0
_REQUESTS_EACH = 2_000  # then a fresh one: what a computer-algebra system caches is never given back
_BLOCK = 1 << 16


class Lost(NamedTuple):
    """What comes back for a request whose worker died, and why it did."""

    reason: str


class _Worker:
    """One process. `request` is what it works on; it is busy while that is set."""

    def __init__(self, module: str, limit_s: float) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        command = [sys.executable, "-P", "-m", module, str(limit_s)]
        self.process = subprocess.Popen(  # noqa: S603 - our own module, by our own interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        if self.process.stdin is None or self.process.stdout is None:
            raise GradingError("a grading worker has no pipes")
        self._input, self._output = self.process.stdin, self.process.stdout
        self.request: int | None = None
        self.is_ready = False
        self.deadline = time.monotonic() + _START_S
        self.served = 0
        self._received = b""

    def fileno(self) -> int:
        """Where its replies arrive: what a selector waits for."""
        return self._output.fileno()

    def send(self, number: int, request: object, wall_s: float) -> None:
        """Hand over a request. A worker that has died is noticed when its end is read."""
        self.request, self.deadline = number, time.monotonic() + wall_s
        self.served += 1
        with suppress(BrokenPipeError):
            self._input.write(json.dumps(request).encode() + b"\n")
            self._input.flush()

    def receive(self) -> list[Any] | None:
        """The replies that have arrived; None when there will be no more."""
        block = os.read(self.fileno(), _BLOCK)
        if not block:
            return None
        *lines, self._received = (self._received + block).split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self) -> None:
        """End it now, whatever it does."""
        self.process.kill()
        for pipe in (self._input, self._output):
            with suppress(BrokenPipeError):
                pipe.close()
        self.process.wait()


def _kill_all(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().kill()


class WorkerPool(Closing):
    """`count` workers at most, started as they are needed, of the module `module`; one caller at a time."""

    def __init__(self, module: str, count: int, limit_s: float) -> None:
        self._module = module
        self._count = count
        self.limit_s = limit_s
        self._wall_s = 4 * limit_s + 10
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _kill_all, self._workers)

    @property
    def process_ids(self) -> list[int]:
        """The processes that are kept running now."""
        return [worker.process.pid for worker in self._workers]

    def run(self, requests: Iterable[object], done: Callable[[int, Any], None]) -> None:
        """Have each request answered; `done(position, reply)` is told in the order of completion."""
        with self._lock, selectors.DefaultSelector() as selector:
            for worker in self._workers:
                selector.register(worker, selectors.EVENT_READ)
            try:
                self._serve(enumerate(requests), done, selector)
            except BaseException:
                _kill_all(self._workers)  # a worker that still computes would answer the next caller
                raise

    def close(self) -> None:
        """End every worker; the pool may be used again."""
        with self._lock:
            _kill_all(self._workers)

    def _serve(
        self,
        requests: Iterator[tuple[int, object]],
        done: Callable[[int, Any], None],
        selector: selectors.BaseSelector,
    ) -> None:
        waiting = next(requests, None)
        while True:
            while waiting is not None and (worker := self._idle(selector)) is not None:
                worker.send(*waiting, self._wall_s)
                waiting = next(requests, None)
            if waiting is None and not any(worker.request is not None for worker in self._workers):
                return
            for key, _ in selector.select(self._patience()):
                self._hear(key.fileobj, done, selector)  # type: ignore[arg-type]
            self._reap(done, selector)

    def _idle(self, selector: selectors.BaseSelector) -> _Worker | None:
        for worker in list(self._workers):
            if worker.request is None and worker.is_ready:
                if worker.served < _REQUESTS_EACH:
                    return worker
                self._drop(worker, selector)
        starting = sum(1 for worker in self._workers if not worker.is_ready)
        if len(self._workers) < self._count and not starting:
            worker = _Worker(self._module, self.limit_s)
            self._workers.append(worker)
            selector.register(worker, selectors.EVENT_READ)
        return None

    def _patience(self) -> float:
        busy = [worker.deadline for worker in self._workers if worker.request is not None or not worker.is_ready]
        return max(0.0, min(busy, default=time.monotonic()) - time.monotonic())

    def _hear(self, worker: _Worker, done: Callable[[int, Any], None], selector: selectors.BaseSelector) -> None:
        replies = worker.receive()
        if replies is None:
            self._bury(worker, done, selector)
            return
        for reply in replies:
            if not worker.is_ready:
                worker.is_ready = True
            elif worker.request is not None:
                number, worker.request = worker.request, None
                done(number, reply)

    def _bury(self, worker: _Worker, done: Callable[[int, Any], None], selector: selectors.BaseSelector) -> None:
        self._drop(worker, selector)
        if not worker.is_ready:
            raise GradingError(
                f"a grading worker ended while starting (exit status {worker.process.returncode})",
                f"python -m {self._module} 1  shows why",
            )
        if worker.request is not None:
            done(worker.request, Lost(f"not settled within {self.limit_s:g} s of processor time"))

    def _reap(self, done: Callable[[int, Any], None], selector: selectors.BaseSelector) -> None:
        now = time.monotonic()
        for worker in list(self._workers):
            if now <= worker.deadline or (worker.is_ready and worker.request is None):
                continue
            self._drop(worker, selector)
            if not worker.is_ready:
                raise GradingError(f"a grading worker did not start within {_START_S:g} s")
            if worker.request is not None:
                done(worker.request, Lost(f"not settled within {self._wall_s:g} s"))

    def _drop(self, worker: _Worker, selector: selectors.BaseSelector) -> None:
        selector.unregister(worker)
        self._workers.remove(worker)
        worker.kill()
