"""One worker's share of work that is numbered: every world-th piece, from its rank on.

Pieces are cut by what they hold, never by how many workers there are; so a piece is the same whoever makes it, and
results do not depend on the number of shards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from fot.errors import ConfigError

__all__ = ["WHOLE", "Shard"]


@dataclass(frozen=True, slots=True)
class Shard:
    """Worker `rank` (from 0) of `world`."""

    rank: int
    world: int

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world:
            raise ConfigError(
                f"there is no shard {self.rank} of {self.world}", "Shards are 0/N, 1/N, up to N-1 of N: --shard 0/7."
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `RANK/WORLD`."""
        rank, slash, world = text.partition("/")
        if not (slash and rank.isdecimal() and world.isdecimal()):
            raise ConfigError(f"'{text}' is no shard", "Give RANK/WORLD, the rank counted from 0: --shard 0/7.")
        return cls(int(rank), int(world))

    def owns(self, piece: int) -> bool:
        """Whether this worker makes the piece with this number."""
        return piece % self.world == self.rank


WHOLE = Shard(0, 1)
"""The only worker."""
