"""Outcomes of the state machine in blocks of problems: held encoded, kept as pieces, and never made twice.

A block depends on its problems' rollouts, the method with its seed and draw, and the code; so any worker may make it.
"""

from __future__ import annotations

import hashlib
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple, overload

import msgspec

from fot.core.ledger import Bill, bill
from fot.methods import Context, Spec
from fot.pools.pieces import Pieces, name_of
from fot.pools.read import Part
from fot.pools.recipe import code_digest
from fot.replay.simulator import Outcome

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["BLOCK_PROBLEMS", "Block", "Outcomes", "Told", "blocks", "found", "name", "packed"]

BLOCK_PROBLEMS = 64

_PACKAGES = ("fot.core", "fot.grading", "fot.methods", "fot.pools", "fot.replay")


class Told(NamedTuple):
    """What figures need of one problem's outcome."""

    winner: str | None
    bill: Bill
    votes: float


class Block(msgspec.Struct, frozen=True):
    """Some problems' outcomes, encoded, and what figures need of them."""

    told: list[Told]
    outcomes: bytes


class Outcomes(Sequence[Outcome]):
    """The outcomes of blocks, decoded when they are looked at: some bytes a rollout in place of some hundred."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._firsts = [0]
        for block in blocks:
            self._firsts.append(self._firsts[-1] + len(block.told))
        self._decoded = lru_cache(maxsize=1)(self._decode)

    def __len__(self) -> int:
        return self._firsts[-1]

    @overload
    def __getitem__(self, at: int) -> Outcome: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Outcome]: ...
    def __getitem__(self, at: int | slice) -> Outcome | Sequence[Outcome]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        which = bisect_right(self._firsts, at) - 1
        return self._decoded(which)[at - self._firsts[which]]

    def _decode(self, which: int) -> list[Outcome]:
        return msgspec.msgpack.decode(self._blocks[which].outcomes, type=list[Outcome])


def blocks(parts: Sequence[Part]) -> Iterator[range]:
    """Numbers of the problems of each block."""
    for first in range(0, len(parts), BLOCK_PROBLEMS):
        yield range(first, min(first + BLOCK_PROBLEMS, len(parts)))


def packed(outcomes: Sequence[Outcome]) -> Block:
    """Encode a block."""
    told = [
        Told(one.verdict.answer, bill(one.charges, one.probes), sum(one.verdict.votes.values())) for one in outcomes
    ]
    return Block(told, msgspec.msgpack.encode(outcomes))


def found(pieces: Pieces | None, called: str, make: Callable[[], Block]) -> Block:
    """The block of this name, made and kept when it is not there."""
    piece = pieces.load(called) if pieces else None
    if piece is not None:
        return msgspec.msgpack.decode(piece, type=Block)
    block = make()
    if pieces:
        pieces.keep(called, msgspec.msgpack.encode(block))
    return block


def name(about: tuple[object, ...], spec: Spec, contexts: Sequence[Context], parts: Sequence[Part]) -> str:
    """What a block is called; `about` says what else its outcomes depend on."""
    own = code_digest(*dict.fromkeys(sys.modules[type(plan).__module__] for _, plan in spec.parts))
    depends = (about, _code(), own, spec.text, spec.kernel.digest, tuple(contexts))
    return name_of("outcomes", depends, *(part.rows.tobytes() for part in parts))


@cache
def _code() -> str:
    """Identifies the source of all that takes part in a replay."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for source in sorted(files(package).iterdir(), key=_name):
            if source.name.endswith(".py"):
                digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _name(source: Traversable) -> str:
    return source.name
