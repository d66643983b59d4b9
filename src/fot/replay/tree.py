"""Many funnels over the same rollouts at once.

What configurations share is computed once: prefixes, commitments and the order of densities at each checkpoint, and
the fate of every rollout up to a checkpoint for all schedules that begin alike. Keep ratios and kernel sizes are an
axis of the arrays. Results are those of `fot.replay.fast.play`, configuration by configuration, and tests compare them.

Problems are taken in blocks, so memory is bounded whatever the pool; a block that is done can be kept as a piece, and
is not computed again.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import fot.core.commit
import fot.pools.scan
from fot.core.markers import PAPER_KERNEL
from fot.pools.index import Index, index_of
from fot.pools.pieces import Pieces, name_of
from fot.pools.read import Part
from fot.pools.recipe import code_digest
from fot.pools.shard import Shard
from fot.replay import fast
from fot.replay.fast import Board
from fot.replay.grid import Configuration
from fot.replay.sheet import Sheet

__all__ = ["Cells", "sweep_share", "sweep_sheet"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MINIMUM = 2
_BLOCK_CELLS = 3_000_000  # of the largest array: variants by problems by rollouts
_BLOCK_PROBLEMS = 128  # small enough to be shared out among many workers
_ORDER_END = 1 << 14  # survivors vote after every checkpoint; columns and stages stay far below


@dataclass(frozen=True, slots=True)
class Cells:
    """What each configuration (row) did with each problem (column)."""

    winners: NDArray[np.int32]
    """Number of the winning answer in the sheet's index, -1 for none."""
    attention: Floats
    """Σ tokens² charged."""
    tokens: Ints
    latency: Ints
    """Tokens of the rollout that was stopped last."""
    votes: NDArray[np.int16]

    @classmethod
    def joined(cls, blocks: Sequence[Cells]) -> Cells:
        """Blocks of problems side by side."""
        return cls(*(np.concatenate([getattr(block, name) for block in blocks], axis=1) for name in cls.__slots__))


def sweep_sheet(
    sheet: Sheet,
    configurations: Sequence[Configuration],
    *,
    pieces: Pieces | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Cells:
    """Run all configurations on a sheet's problems, in order; `progress` is told the problems done.

    With `pieces`, blocks are kept there: an interrupted sweep goes on where it stopped, and one that was shared out is
    joined.
    """
    index = index_of(sheet.pool, PAPER_KERNEL, sheet.detector)
    blocks: list[Cells] = []
    done = 0
    for parts in _blocks(sheet.parts, configurations):
        cells = _found(pieces, sheet, parts, configurations)
        blocks.append(_made(pieces, sheet, index, parts, configurations) if cells is None else cells)
        done += len(parts)
        progress(done)
    if not blocks:
        return _play(index, [], configurations)
    return Cells.joined(blocks)


def sweep_share(
    sheet: Sheet,
    configurations: Sequence[Configuration],
    pieces: Pieces,
    shard: Shard,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Leave the shard's blocks as pieces; how many were made now. `progress` is told the problems gone through."""
    index = index_of(sheet.pool, PAPER_KERNEL, sheet.detector)
    made = done = 0
    for number, parts in enumerate(_blocks(sheet.parts, configurations)):
        if shard.owns(number) and _found(pieces, sheet, parts, configurations) is None:
            _made(pieces, sheet, index, parts, configurations)
            made += 1
        done += len(parts)
        progress(done)
    return made


def _blocks(parts: Sequence[Part], configurations: Sequence[Configuration]) -> Iterator[Sequence[Part]]:
    """Problems, few enough at a time that arrays over all variants stay small."""
    variants = len({(one.keep, one.kernel) for one in configurations})
    width = max((len(part.rows) for part in parts), default=1)
    size = max(1, min(_BLOCK_PROBLEMS, _BLOCK_CELLS // (variants * width)))
    for first in range(0, len(parts), size):
        yield parts[first : first + size]


def _found(
    pieces: Pieces | None, sheet: Sheet, parts: Sequence[Part], configurations: Sequence[Configuration]
) -> Cells | None:
    piece = pieces.load(_name(sheet, parts, configurations)) if pieces else None
    if piece is None:
        return None
    with np.load(io.BytesIO(piece), allow_pickle=False) as saved:
        return Cells(**{name: saved[name] for name in Cells.__slots__})


def _made(
    pieces: Pieces | None, sheet: Sheet, index: Index, parts: Sequence[Part], configurations: Sequence[Configuration]
) -> Cells:
    cells = _play(index, parts, configurations)
    if pieces:
        out = io.BytesIO()
        np.savez(out, **{name: getattr(cells, name) for name in Cells.__slots__})
        pieces.keep(_name(sheet, parts, configurations), out.getvalue())
    return cells


def _name(sheet: Sheet, parts: Sequence[Part], configurations: Sequence[Configuration]) -> str:
    made_by = code_digest(sys.modules[__name__], fast, fot.core.commit, fot.pools.scan)
    said = (sheet.pool.manifest.sha256, sheet.detector, PAPER_KERNEL.digest, made_by, tuple(configurations))
    return name_of("sweep", said, *(part.rows.tobytes() for part in parts))


@dataclass(slots=True)
class _Node:
    """A checkpoint in the tree of schedules; `ends` are the schedules whose last checkpoint it is."""

    checkpoint: int = 0
    children: dict[int, _Node] = field(default_factory=dict)
    ends: bool = False


def _tree(schedules: Sequence[tuple[int, ...]]) -> _Node:
    root = _Node()
    for schedule in schedules:
        node = root
        for checkpoint in schedule:
            node = node.children.setdefault(checkpoint, _Node(checkpoint))
        node.ends = True
    return root


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """What all configurations share at one checkpoint."""

    tokens: int
    answers: NDArray[np.int16]
    """Per problem and rollout: the problem's own number of the answer that the prefix commits to, -1 for none."""
    order: NDArray[np.int16]
    """Per variant: rollouts of each problem by rising density."""
    places: NDArray[np.int16]
    """Per variant: where each rollout stands in that order."""


@dataclass(frozen=True, slots=True)
class _State:
    """Where all variants stand after some checkpoints; axes are variants, problems, rollouts."""

    active: Bools
    stops: NDArray[np.int32]
    votes: NDArray[np.int16]
    order: NDArray[np.int16]


def _play(index: Index, parts: Sequence[Part], configurations: Sequence[Configuration]) -> Cells:
    desk = _Desk(index, parts, configurations)
    results = dict(desk.results())
    rows = [results[one.checkpoints][desk.variant(one)] for one in configurations]
    return Cells(
        winners=_stack([row[0] for row in rows], np.int32, len(parts)),
        attention=_stack([row[1] for row in rows], np.float64, len(parts)),
        tokens=_stack([row[2] for row in rows], np.int64, len(parts)),
        latency=_stack([row[3] for row in rows], np.int64, len(parts)),
        votes=_stack([row[4] for row in rows], np.int16, len(parts)),
    )


def _stack(rows: Sequence[NDArray[np.float64]], kind: type, width: int) -> NDArray:  # type: ignore[type-arg]
    return np.array(rows, kind).reshape(len(rows), width)


class _Desk:
    """One block of problems with what its configurations share."""

    def __init__(self, index: Index, parts: Sequence[Part], configurations: Sequence[Configuration]) -> None:
        self._index = index
        self._board = Board(index, [part.rows for part in parts])
        self._variants = list(dict.fromkeys((one.keep, one.kernel) for one in configurations))
        self._schedules = list(dict.fromkeys(one.checkpoints for one in configurations))
        self._keeps = np.array([keep for keep, _ in self._variants])
        self._columns = np.arange(self._board.rows.shape[1], dtype=np.int16)
        marks = sorted({mark for schedule in self._schedules for mark in schedule})
        committed = [self._committed(mark) for mark in marks]
        local, self._answers = _numbered([*committed, self._board.final])
        self._final = local[-1]
        self._checkpoints = {
            mark: _Checkpoint(mark, answers, *self._ranked(mark)) for mark, answers in zip(marks, local, strict=False)
        }

    def variant(self, configuration: Configuration) -> int:
        """Where a configuration's keep ratio and kernel stand on the axis of variants."""
        return self._variants.index((configuration.keep, configuration.kernel))

    def results(self) -> Iterator[tuple[tuple[int, ...], list[tuple[NDArray[np.float64], ...]]]]:
        """For each schedule, each variant's (winners, attention, tokens, latency, votes) by problem."""
        shape = (len(self._variants), *self._board.rows.shape)
        start = _State(
            active=np.broadcast_to(self._board.present, shape),
            stops=np.broadcast_to(self._board.tokens.astype(np.int32), shape),
            votes=np.full(shape, -1, np.int16),
            order=np.zeros(shape, np.int16),
        )
        yield from self._walk(_tree(self._schedules), start, ())

    def _walk(
        self, node: _Node, state: _State, path: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], list[tuple[NDArray[np.float64], ...]]]]:
        if node.ends:
            yield path, self._finished(state)
        for mark, child in node.children.items():
            yield from self._walk(child, self._decided(state, self._checkpoints[mark], len(path)), (*path, mark))

    def _decided(self, state: _State, at: _Checkpoint, stage: int) -> _State:
        """One checkpoint: early voting, then pruning, as in `fot.replay.fast.play`."""
        open_ = state.active.sum(axis=2) > MINIMUM
        banked = state.active & open_[:, :, None] & (at.answers >= 0)
        active = state.active & ~banked
        running = active.sum(axis=2)
        ranked = open_ & (running > MINIMUM)
        keep = np.maximum(MINIMUM, np.floor(running * self._keeps[:, None]).astype(np.int64))
        in_order = np.take_along_axis(active, at.order, axis=2)
        dropped = in_order & (np.cumsum(in_order, axis=2, dtype=np.int16) > keep[:, :, None]) & ranked[:, :, None]
        pruned = np.take_along_axis(dropped, at.places, axis=2)
        place = (stage * len(self._columns) + self._columns).astype(np.int16)
        return _State(
            active=active & ~pruned,
            stops=np.where(banked | pruned, np.minimum(state.stops, at.tokens), state.stops),
            votes=np.where(banked, at.answers, state.votes),
            order=np.where(banked, place, state.order),
        )

    def _finished(self, state: _State) -> list[tuple[NDArray[np.float64], ...]]:
        votes = np.where(state.active, self._final, state.votes)
        order = np.where(state.active, _ORDER_END + self._columns, state.order)
        stops = state.stops.astype(np.float64)
        columns = (
            self._winners(votes, order),
            (stops * stops).sum(axis=2),
            stops.sum(axis=2),
            stops.max(axis=2, initial=0),
            (votes >= 0).sum(axis=2),
        )
        return list(zip(*columns, strict=True))

    def _winners(self, votes: NDArray[np.int16], order: NDArray[np.int16]) -> Ints:
        """Each problem's plurality by global answer number: most votes, ties to the answer that was inserted first."""
        variants, problems, width = votes.shape
        kinds = self._answers.shape[1]
        counts = np.zeros((variants * problems, kinds + 1), np.int64)  # the last column takes what is no vote
        first = np.full(counts.shape, 2 * _ORDER_END, np.int64)
        rows = np.arange(variants * problems)
        flat_votes, flat_order = votes.reshape(-1, width), order.reshape(-1, width)
        for column in range(width):
            answer = flat_votes[:, column]
            counts[rows, answer] += 1
            first[rows, answer] = np.minimum(first[rows, answer], flat_order[:, column])
        score = counts[:, :kinds] * (4 * _ORDER_END) - first[:, :kinds]
        best = np.argmax(score, axis=1) if kinds else np.zeros(len(rows), np.int64)
        voted = counts[rows, best] > 0 if kinds else np.zeros(len(rows), np.bool_)
        numbers = np.tile(self._answers, (variants, 1))[rows, best] if kinds else best
        return np.where(voted, numbers, -1).reshape(variants, problems)

    def _committed(self, mark: int) -> Ints:
        present, rows = self._board.present, self._board.rows
        answers = np.full(rows.shape, -1, np.int64)
        answers[present] = self._index.committed(rows[present], self._index.cuts(rows[present], mark))
        return answers

    def _ranked(self, mark: int) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """For each variant, the rollouts of every problem by rising density, and each one's place among them."""
        present, rows = self._board.present, self._board.rows
        cuts = self._index.cuts(rows[present], mark)
        counts = np.zeros(len(cuts), np.int64)
        orders: dict[int, NDArray[np.int16]] = {}
        wanted = {kernel for _, kernel in self._variants}
        if wanted == {len(PAPER_KERNEL.markers)}:
            return self._stacked({min(wanted): self._by_density(self._index.marker_counts(rows[present], cuts), cuts)})
        for size in range(1, max(wanted, default=0) + 1):
            counts = counts + self._index.marker_counts(rows[present], cuts, [size - 1])
            if size in wanted:
                orders[size] = self._by_density(counts, cuts)
        return self._stacked(orders)

    def _by_density(self, counts: Ints, cuts: Ints) -> NDArray[np.int16]:
        densities = np.full(self._board.rows.shape, np.inf)
        densities[self._board.present] = 1000.0 * counts / np.maximum(cuts, 1)
        return np.argsort(densities, axis=1, kind="stable").astype(np.int16)

    def _stacked(self, orders: dict[int, NDArray[np.int16]]) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """Each variant's order, and each rollout's place in it."""
        order = np.stack([orders[kernel] for _, kernel in self._variants])
        return order, np.argsort(order, axis=2, kind="stable").astype(np.int16)


def _numbered(layers: Sequence[Ints]) -> tuple[list[NDArray[np.int16]], Ints]:
    """Answers by a number of the problem's own in place of the pool's, and the table that leads back."""
    problems = layers[0].shape[0]
    kinds = [np.unique(np.concatenate([layer[at] for layer in layers])) for at in range(problems)]
    kinds = [one[one >= 0] for one in kinds]
    table = np.full((problems, max((len(one) for one in kinds), default=0)), -1, np.int64)
    local = [np.full(layer.shape, -1, np.int16) for layer in layers]
    for at, own in enumerate(kinds):
        table[at, : len(own)] = own
        for layer, numbered in zip(layers, local, strict=True):
            voted = layer[at] >= 0
            numbered[at, voted] = np.searchsorted(own, layer[at, voted])
    return local, table
