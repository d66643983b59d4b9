"""Signals: how little a rollout promises, told from its prefix. The lowest values are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fot.core.policy import Need, Prefix
from fot.core.vote import Ballot

__all__ = ["DENSITY", "FINAL_LENGTH", "Signal", "mix", "random_signal"]

_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Signal:
    """`measure(prefix, bank)`; `reads_bank` tells that the same prefix may measure differently as the bank grows."""

    name: str
    measure: Callable[[Prefix, Sequence[Ballot]], float]
    needs: frozenset[Need] = frozenset()
    reads_bank: bool = False


DENSITY = Signal("density", lambda prefix, bank: prefix.density)
"""The paper's: hesitation density over the whole prefix."""

FINAL_LENGTH = Signal("length", lambda prefix, bank: float(prefix.final_tokens), frozenset({Need.FUTURE}))
"""What the oracle prunes by; a live run cannot know it."""


def random_signal(seed: int) -> Signal:
    """No signal at all: a fixed random number for each rollout, the same in every driver and on every path."""
    return Signal("random", lambda prefix, bank: mix(seed, prefix.rollout) / 2.0**64)


def mix(seed: int, value: int) -> int:
    """A well-mixed 64-bit number of the two (splitmix64's finaliser), cheap to compute over arrays as well."""
    z = (seed * 0x9E3779B97F4A7C15 + value * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
