"""Rollouts for a pool: many problems, each with k rollouts run to their end, on one engine or several.

What is finished is on disk at once; what is not is asked for again by the next run with the same file. Nothing is
lost, and nothing is there twice.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from fot.core.commit import track
from fot.core.markers import PAPER_KERNEL
from fot.engines.base import Engine, Sampling
from fot.errors import ConfigError
from fot.online.journal import Journal, row_of
from fot.online.lane import Lane, Limits, Prompt, Terms
from fot.online.text import LiveText

__all__ = ["Sampler", "Tally", "Task", "check_settings", "settings_of"]


@dataclass(frozen=True, slots=True)
class Task:
    """One rollout to be made. `about` names its model, benchmark and problem as a row has them."""

    about: Mapping[str, object]
    prompt: str
    rollout: int

    @property
    def key(self) -> tuple[str, int]:
        """What makes it one rollout of the file."""
        return (str(self.about["problem_id"]), self.rollout)


@dataclass(slots=True)
class Tally:
    """How a run went."""

    wanted: int = 0
    present: int = 0
    """Rollouts that the file held before."""
    added: int = 0
    tokens: int = 0
    """Of those that were added."""
    retries: int = 0
    lost: list[tuple[str, int, str]] = field(default_factory=list)
    """Problem, rollout and reason."""


def check_settings(file: Path, settings: Mapping[str, object], schema: str = "fot.sample/1") -> None:
    """Write down beside a file of rows how its rollouts are made; `ConfigError` when they were made otherwise."""
    beside = file.with_name(f"{file.name}.settings.json")
    new = msgspec.json.decode(msgspec.json.encode({"schema": schema, **settings}))
    if file.exists() and file.stat().st_size and not beside.exists():
        raise ConfigError(f"{file} has rows, and nobody wrote down how they were made", "Write to another file.")
    if not beside.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = beside.with_name(f"{beside.name}.part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(new), indent=2) + b"\n")
        part.replace(beside)
        return
    old = msgspec.json.decode(beside.read_bytes())
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if changed:
        told = "; ".join(f"{name} was {old.get(name)}, is {new.get(name)}" for name in changed)
        raise ConfigError(f"{file} was made with other settings: {told}", "Use the same ones, or another file.")


def settings_of(model: str, seed: int, sampling: Sampling, origin: Mapping[str, object]) -> dict[str, object]:
    """What makes two rollouts comparable."""
    return {"model": model, "seed": seed, "sampling": asdict(sampling), "problems": dict(origin)}


@dataclass(slots=True)
class _Job:
    """A rollout that is wanted, and the engines that could not make it."""

    task: Task
    failed_at: list[Engine] = field(default_factory=list)


class Sampler:
    """Makes rollouts until none is wanted any more; `tally` can be read at any time."""

    def __init__(
        self, engines: Sequence[Engine], journal: Journal, *, sampling: Sampling, seed: int, limits: Limits
    ) -> None:
        self.tally = Tally()
        self._engines = engines
        self._journal = journal
        self._sampling = sampling
        self._seed = seed
        self._limits = limits
        self._waiting: deque[_Job] = deque()
        self._working: set[Lane] = set()
        self._news = asyncio.Event()  # a rollout has been settled
        self._name = f"fot-{secrets.token_hex(4)}-"
        self._number = 0
        self.is_stopped = False

    async def run(self, tasks: Iterable[Task], parallel: int, told: Callable[[Tally], None]) -> Tally:
        """Make what is not in the journal yet, `parallel` rollouts at once on each engine."""
        present = {(str(row["problem_id"]), row["rollout_id"]) for row in self._journal.rows()}
        for task in tasks:
            self.tally.wanted += 1
            if task.key in present:
                self.tally.present += 1
            else:
                self._waiting.append(_Job(task))
        told(self.tally)
        workers = [asyncio.ensure_future(self._work(engine, told)) for engine in self._engines for _ in range(parallel)]
        try:
            await asyncio.gather(*workers)
        finally:
            await self._stop_all()
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
        return self.tally

    def stop(self) -> None:
        """Finish nothing more; what is underway is given up, and made anew by the next run."""
        self.is_stopped = True
        self._waiting.clear()
        self._stopping = asyncio.ensure_future(self._stop_all())

    async def _stop_all(self) -> None:
        await asyncio.gather(*(lane.stop() for lane in list(self._working)))

    async def _next(self, engine: Engine) -> _Job | None:
        """Something to do for this engine; None when nothing can come any more."""
        while not self.is_stopped:
            for at, job in enumerate(self._waiting):
                if engine not in job.failed_at:
                    del self._waiting[at]
                    return job
            if not self._working:
                return None
            self._news.clear()  # what others are at may come back
            await self._news.wait()
        return None

    async def _work(self, engine: Engine, told: Callable[[Tally], None]) -> None:
        can = await engine.capabilities()
        while (job := await self._next(engine)) is not None:
            task = job.task
            prompt = Prompt(messages=({"role": "user", "content": task.prompt},), sampling=self._sampling)
            terms = Terms(engine, can, prompt, "stream", self._limits)
            text = LiveText(PAPER_KERNEL, track("boxed"), is_counted=can.exact_counts)
            self._number += 1
            name = f"{self._name}n{self._number:08d}."
            lane = Lane(task.rollout, name, self._seed + task.rollout, text, terms, self)
            self._working.add(lane)
            try:
                await lane.run()
            finally:
                self._working.discard(lane)
                self._news.set()
            self._settle(job, engine, lane)
            told(self.tally)

    def _settle(self, job: _Job, engine: Engine, lane: Lane) -> None:
        if lane.text.is_whole:
            self._journal.add(row_of(lane, job.task.about))
            self.tally.added += 1
            self.tally.tokens += lane.text.tokens
        elif lane.failure is not None and not self.is_stopped:
            job.failed_at.append(engine)
            if lane.failure.retryable and len(job.failed_at) < len(self._engines):
                self._waiting.appendleft(job)  # another server may have more luck
            else:
                self.tally.lost.append((*job.task.key, str(lane.failure)))

    # --- lane.Track: nobody decides anything here

    def grew(self, lane: Lane) -> None: ...
    def held(self, lane: Lane) -> None: ...
    def ended(self, lane: Lane) -> None: ...
    def failed(self, lane: Lane) -> None: ...
    def retried(self, lane: Lane, reason: str, wait_s: float) -> None:
        self.tally.retries += 1

    def target(self, lane: Lane) -> int | None:
        return None
