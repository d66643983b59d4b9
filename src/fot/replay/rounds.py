"""Methods on the sample axis over all problems at once: rounds of rollouts that run to their end, as array operations.

An optimisation and nothing else: property tests hold it equal to the state machines of `fot.methods`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fot.methods import Context, Method, Spec
from fot.methods.criteria import CRITERIA, Criterion, criterion_of
from fot.methods.dsc import DSC, DscPlan, Grant
from fot.methods.sampling import FIRST_N, PASS
from fot.methods.sequential import AC, ESC, AcPlan, EscPlan
from fot.replay.fast import CANCELLED, FINISHED, UNUSED, Board, Played

__all__ = ["is_sampling", "play_sampling"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_BLOCK_PROBLEMS = 1024
_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Rule:
    """How a method reads: how many rollouts the next round starts, and from which on votes count in the end."""

    more: Callable[[], Ints]
    since: Callable[[], Ints] | None = None
    limit: Ints | None = None
    """Rollouts of each problem at most; None: all."""


class Read:
    """How far each problem has been read: a row a problem, columns in reading order."""

    def __init__(self, tokens: Ints, finals: Ints, sizes: Ints) -> None:
        self.tokens, self.finals, self.sizes = tokens, finals, sizes
        self.columns = np.arange(tokens.shape[1])
        self.launched = np.zeros(len(tokens), np.int64)
        self.before = np.zeros(len(tokens), np.int64)
        """Those launched before the last round."""
        self.open = np.ones(len(tokens), np.bool_)
        same = (finals[:, :, None] == finals[:, None, :]) & (finals >= 0)[:, :, None]
        self._same = same
        self._leads = (finals >= 0) & ~np.tril(same, -1).any(axis=2)  # the first rollout with its answer

    def counts(self, which: Bools) -> Ints:
        """How often each answer was read, most first, padded with zeros; of the problems of a mask."""
        seen = self.columns < self.launched[which][:, None]
        counts = (self._same[which] & seen[:, None, :]).sum(axis=2)
        return -np.sort(-np.where(self._leads[which] & seen, counts, 0), axis=1)

    def is_met(self, criterion: Criterion) -> Bools:
        """Does the vote of each open problem satisfy a criterion? It is asked once for each distinct count."""
        met = np.zeros(len(self.tokens), np.bool_)
        kinds, where = np.unique(self.counts(self.open), axis=0, return_inverse=True)
        answers = [criterion.is_met(tuple(count for count in kind if count)) for kind in kinds.tolist()]
        met[self.open] = np.array(answers, np.bool_)[where.reshape(-1)]
        return met

    def run(self, rule: Rule) -> Ints:
        """Launch round after round; when each rollout started (those that did not: when all was over)."""
        limit = self.sizes if rule.limit is None else rule.limit
        clock = np.zeros(len(self.tokens), np.int64)
        starts = np.zeros(self.tokens.shape, np.int64)
        while self.open.any():
            count = np.where(self.open, np.minimum(rule.more(), limit - self.launched), 0)
            self.open &= count > 0
            count = np.where(self.open, count, 0)
            new = (self.columns >= self.launched[:, None]) & (self.columns < (self.launched + count)[:, None])
            starts = np.where(new, clock[:, None], starts)
            clock = clock + np.where(new, self.tokens, 0).max(axis=1, initial=0)
            self.before = np.where(self.open, self.launched, self.before)
            self.launched = self.launched + count
        return np.where(self.columns < self.launched[:, None], starts, clock[:, None])


def _only(read: Read, count: int) -> Rule:
    return Rule(lambda: np.where(read.launched == 0, count, 0))


def _ac(plan: AcPlan, read: Read, contexts: Sequence[Context]) -> Rule:
    criterion = criterion_of(plan.criterion, plan.threshold)
    window = 1 if plan.mode == "cancel" else plan.window
    return Rule(lambda: np.where(read.launched == 0, window, np.where(read.is_met(criterion), 0, window)))


def _esc(plan: EscPlan, read: Read, contexts: Sequence[Context]) -> Rule:
    window = np.minimum(plan.window, read.sizes)

    def unanimous() -> Bools:
        """Did the last window agree, or stay silent?"""
        last = (read.columns >= read.before[:, None]) & (read.columns < read.launched[:, None])
        voted = last & (read.finals >= 0)
        low = np.where(voted, read.finals, _MOST).min(axis=1, initial=_MOST)
        high = np.where(voted, read.finals, -1).max(axis=1, initial=-1)
        votes = voted.sum(axis=1)
        agree = (votes == window) & (low == high)
        silent = (votes == 0) & plan.failures
        is_whole = (read.launched > 0) & (read.launched % np.maximum(window, 1) == 0)
        return np.asarray(is_whole & (agree | silent))

    return Rule(
        more=lambda: np.where(unanimous(), 0, window),
        since=lambda: np.where(unanimous(), read.before, 0),
        limit=read.sizes if plan.remainder else read.sizes - read.sizes % np.maximum(window, 1),
    )


def _dsc(plan: DscPlan, read: Read, contexts: Sequence[Context]) -> Rule:
    grants = [one.brief if isinstance(one.brief, Grant) else Grant(plan.window, plan.window) for one in contexts]
    first = np.array([grant.first for grant in grants], np.int64)
    judged = np.array([grant.judged for grant in grants], np.int64)
    beta = Criterion("beta", CRITERIA["beta"].measure, plan.threshold)

    def more() -> Ints:
        further = np.maximum(first - read.launched, plan.window)
        later = np.where((judged == 0) | read.is_met(beta), 0, further)
        return np.where(read.launched == 0, np.where(judged > 0, judged, first), later)

    return Rule(more)


_RULES: Mapping[Method, Callable[[Any, Read, Sequence[Context]], Rule]] = {
    PASS: lambda plan, read, contexts: _only(read, 1),
    FIRST_N: lambda plan, read, contexts: _only(read, plan.n),
    AC: _ac,
    ESC: _esc,
    DSC: _dsc,
}


def is_sampling(spec: Spec) -> bool:
    """Is this one of the methods that are played here?"""
    return len(spec.parts) == 1 and spec.parts[0][0] in _RULES


def play_sampling(board: Board, spec: Spec, contexts: Sequence[Context]) -> Played:
    """Run one draw on every problem of a board, a block of problems at a time."""
    firsts = range(0, max(len(contexts), 1), _BLOCK_PROBLEMS)
    return Played.joined([_play(board, spec, contexts, slice(at, at + _BLOCK_PROBLEMS)) for at in firsts])


def _play(board: Board, spec: Spec, contexts: Sequence[Context], block: slice) -> Played:
    method, plan = spec.parts[0]
    tokens, sizes = board.tokens[block], board.present[block].sum(axis=1)
    is_cancelling = getattr(plan, "mode", None) == "cancel"
    orders = _by_end(tokens, sizes) if is_cancelling else _orders(spec, contexts[block], tokens.shape[1])
    read = Read(np.take_along_axis(tokens, orders, 1), np.take_along_axis(board.final[block], orders, 1), sizes)
    rule = _RULES[method](plan, read, contexts[block])
    starts = read.run(rule)
    is_read = read.columns < read.launched[:, None]
    since = 0 if rule.since is None else rule.since()[:, None]
    back = np.argsort(orders, axis=1)
    votes = np.take_along_axis(np.where(is_read & (read.columns >= since), read.finals, -1), back, 1)
    if is_cancelling:  # all started at once, each was read as it ended, and what still ran then was stopped
        end = np.take_along_axis(read.tokens, np.maximum(read.launched - 1, 0)[:, None], 1)
        fates = np.take_along_axis(np.where(is_read, FINISHED, CANCELLED), back, 1)
        return Played.of(np.minimum(tokens, end), fates, votes, np.broadcast_to(read.columns, tokens.shape))
    stops = np.take_along_axis(np.where(is_read, read.tokens, 0), back, 1)
    fates = np.take_along_axis(np.where(is_read, FINISHED, UNUSED), back, 1)
    return Played.of(stops, fates, votes, back, np.take_along_axis(starts, back, 1))


def _by_end(tokens: Ints, sizes: Ints) -> Ints:
    """Rollouts in the order in which they end when all start at once; padding behind."""
    absent = np.arange(tokens.shape[1]) >= sizes[:, None]
    return np.argsort(np.where(absent, _MOST, tokens), axis=1, kind="stable")


def _orders(spec: Spec, contexts: Sequence[Context], width: int) -> Ints:
    """The reading order of each problem's rollouts; what is padding stays behind."""
    orders = np.tile(np.arange(width), (len(contexts), 1))
    for at, context in enumerate(contexts):
        order = spec.order(context)
        if order is not None:
            orders[at, : len(order)] = order
    return orders
