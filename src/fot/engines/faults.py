"""What can go wrong with a live rollout, and seeded plans of it for the scripted engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

from fot.core.rollout import Rollout
from fot.engines.base import Request
from fot.errors import (
    EngineError,
    EngineProtocolError,
    EngineRefused,
    EngineTimeout,
    EngineUnavailable,
)

__all__ = ["FAULTS", "Fault", "FaultKind", "RolloutKey", "draw_faults", "error_of"]

RolloutKey = tuple[str, int]
"""(`problem_id`, `rollout_id`)."""

FaultKind = Literal["refused", "busy", "broken", "dropped", "torn", "stalled", "restart", "fatal"]
FAULTS: tuple[FaultKind, ...] = ("refused", "busy", "broken", "dropped", "torn", "stalled", "restart", "fatal")


_STATUS: Mapping[FaultKind, int] = {"busy": 429, "broken": 503, "fatal": 500}


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one attempt at a rollout.

    refused    no connection               busy     429, with `retry_after_s`     broken   503
    dropped    the connection breaks       torn     a frame that cannot be read   stalled  silence
    restart    the engine starts anew: all its streams break, and its counters begin at 0
    fatal      an error that no retry mends; every further attempt at this rollout meets it again
    """

    kind: FaultKind
    after: int = 0
    """New tokens of the attempt before it strikes; `refused`, `busy` and `broken` strike at once."""
    retry_after_s: float | None = None


def error_of(fault: Fault, request: Request) -> EngineError:
    """What a client sees of a fault."""
    kind = fault.kind
    if kind in _STATUS:
        return EngineRefused(
            f"the scripted engine answered {_STATUS[kind]}",
            status=_STATUS[kind],
            retryable=kind != "fatal",
            retry_after_s=fault.retry_after_s,
            request_id=request.id,
        )
    if kind == "torn":
        return EngineProtocolError("the stream holds a torn frame", retryable=True, request_id=request.id)
    if kind == "stalled":
        return EngineTimeout("the stream fell silent", retryable=True, request_id=request.id)
    said = "nobody answers" if kind == "refused" else "the connection broke"
    return EngineUnavailable(said, retryable=True, retry_after_s=fault.retry_after_s, request_id=request.id)


def draw_faults(
    seed: int, rollouts: Iterable[Rollout], *, rate: float = 0.3, attempts: int = 3, fatal: float = 0.0
) -> dict[RolloutKey, list[Fault]]:
    """A seeded plan: each of the first `attempts` attempts fails with probability `rate`.

    With probability `fatal` a rollout is lost for good instead, somewhere on its way.
    """
    mendable = [kind for kind in FAULTS if kind != "fatal"]
    plan: dict[RolloutKey, list[Fault]] = {}
    for rollout in rollouts:
        rng = Random(f"{seed}/{rollout.problem_id}/{rollout.rollout_id}")  # noqa: S311  (chance, not secrecy)
        faults: list[Fault] = []
        while len(faults) < attempts and rng.random() < rate:
            wait = rng.choice((None, 0.0, 0.001))
            faults.append(Fault(rng.choice(mendable), rng.randint(0, rollout.tokens), wait))
        if rng.random() < fatal:
            faults.append(Fault("fatal", rng.randint(0, rollout.tokens)))
        if faults:
            plan[(rollout.problem_id, rollout.rollout_id)] = faults
    return plan
