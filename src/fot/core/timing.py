"""How long an engine takes: its step by batch and by what it holds, its prompts, its manners.

An engine with continuous batching takes steps: in each, every running rollout gets a token. A step takes longer the
more rollouts take part (the weights are read once for all; how much longer is not linear on every machine, hence a
line through measured points) and the more positions they attend to (each reads all of its own).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fot.errors import ConfigError

__all__ = ["SCHEMA", "Knot", "Span", "Timing"]

SCHEMA = "fot.timing/1"


class Knot(NamedTuple):
    """A step of `batch` rollouts takes `step_s`, what they attend to left aside."""

    batch: int
    step_s: float


class Span(NamedTuple):
    """Some steps in a row: their time, Σ positions held over steps, and ∫ positions held over time."""

    seconds: float
    token_steps: float
    token_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds by what an engine does."""

    knots: tuple[Knot, ...]
    """By rising batch; between them, and past the last two, a straight line."""
    kv_s: float = 0.0
    """Per step for each position that is attended to."""
    prefill_s: float = 0.0
    """Per prompt token that is computed; everything else waits meanwhile."""
    request_s: float = 0.0
    """From sending a request until it is in the engine's queue."""
    stop_s: float = 0.0
    """From stopping a rollout until its slot is free; it goes on generating."""
    shared: float = 0.0
    """Share of its prompt that a further rollout of the same problem finds in the engine's cache."""
    resumed: float = 0.0
    """The same for a rollout that goes on from its own prefix."""
    slots: int | None = None
    """Rollouts that run at once, as the engine told."""

    def __post_init__(self) -> None:
        if not self.knots:
            raise ConfigError("a timing needs the step time of one batch at least", "Calibrate again.")
        if any(a.batch >= b.batch for a, b in zip(self.knots, self.knots[1:], strict=False)) or self.knots[0].batch < 1:
            raise ConfigError("the batches of a timing must be 1 or more, and rise", "Calibrate again.")
        for name in ("kv_s", "prefill_s", "request_s", "stop_s"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise ConfigError(f"{name} is {getattr(self, name)}", "It should be 0 or more.")
        for name in ("shared", "resumed"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is {getattr(self, name)}", "A share lies between 0 and 1.")
        if any(not (math.isfinite(knot.step_s) and knot.step_s > 0) for knot in self.knots):
            raise ConfigError("a step takes no time, or less", "Calibrate again, on an idle server.")
        if self.slots is not None and self.slots < 1:
            raise ConfigError(f"slots is {self.slots}", "At least one rollout must run.")

    def step_s(self, batch: int, held: float = 0.0) -> float:
        """One step of `batch` rollouts that attend to `held` positions together."""
        return self._base_s(batch) + self.kv_s * held

    def _base_s(self, batch: int) -> float:
        knots = self.knots
        if len(knots) == 1 or batch <= knots[0].batch:
            return knots[0].step_s
        at = min(bisect_right(knots, batch, key=lambda knot: knot.batch), len(knots) - 1)
        low, high = knots[at - 1], knots[at]
        line = low.step_s + (high.step_s - low.step_s) * (batch - low.batch) / (high.batch - low.batch)
        return max(line, knots[0].step_s)  # a falling last line must not reach 0 somewhere

    def span(self, batch: int, held: int, steps: int) -> Span:
        """`steps` steps of `batch` rollouts that hold `held` positions before the first, and one more each per step."""
        rises = steps * (steps + 1) / 2
        positions = steps * held + batch * rises
        squares = steps * held**2 + 2 * held * batch * rises + batch**2 * rises * (2 * steps + 1) / 3
        base = self._base_s(batch)
        return Span(base * steps + self.kv_s * positions, positions, base * positions + self.kv_s * squares)

    def as_json(self) -> dict[str, object]:
        """As `from_json` takes it."""
        figures: dict[str, object] = {name: getattr(self, name) for name in self.__slots__ if name != "knots"}
        return {"schema": SCHEMA, "knots": [knot._asdict() for knot in self.knots]} | figures

    @classmethod
    def from_json(cls, told: object) -> Timing:
        """What `as_json` made; further fields are left aside. `ConfigError` where it is something else."""
        if not isinstance(told, Mapping) or told.get("schema") != SCHEMA:
            found = told.get("schema") if isinstance(told, Mapping) else None
            raise ConfigError(
                f"this is no {SCHEMA}" + (f" but {found}" if found else ""),
                "Make one with `fot doctor --calibrate --base-url URL`.",
            )
        try:
            knots = tuple(Knot(int(knot["batch"]), float(knot["step_s"])) for knot in told["knots"])
            figures = {name: float(told.get(name, 0.0)) for name in _FIGURES}
            slots = None if told.get("slots") is None else int(told["slots"])
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"the timing is damaged: {type(error).__name__} {error}", "Calibrate again.") from None
        return cls(knots=knots, slots=slots, **figures)


_FIGURES = ("kv_s", "prefill_s", "request_s", "stop_s", "shared", "resumed")
