"""What it takes to generate rollouts: FLOPs, bytes of KV cache, and the hours of accelerators of known speed.

A decoding step gives every running rollout a token. It multiplies with all weights once for each of them, attends to
all positions that they hold, and reads both from memory: it can be no faster than the slower of the two. The ledger
counts attention in the paper's convention, tokens²; here are the FLOPs that are done, half of that for a causal model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fot.core.shapes import Shape
from fot.core.timing import Timing
from fot.errors import ConfigError

__all__ = ["ACCELERATORS", "Accelerator", "Decoding", "Work", "decode_flops", "decoding", "kv_bytes", "served_s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One device as its data sheet gives it."""

    flops: float
    """FLOPs a second, dense, in the precision of the weights."""
    bandwidth: float
    """Bytes a second from its memory."""
    memory: float
    """Bytes."""

    def __post_init__(self) -> None:
        for name in ("flops", "bandwidth", "memory"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ConfigError(f"an accelerator's {name} is {getattr(self, name)}", "It should be above 0.")


ACCELERATORS: Mapping[str, Accelerator] = {  # the makers' figures for the SXM boards, dense BF16
    "a100": Accelerator(flops=312e12, bandwidth=2.039e12, memory=80e9),
    "h100": Accelerator(flops=989e12, bandwidth=3.35e12, memory=80e9),
    "h200": Accelerator(flops=989e12, bandwidth=4.8e12, memory=141e9),
}
_FREE = 0.9
"""Share of the memory that weights and KV cache may take."""


class Work(NamedTuple):
    """Rollouts of one model, summed up."""

    problems: float
    rollouts: float
    tokens: float
    """Σ tokens."""
    squares: float
    """Σ tokens²."""
    prompt_tokens: float = 0.0
    """Σ over rollouts."""

    @property
    def held(self) -> float:
        """Positions that a running rollout holds, its prompt included, in the mean over steps."""
        if not self.tokens:
            return 0.0
        return (self.squares / self.tokens + 1) / 2 + self.prompt_tokens / self.rollouts

    def times(self, factor: float) -> Work:
        """So many times as much of the same."""
        return Work(*(factor * each for each in self))


def decode_flops(work: Work, shape: Shape) -> float:
    """FLOPs of decoding: two for each weight and token, and 4·L·h·w for each position that a token attends to.

    Computing prompts, embeddings and the output head are not counted.
    """
    attended = (work.squares + work.tokens) / 2
    attention = 4.0 * shape.layers * shape.heads * shape.head_width * attended
    return 2.0 * shape.active_weights * work.tokens + attention


def kv_bytes(shape: Shape, precision: int = 2) -> float:
    """Bytes of KV cache that one position takes; `precision` in bytes a number."""
    return 2.0 * shape.layers * shape.kv_heads * shape.head_width * precision


class Decoding(NamedTuple):
    """How a model decodes on accelerators that are full."""

    accelerators: int
    """That share one copy of the weights."""
    batch: int
    """Rollouts that run at once on them."""
    step_s: float
    bound: str
    """What takes the time: memory or arithmetic."""

    def hours(self, tokens: float) -> float:
        """Accelerator hours."""
        return tokens / self.batch * self.step_s * self.accelerators / 3600


def decoding(work: Work, shape: Shape, one: Accelerator, *, use: float = 1.0, precision: int = 2) -> Decoding:
    """The fastest decoding that the data sheet allows, at `use` of its speed (1: a bound that nothing beats).

    As few accelerators share the weights as leave half of their memory to the KV cache, at full speed together. As
    many rollouts run as fit, each with its mean of positions. `ConfigError` where not one fits.
    """
    if not 0 < use <= 1:
        raise ConfigError(f"the share of the speed that is reached is {use}", "It lies above 0 and up to 1.")
    weights, held = float(precision * shape.weights), work.held
    count = 1
    while weights > count * one.memory / 2:
        count *= 2
    positions = kv_bytes(shape, precision) * held
    batch = int((_FREE * count * one.memory - weights) / positions) if positions else 1
    if batch < 1:
        raise ConfigError(f"no rollout of {held:,.0f} positions fits", "Take an accelerator with more memory.")
    arithmetic_s = batch * decode_flops(work, shape) / max(work.tokens, 1) / (count * one.flops)
    memory_s = (weights + batch * positions) / (count * one.bandwidth)
    bound = "memory" if memory_s >= arithmetic_s else "arithmetic"
    return Decoding(count, batch, max(arithmetic_s, memory_s) / use, bound)


def served_s(work: Work, timing: Timing, slots: int) -> float:
    """Seconds of a server that was timed, all its slots being taken throughout.

    With little work the last rollouts run in half-empty batches, which `fot plan` counts and this does not.
    """
    step_s = timing.step_s(slots, slots * work.held)
    further = 1 - work.problems / work.rollouts if work.rollouts else 0.0
    computed = work.prompt_tokens * (1 - timing.shared * further)
    return work.tokens / slots * step_s + computed * timing.prefill_s
