"""One pool's chosen problems, ready to be run again and again: their index, and each method's fastest exact path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import msgspec
import numpy as np

from fot.core.ledger import Bill, Charge
from fot.core.markers import PAPER_KERNEL, Kernel
from fot.core.policy import Need, Policy
from fot.core.vote import Ballot, plurality
from fot.errors import ConfigError
from fot.grading.keys import Keys
from fot.methods import Context, Recorded, Spec
from fot.methods.funnel import FunnelPlan, problem_seed
from fot.methods.sampling import SC
from fot.pools.index import Index, index_of
from fot.pools.pieces import Pieces
from fot.pools.read import Part, Pool, Rows
from fot.replay import kept
from fot.replay.fast import FATES, Board, Plan, Played, play
from fot.replay.held import Held
from fot.replay.indexed import IndexedRecording
from fot.replay.merging import merged
from fot.replay.ranking import Judged, Ranking
from fot.replay.rounds import is_sampling, play_sampling
from fot.replay.simulator import Outcome, simulate

__all__ = ["Batch", "Sheet"]

_FIELDS = {Need.LOGPROBS: ("confidences", "token confidences"), Need.PROBES: ("probes", "answers to probes")}
"""Needs that rows may answer: the field of the row, and what it holds."""
_VECTORISED = ("density", "length", "random")


@dataclass(frozen=True, slots=True)
class Batch:
    """One draw of one method over all problems of a sheet."""

    winners: Sequence[str | None]
    bills: Sequence[Bill]
    votes: Sequence[float]
    """Votes cast in each problem."""
    outcome: Callable[[int], Outcome]
    """One problem's outcome, rollouts in order of `rollout_id`."""
    notes: Sequence[str] = ()
    """What a reader of the results must know."""


class Sheet:
    """The rollouts of a selection from one pool, seen through one commitment detector."""

    def __init__(
        self,
        pool: Pool,
        parts: Sequence[Part],
        detector: str,
        keys: Keys | None = None,
        pieces: Pieces | None = None,
        ranking: Ranking | None = None,
    ) -> None:
        """`keys` say which answers are one vote (by default each vote key is), `pieces` where outcomes are kept.

        `ranking` says how hard a model found the problems, and what asking it cost.
        """
        self.pool = pool
        self.pieces = pieces
        self.parts = parts
        self.detector = detector
        self._keys = keys
        self._ranking = ranking or {}
        self._indexes: dict[str, Index] = {}
        self._boards: dict[str, Board] = {}
        self._recordings = Held()
        self._whole = parts

    def only(self, parts: Sequence[Part]) -> Sheet:
        """Some of its problems, seen in the same way; the index and the recordings that are held are shared."""
        other = Sheet(self.pool, parts, self.detector, self._keys, self.pieces, self._ranking)
        other._whole, other._indexes, other._recordings = self._whole, self._indexes, self._recordings
        return other

    def run(self, spec: Spec, seed: int = 0, draw: int = 0) -> Batch:
        """Run one draw of a method on every problem."""
        self._refuse_what_is_missing(spec)
        plan = _vectorised(spec)
        if plan is not None:
            return self._play(spec, plan, seed, draw)
        if is_sampling(spec):
            contexts, notes = self._contexts(spec, seed, draw)
            if not any(context.charges for context in contexts):  # which only the state machine's bill has
                board = self._board(PAPER_KERNEL)
                return self._batch(play_sampling(board, spec, contexts), board.index.answers, notes)
        return self.simulate_plainly(spec, seed, draw)

    def _refuse_what_is_missing(self, spec: Spec) -> None:
        missing = [what for need, (field, what) in _FIELDS.items() if need in spec.needs and not self._has(field)]
        if missing:
            raise ConfigError(
                f"{spec.name} needs {' and '.join(missing)}, which this pool does not hold", "Leave the method out."
            )

    def context(self, problem: int, seed: int, draw: int) -> Context:
        """What a policy for this problem is built for."""
        part = self.parts[problem]
        return Context(k=len(part.rows), problem="/".join(part.problem.key), seed=seed, draw=draw)

    def _play(self, spec: Spec, plan: Plan, seed: int, draw: int) -> Batch:
        kernel, markers = _within(spec.kernel)
        board = self._board(kernel)
        contexts = (self.context(at, seed, draw) for at in range(len(self.parts)))
        seeds = [problem_seed(context) for context in contexts] if plan.signal == "random" else []
        return self._batch(play(board, replace(plan, markers=markers), seeds), board.index.answers)

    def _batch(self, played: Played, answers: Sequence[str], notes: Sequence[str] = ()) -> Batch:
        return Batch(
            winners=[answers[winner] if winner >= 0 else None for winner in played.winners],
            bills=_bills(played),
            votes=(played.votes >= 0).sum(axis=1).tolist(),
            outcome=partial(self._played_outcome, played, answers),
            notes=notes,
        )

    def _played_outcome(self, played: Played, answers: Sequence[str], problem: int) -> Outcome:
        size = len(self.parts[problem].rows)
        ballots = [Ballot(rollout, answers[number]) for rollout, number in played.ballots(problem)]
        return Outcome(
            verdict=plurality(ballots),
            charges=tuple(map(Charge, played.stops[problem, :size].tolist(), played.starts[problem, :size].tolist())),
            fates=tuple(FATES[fate] for fate in played.fates[problem, :size]),
        )

    def simulate_plainly(self, spec: Spec, seed: int = 0, draw: int = 0) -> Batch:
        """Run one draw through the state machine itself, whether or not there is a faster path."""
        contexts, notes = self._contexts(spec, seed, draw)
        blocks = [self._block(spec, block, contexts) for block in kept.blocks(self.parts)]
        told = [one for block in blocks for one in block.told]
        return Batch(
            winners=[one.winner for one in told],
            bills=[one.bill for one in told],
            votes=[one.votes for one in told],
            outcome=kept.Outcomes(blocks).__getitem__,
            notes=notes,
        )

    def share(self, spec: Spec, seed: int, draw: int, is_ours: Callable[[], bool]) -> int:
        """Leave those blocks of one draw as pieces for which `is_ours`, asked once for each, says so; their number.

        A method with a faster path has none: pieces would take longer than its results do.
        """
        self._refuse_what_is_missing(spec)
        if _vectorised(spec) is not None or is_sampling(spec):
            return 0
        contexts, _ = self._contexts(spec, seed, draw)
        ours = [block for block in kept.blocks(self.parts) if is_ours()]
        for block in ours:
            self._block(spec, block, contexts)
        return len(ours)

    def _block(self, spec: Spec, block: range, contexts: Sequence[Context]) -> kept.Block:
        parts, own = self.parts[block.start : block.stop], contexts[block.start : block.stop]
        about = (self.pool.manifest.sha256, self.detector, self._keys.name if self._keys else "exact")
        return kept.found(
            self.pieces,
            kept.name(about, spec, own, parts),
            lambda: kept.packed(
                [
                    self._simulate_one(spec, recording, context)
                    for recording, context in zip(self._recorded(spec.kernel, block), own, strict=True)
                ]
            ),
        )

    def _contexts(self, spec: Spec, seed: int, draw: int) -> tuple[list[Context], Sequence[str]]:
        """A context for each problem, and what preparing them brought to light."""
        contexts = [self.context(at, seed, draw) for at in range(len(self.parts))]
        if Need.DATASET not in spec.needs:
            return contexts, ()
        prepared = spec.prepare([self._as_recorded(spec, at, context) for at, context in enumerate(contexts)])
        if prepared is None:
            return contexts, ()
        charges = prepared.charges or [()] * len(contexts)
        settled = zip(contexts, prepared.briefs, charges, strict=True)
        return [replace(c, brief=brief, charges=tuple(own)) for c, brief, own in settled], prepared.notes

    def _as_recorded(self, spec: Spec, problem: int, context: Context) -> Recorded:
        order = spec.order(context) or range(context.k)
        tokens = self._board(PAPER_KERNEL).tokens[problem]
        judged = self._judged(problem)
        return Recorded(
            context=context,
            answers=[self.finals[problem][rollout] for rollout in order],
            tokens=[int(tokens[rollout]) for rollout in order],
            difficulty=judged.difficulty,
            judging=judged.charges,
        )

    def _judged(self, problem: int) -> Judged:
        """How hard a problem is said to be: by the ranking, or else by its first row."""
        about = self.parts[problem].problem
        stated = self._difficulties[problem]
        rows = Judged(float(stated) if isinstance(stated, int | float) else None)
        return self._ranking.get((about.benchmark, about.problem_id), rows)

    @cached_property
    def _difficulties(self) -> list[object]:
        """What the first row of each problem states, if it does."""
        firsts = np.array([part.rows[0] for part in self.parts], np.int64)
        return [extra.get("difficulty") for extra in self._extras(firsts)]

    def _extras(self, rows: Rows) -> list[Mapping[str, object]]:
        fields = self.pool.column("extra", rows).to_pylist()
        return [msgspec.json.decode(text) if text else {} for text in fields]

    def _has(self, field: str) -> bool:
        """Do the first rows have this field?"""
        return bool(self.parts) and all(field in extra for extra in self._extras(self.parts[0].rows))

    def stages(self, spec: Spec, seed: int = 0, draw: int = 0) -> Iterator[tuple[Policy, IndexedRecording]]:
        """For each problem the policy, and its rollouts in the order in which that reads them; nothing is kept."""
        self._refuse_what_is_missing(spec)
        contexts, _ = self._contexts(spec, seed, draw)
        for recording, context in zip(self._recordings_of(spec.kernel, self.parts), contexts, strict=True):
            order = spec.order(context)
            yield spec.build(context), recording if order is None else recording.reordered(order)

    def _simulate_one(self, spec: Spec, recording: IndexedRecording, context: Context) -> Outcome:
        follow = Need.COMMITMENTS in spec.needs
        order = spec.order(context)
        if order is None:
            outcome = simulate(spec.build(context), recording, follow_commitments=follow)
            back = range(context.k)
        else:
            outcome = simulate(spec.build(context), recording.reordered(order), follow_commitments=follow)
            back = np.argsort(order).tolist()
        recording.forget()
        return Outcome(
            verdict=outcome.verdict,
            charges=tuple(outcome.charges[at] for at in back),
            fates=tuple(outcome.fates[at] for at in back),
            probes=(*outcome.probes, *context.charges),
        )

    def _index(self, kernel: Kernel) -> Index:
        if kernel.digest not in self._indexes:
            index = index_of(self.pool, kernel, self.detector)
            self._indexes[kernel.digest] = merged(index, self._whole, self._keys) if self._keys else index
        return self._indexes[kernel.digest]

    def _board(self, kernel: Kernel) -> Board:
        if kernel.digest not in self._boards:
            self._boards[kernel.digest] = Board(self._index(kernel), [part.rows for part in self.parts])
        return self._boards[kernel.digest]

    def _recorded(self, kernel: Kernel, block: range) -> Iterator[IndexedRecording]:
        """The recordings of a block, held for the next draw where there is room."""
        within, markers = _within(kernel)
        for part in self.parts[block.start : block.stop]:
            key = (within.digest, markers, part.rows.tobytes())
            yield self._recordings.of(key, len(part.rows), lambda: self._recording(within, markers, part))  # noqa: B023

    def _recordings_of(self, kernel: Kernel, parts: Sequence[Part]) -> Iterator[IndexedRecording]:
        within, markers = _within(kernel)
        return (self._recording(within, markers, part) for part in parts)

    def _recording(self, kernel: Kernel, markers: tuple[int, ...] | None, part: Part) -> IndexedRecording:
        texts, extras = partial(self.pool.texts, part.rows), partial(self._extras, part.rows)
        return IndexedRecording.of(self._index(kernel), part.rows, markers, texts, extras)

    @property
    def written(self) -> Mapping[str, str]:
        """For each vote key one text that has it, for a grader."""
        return self._index(PAPER_KERNEL).written

    @cached_property
    def finals(self) -> list[list[str | None]]:
        """Every rollout's final answer, by problem."""
        board = self._board(PAPER_KERNEL)
        answers = board.index.answers
        return [
            [answers[number] if number >= 0 else None for number in row[: len(part.rows)].tolist()]
            for row, part in zip(board.final, self.parts, strict=True)
        ]


def _within(kernel: Kernel) -> tuple[Kernel, tuple[int, ...] | None]:
    """A kernel as markers of the paper's, where it is one of its subsets: they share an index."""
    if kernel.digest == PAPER_KERNEL.digest:
        return PAPER_KERNEL, None
    if set(kernel.markers) <= set(PAPER_KERNEL.markers):
        return PAPER_KERNEL, tuple(PAPER_KERNEL.markers.index(marker) for marker in kernel.markers)
    return kernel, None


def _vectorised(spec: Spec) -> Plan | None:
    """The vectorised form of a method, if it has one."""
    if len(spec.parts) != 1:
        return None
    method, plan = spec.parts[0]
    if method is SC:
        return Plan()
    if not isinstance(plan, FunnelPlan) or plan.signal not in _VECTORISED:
        return None
    return Plan(plan.checkpoints, plan.keep, plan.minimum, plan.early_voting, plan.eager, plan.signal)


def _bills(played: Played) -> list[Bill]:
    stops = played.stops.astype(np.float64)
    sums = zip(
        (stops * stops).sum(axis=1).tolist(),
        stops.sum(axis=1).tolist(),
        (played.starts + stops).max(axis=1, initial=0).tolist(),
        strict=True,
    )
    return [Bill(attention, tokens, latency) for attention, tokens, latency in sums]
