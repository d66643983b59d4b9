"""Signals: how little a rollout promises, told from its prefix. The lowest values are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fot.core.policy import Need, Prefix
from fot.core.vote import Ballot

__all__ = ["DENSITY", "FINAL_LENGTH", "MIX_FACTORS", "Signal", "mix", "random_signal"]

_MASK = (1 << 64) - 1
MIX_FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Signal:
    """`measure(prefix, bank)`; `reads_bank` tells that the same prefix may measure differently as the bank grows.

    A tuple ranks by its first number, and by the next where that leaves a tie.
    """

    name: str
    measure: Callable[[Prefix, Sequence[Ballot]], float | tuple[float, ...]]
    needs: frozenset[Need] = frozenset()
    reads_bank: bool = False

    def rank(self, prefixes: Iterable[Prefix], bank: Sequence[Ballot]) -> list[Prefix]:
        """What promises most comes first; of equals the lower rollout."""
        return sorted(prefixes, key=lambda prefix: (self.measure(prefix, bank), prefix.rollout))


DENSITY = Signal("density", lambda prefix, bank: prefix.density)
"""The paper's: hesitation density over the whole prefix."""

FINAL_LENGTH = Signal("length", lambda prefix, bank: float(prefix.final_tokens), frozenset({Need.FUTURE}))
"""What the oracle prunes by; a live run cannot know it."""


def random_signal(seed: int) -> Signal:
    """No signal at all: a fixed random number for each rollout, the same in every driver and on every path."""
    return Signal("random", lambda prefix, bank: mix(seed, prefix.rollout) / 2.0**64)


def mix(seed: int, value: int) -> int:
    """A well-mixed 64-bit number of the two (splitmix64's finaliser), cheap to compute over arrays as well."""
    a, b, c = MIX_FACTORS
    z = (seed * a + value * b + c) & _MASK
    z = ((z ^ (z >> 30)) * b) & _MASK
    z = ((z ^ (z >> 27)) * c) & _MASK
    return z ^ (z >> 31)
