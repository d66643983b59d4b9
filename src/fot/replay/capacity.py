"""Replay with a clock: how long problems take under a method on an engine of known speed, and how full it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fot.core.policy import Need
from fot.core.timing import Timing
from fot.errors import ConfigError
from fot.methods import Spec
from fot.pools.read import Part
from fot.replay.party import Party, Stage, Way
from fot.replay.sheet import Sheet
from fot.replay.station import Books, Room, Station
from fot.replay.trace import Trace

__all__ = ["Forecast", "Load", "foretell", "stages_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked of the engine."""

    concurrency: int = 1
    """Problems at once; the next one starts when one is done."""
    way: Way = "stream"

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ConfigError(f"concurrency is {self.concurrency}", "At least one problem must run.")


@dataclass(frozen=True, slots=True)
class Forecast:
    """What came of it."""

    wall_s: float
    problems: int
    latencies_s: Sequence[float]
    """Of each problem, in the order of their starts: from its first request until nothing of it is left."""
    tokens: int
    """Generated, overshoot and probes included."""
    overshoot: int
    """Generated behind a rollout's decision."""
    charged: int
    books: Books
    trace: Trace

    @property
    def problems_per_h(self) -> float:
        """Throughput in problems."""
        return 3600 * self.problems / self.wall_s if self.wall_s else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Throughput in tokens."""
        return self.tokens / self.wall_s if self.wall_s else 0.0

    @property
    def kv_mean(self) -> float:
        """Positions held, over time."""
        return self.books.token_seconds / self.wall_s if self.wall_s else 0.0

    @property
    def batch_mean(self) -> float:
        """Rollouts that run, over time."""
        return self.books.batch_seconds / self.wall_s if self.wall_s else 0.0


def stages_of(
    sheet: Sheet, spec: Spec, *, seed: int = 0, draw: int = 0, prompt_tokens: int | None = None
) -> Iterator[Stage]:
    """A pool's problems under a method; `prompt_tokens` stands for what rows do not tell."""
    follow = Need.COMMITMENTS in spec.needs
    for part, (policy, recording) in zip(sheet.parts, sheet.stages(spec, seed, draw), strict=True):
        yield Stage(policy, recording, follow, _prompt_tokens(sheet, part, prompt_tokens))


def _prompt_tokens(sheet: Sheet, part: Part, otherwise: int | None) -> int:
    told = [tokens for tokens in sheet.pool.column("prompt_tokens", part.rows).to_pylist() if tokens is not None]
    return max(told) if told else otherwise or 0


def foretell(
    stages: Iterable[Stage],
    timing: Timing,
    room: Room,
    load: Load,
    told: Callable[[int], None] = lambda _: None,
) -> Forecast:
    """Run problems through a modelled engine, `load.concurrency` at once; `told` hears how many are done.

    Problems are drawn from `stages` as their turn comes, and forgotten when they are done.
    """
    return _Run(iter(stages), Station(timing, room), load, told).forecast()


class _Run:
    def __init__(self, stages: Iterator[Stage], station: Station, load: Load, told: Callable[[int], None]) -> None:
        self._stages = stages
        self._station = station
        self._load = load
        self._told = told
        self._latencies: dict[int, float] = {}
        self._started = self._charged = self._overshoot = 0

    def forecast(self) -> Forecast:
        """Run to the end, and sum up."""
        for _ in range(self._load.concurrency):
            self._begin()
        station = self._station
        station.run()
        if len(self._latencies) != self._started:
            raise RuntimeError(f"{self._started - len(self._latencies)} of {self._started} problems never ended")
        return Forecast(
            wall_s=station.now,
            problems=self._started,
            latencies_s=[self._latencies[number] for number in range(self._started)],
            tokens=station.books.tokens,
            overshoot=self._overshoot,
            charged=self._charged,
            books=station.books,
            trace=station.trace,
        )

    def _begin(self) -> None:
        stage = next(self._stages, None)
        if stage is None:
            return
        k, slots, load = len(stage.recording), self._station.room.slots, self._load
        if load.way == "barrier" and slots < k * load.concurrency:
            raise ConfigError(
                f"{load.concurrency} problems of {k} rollouts that hold their slots do not fit into {slots}",
                "Plan the way `pause` or `stream`, or give the engine more slots.",
            )
        number, self._started = self._started, self._started + 1
        Party(stage, self._station, load.way, lambda party: self._finished(number, party)).start()

    def _finished(self, number: int, party: Party) -> None:
        charged = sum(charge.tokens for charge, _ in party.settle())
        self._charged += charged
        self._overshoot += party.generated - charged
        self._latencies[number] = party.finished_at - party.began
        self._told(len(self._latencies))
        self._begin()
