"""The funnel and self-consistency over all problems at once, as array operations on the index.

An optimisation and nothing else: property tests hold it equal to `core.funnel`, rollout by rollout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fot.core.policy import Fate
from fot.core.signals import MIX_FACTORS
from fot.pools.index import Index
from fot.pools.read import Rows

__all__ = ["CANCELLED", "FATES", "FINISHED", "UNUSED", "Board", "Plan", "Played", "play"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_NEVER = 1 << 60  # later than any checkpoint or commitment
FATES = (Fate.FINISHED, Fate.BANKED, Fate.PRUNED, Fate.CANCELLED, Fate.UNUSED)
FINISHED, BANKED, PRUNED, CANCELLED, UNUSED = range(5)


@dataclass(frozen=True, slots=True)
class Plan:
    """A funnel whose signal depends on the prefix alone. No checkpoints: self-consistency."""

    checkpoints: tuple[int, ...] = ()
    keep: float = 1.0
    minimum: int = 2
    early_voting: bool = True
    eager: bool = False
    signal: str = "density"
    markers: tuple[int, ...] | None = None
    """Numbers of the index's markers to count; None: all."""


class Board:
    """The rollouts of many problems as one table: a row a problem, short ones padded."""

    def __init__(self, index: Index, problems: Sequence[Rows]) -> None:
        self.index = index
        width = max((len(rows) for rows in problems), default=0)
        self.rows: Ints = np.full((len(problems), width), -1, np.int64)
        for at, rows in enumerate(problems):
            self.rows[at, : len(rows)] = rows
        self.present: Bools = self.rows >= 0
        self.tokens: Ints = np.where(self.present, index.n_tokens[self.rows], 0)
        self.final: Ints = np.where(self.present, index.final[self.rows], -1)

    @cached_property
    def commitments(self) -> tuple[Ints, Ints]:
        """Tokens at which each rollout is first seen with an answer (-1: never), and that answer's number."""
        tokens = np.full(self.rows.shape, -1, np.int64)
        answers = np.full(self.rows.shape, -1, np.int64)
        rows = self.rows[self.present]
        first = self.index.commit_tokens[rows]
        seen = self.index.committed(rows, self.index.cuts(rows, np.maximum(first, 0)))
        # One that is withdrawn within the token in which it was made is not seen; a later one may be.
        for at in np.flatnonzero((first >= 0) & (seen < 0)).tolist():
            first[at], seen[at] = self._first_seen(int(rows[at]))
        tokens[self.present], answers[self.present] = np.where(seen >= 0, first, -1), seen
        return tokens, answers

    def _first_seen(self, row: int) -> tuple[int, int]:
        ends = np.array([end for end, _ in self.index.commitments(row)], np.int64)
        rows = np.full(len(ends), row)
        tokens = self.index.tokens_reaching(rows, ends)
        answers = self.index.committed(rows, self.index.cuts(rows, tokens))
        standing = np.flatnonzero(answers >= 0)
        return (int(tokens[standing[0]]), int(answers[standing[0]])) if len(standing) else (-1, -1)


@dataclass(frozen=True, slots=True)
class Played:
    """What became of every rollout of a board. `votes` are answer numbers (-1: none), `order` their insertion."""

    stops: Ints
    fates: NDArray[np.int8]
    votes: Ints
    order: Ints
    winners: Ints
    starts: Ints
    """When each was launched, or when all was over for one that was not."""

    @classmethod
    def of(cls, stops: Ints, fates: NDArray[Any], votes: Ints, order: Ints, starts: Ints | None = None) -> Played:
        """With the winners that follow from the votes; without `starts` all began at once."""
        since = np.zeros_like(stops) if starts is None else starts
        return cls(stops, fates.astype(np.int8), votes, order, _plurality(votes, order), since)

    @classmethod
    def joined(cls, blocks: Sequence[Played]) -> Played:
        """Blocks of problems one after the other."""
        return cls(*(np.concatenate([getattr(block, name) for block in blocks]) for name in cls.__slots__))

    def ballots(self, problem: int) -> list[tuple[int, int]]:
        """One problem's (rollout, answer number) in order of insertion."""
        voters = np.flatnonzero(self.votes[problem] >= 0)
        voters = voters[np.argsort(self.order[problem, voters], kind="stable")]
        return [(int(rollout), int(self.votes[problem, rollout])) for rollout in voters]


def play(board: Board, plan: Plan, seeds: Sequence[int] = ()) -> Played:
    """Run one funnel on every problem; `seeds` holds one number a problem where the signal is random."""
    state = _State(board)
    for stage, checkpoint in enumerate(plan.checkpoints):
        if plan.eager:
            state.bank_at_once(checkpoint)
        open_ = state.active.sum(axis=1) > plan.minimum
        if not open_.any():
            break
        arrived = state.active & open_[:, None]
        cuts = _cuts(board, arrived, checkpoint)
        if plan.early_voting and not plan.eager:
            state.bank(arrived, cuts, stage, checkpoint)
        ranked = state.active & open_[:, None]
        ranked &= (ranked.sum(axis=1) > plan.minimum)[:, None]
        if ranked.any():
            state.prune(ranked, _signal(board, plan, ranked, cuts, seeds), plan, checkpoint)
    if plan.eager:
        state.bank_at_once(_NEVER)
    return state.finish()


class _State:
    def __init__(self, board: Board) -> None:
        self._board = board
        self.active = board.present.copy()
        self.stops = board.tokens.copy()
        self.fates = np.full(board.rows.shape, FINISHED, np.int8)
        self.votes = np.full(board.rows.shape, -1, np.int64)
        self.order = np.zeros(board.rows.shape, np.int64)
        self._columns = np.arange(board.rows.shape[1])

    def bank_at_once(self, until: int) -> None:
        """Bank what commits up to a number of tokens, each at its own; votes stand by time, then by rollout."""
        tokens, answers = self._board.commitments
        banked = self.active & (tokens >= 0) & (tokens <= until)
        self.votes[banked] = answers[banked]
        self.order[banked] = (tokens * len(self._columns) + self._columns)[banked]
        self._stop(banked, BANKED, tokens)

    def bank(self, arrived: Bools, cuts: Ints, stage: int, checkpoint: int) -> None:
        answers = np.full(arrived.shape, -1, np.int64)
        answers[arrived] = self._board.index.committed(self._board.rows[arrived], cuts[arrived])
        banked = answers >= 0
        self.votes[banked] = answers[banked]
        self.order[banked] = (stage * len(self._columns) + np.broadcast_to(self._columns, banked.shape))[banked]
        self._stop(banked, BANKED, checkpoint)

    def prune(self, ranked: Bools, signal: NDArray[np.float64], plan: Plan, checkpoint: int) -> None:
        count = ranked.sum(axis=1)
        kept = np.maximum(plan.minimum, np.floor(count * plan.keep).astype(np.int64))
        # A stable sort gives ties to the lower id; those that are not ranked come last.
        places = np.argsort(np.argsort(np.where(ranked, signal, np.inf), axis=1, kind="stable"), axis=1)
        self._stop(ranked & (places >= kept[:, None]), PRUNED, checkpoint)

    def _stop(self, which: Bools, fate: int, tokens: int | Ints) -> None:
        self.active &= ~which
        self.fates[which] = fate
        self.stops[which] = np.minimum(self.stops, tokens)[which]

    def finish(self) -> Played:
        self.votes[self.active] = self._board.final[self.active]
        late = np.broadcast_to(_NEVER + self._columns, self.active.shape)
        self.order[self.active] = late[self.active]
        return Played.of(self.stops, self.fates, self.votes, self.order)


def _cuts(board: Board, which: Bools, checkpoint: int) -> Ints:
    cuts = np.zeros(which.shape, np.int64)
    cuts[which] = board.index.cuts(board.rows[which], checkpoint)
    return cuts


def _signal(board: Board, plan: Plan, which: Bools, cuts: Ints, seeds: Sequence[int]) -> NDArray[np.float64]:
    values = np.zeros(which.shape)
    match plan.signal:
        case "density":
            values[which] = board.index.densities(board.rows[which], cuts[which], plan.markers)
        case "length":
            values[which] = board.tokens[which]
        case "random":
            values = _mixed(np.asarray(seeds, np.uint64), which.shape[1])
        case other:
            raise ValueError(f"no vectorised form of the signal {other}")
    return values


def _mixed(seeds: NDArray[np.uint64], rollouts: int) -> NDArray[np.float64]:
    """`core.signals.mix` of every problem's seed with every rollout's number, between 0 and 1."""
    with np.errstate(over="ignore"):
        a, b, c = (np.uint64(factor) for factor in MIX_FACTORS)
        z = seeds[:, None] * a + np.arange(rollouts, dtype=np.uint64)[None, :] * b + c
        z = (z ^ (z >> np.uint64(30))) * b
        z = (z ^ (z >> np.uint64(27))) * c
        return (z ^ (z >> np.uint64(31))).astype(np.float64) / 2.0**64


def _plurality(votes: Ints, order: Ints) -> Ints:
    """The winner of each row: most votes, ties to the answer inserted first; -1 where nobody voted."""
    problems, width = votes.shape
    if not width:
        return np.full(problems, -1, np.int64)
    ordered = np.argsort(np.where(votes >= 0, order, np.iinfo(np.int64).max), axis=1, kind="stable")
    cast = np.take_along_axis(votes, ordered, axis=1)
    counts = (cast[:, :, None] == cast[:, None, :]).sum(axis=2)
    first = np.argmax(np.where(cast >= 0, counts, -1), axis=1)  # argmax takes the first of equals
    return np.take_along_axis(cast, first[:, None], axis=1)[:, 0]
