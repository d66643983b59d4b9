"""What rollouts cost: attention and whole-model FLOPs under several attention regimes, tokens, and KV positions.

Every figure is a function of the tokens charged to each rollout. Costs take one count and return one number, so that
drivers may sum them over arrays, lists or streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fot.core.shapes import Shape

__all__ = [
    "KV",
    "Charge",
    "Savings",
    "attention_flops",
    "full_model_flops",
    "kv_positions",
    "reach",
    "savings",
]


class Charge(NamedTuple):
    """One rollout's bill: `tokens` generated, from time `start` on (0 unless it was launched later)."""

    tokens: int
    start: int = 0


def reach(tokens: int, window: int | None = None) -> float:
    """Positions attended to over a whole rollout, in the paper's convention that full attention costs tokens².

    With a sliding window, positions past it cost the window each: w² up to the window, then 2·w a token (the two meet
    in value and slope, as the causal sum does). `window=0` stands for linear attention: a constant per token.
    """
    if window is None or (window and tokens <= window):
        return float(tokens) * tokens
    if window == 0:
        return float(tokens)
    return float(window) * window + 2.0 * window * (tokens - window)


def attention_flops(tokens: int, shape: Shape, window: int | None = None) -> float:
    """Attention FLOPs of one rollout: 4·L·d·s² (L layers, model dimension d) under full attention."""
    return 4.0 * shape.layers * shape.hidden * reach(tokens, window)


def full_model_flops(tokens: int, shape: Shape, window: int | None = None) -> float:
    """Attention, projections and feed-forward (the active experts' only): two FLOPs for each weight and token."""
    return attention_flops(tokens, shape, window) + 2.0 * shape.active_weights * tokens


class KV(NamedTuple):
    """KV-cache positions: written in all, most held at once, and the sum over time of those held."""

    cumulative: int
    peak: int
    token_steps: int


def kv_positions(charges: Iterable[Charge]) -> KV:
    """KV positions of a problem whose rollouts all advance a token at a time; a rollout frees its own when it stops."""
    billed = [charge for charge in charges if charge.tokens > 0]
    cumulative = sum(charge.tokens for charge in billed)
    token_steps = sum(charge.tokens * (charge.tokens + 1) // 2 for charge in billed)
    ends = sorted(charge.start + charge.tokens for charge in billed)
    # What is held only falls when a rollout stops, so the peak stands at the end of one.
    peak = max((sum(_held(charge, end) for charge in billed) for end in set(ends)), default=0)
    return KV(cumulative, peak, token_steps)


def _held(charge: Charge, time: int) -> int:
    return time - charge.start if charge.start < time <= charge.start + charge.tokens else 0


@dataclass(frozen=True, slots=True)
class Savings:
    """Fractions saved against self-consistency on the same rollouts; `full_model` needs a shape for every model."""

    attention: float
    attention_macro: float
    tokens: float
    latency: float
    full_model: float | None


class Bill(NamedTuple):
    """What one problem's rollouts cost together: Σ tokens², Σ tokens, and the time at which the last one stopped."""

    attention: float
    tokens: float
    latency: float


def bill(charges: Iterable[Charge], probes: Iterable[Charge] = ()) -> Bill:
    """Add one problem's charges up.

    A probe's charge has the position in its rollout as `start`: its tokens attend to what stands before them. Probes
    run beside the rollouts and are given no latency.
    """
    charges, probes = list(charges), list(probes)
    return Bill(
        attention=sum(reach(charge.tokens) for charge in charges)
        + sum(reach(probe.start + probe.tokens) - reach(probe.start) for probe in probes),
        tokens=float(sum(charge.tokens for charge in (*charges, *probes))),
        latency=float(max((charge.start + charge.tokens for charge in charges), default=0)),
    )


def savings(method: Sequence[Bill], baseline: Sequence[Bill], shapes: Sequence[Shape | None]) -> Savings:
    """Compare bills problem by problem; `shapes` gives each problem's model."""
    pairs = list(zip(method, baseline, strict=True))
    macro = [_saved(ours.attention, theirs.attention) for ours, theirs in pairs]
    known = [shape for shape in shapes if shape is not None]
    full = len(known) == len(pairs) and bool(pairs)
    return Savings(
        attention=_saved(sum(a.attention for a, _ in pairs), sum(b.attention for _, b in pairs)),
        attention_macro=sum(macro) / len(macro) if macro else 0.0,
        tokens=_saved(sum(a.tokens for a, _ in pairs), sum(b.tokens for _, b in pairs)),
        latency=_saved(sum(a.latency for a, _ in pairs), sum(b.latency for _, b in pairs)),
        full_model=_saved(_full(method, known), _full(baseline, known)) if full else None,
    )


def _full(bills: Sequence[Bill], shapes: Sequence[Shape]) -> float:
    """Whole-model FLOPs of bills: `full_model_flops`, which is linear in Σ tokens² and Σ tokens."""
    return sum(
        4.0 * shape.layers * shape.hidden * cost.attention + 2.0 * shape.active_weights * cost.tokens
        for cost, shape in zip(bills, shapes, strict=True)
    )


def _saved(cost: float, baseline: float) -> float:
    return 1.0 - cost / baseline if baseline else 0.0
