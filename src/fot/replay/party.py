"""One problem's rollouts on a modelled engine: the live run, with recorded tokens and counted time.

The policy is the same object, and what brings observations to it is the live run's own token clock: who waits for whom,
what is foreseen, and what runs on past its checkpoint is as it would be on a server of that speed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fot.core.clock import Clock
from fot.core.ledger import Charge
from fot.core.policy import Fate, Policy, Prefix
from fot.core.vote import Verdict, plurality
from fot.replay.simulator import Recording
from fot.replay.station import Station, Work

__all__ = ["Party", "Stage", "Way"]

Way = Literal["stream", "pause", "barrier"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One problem: its rollouts as they were recorded, and the policy that is to run on them."""

    policy: Policy
    recording: Recording
    follow_commitments: bool = False
    prompt_tokens: int = 0


class _Text:
    """A rollout that grows as its requests get tokens."""

    def __init__(self, rollout: int, stage: Stage) -> None:
        self.is_whole = False
        self.before = 0
        """Tokens of the requests that are over."""
        self.work: Work | None = None
        self._rollout = rollout
        self._recording = stage.recording
        self._steps = stage.recording.commitment_tokens(rollout) if stage.follow_commitments else ()
        self._told = 0

    @property
    def tokens(self) -> int:
        return self.before + (self.work.tokens if self.work is not None else 0)

    def prefix(self, rollout: int, tokens: int) -> Prefix:
        return self._recording.prefix(rollout, min(tokens, self.tokens))

    def new_commitments(self) -> Sequence[int]:
        told, self._told = self._told, bisect_right(self._steps, self.tokens)
        return self._steps[told : self._told]

    def next_commitment(self) -> int | None:
        """Where the next one comes that was not told."""
        return self._steps[self._told] if self._told < len(self._steps) else None


@dataclass(slots=True)
class _Lane:
    rollout: int
    text: _Text
    is_stopped: bool = False
    generated: int = 0
    """Tokens of all its requests."""


@dataclass(slots=True)
class _Probing:
    number: int
    answer: str


@dataclass(slots=True)
class _Open:
    """Who is in the engine on this problem's behalf."""

    lanes: dict[Work, _Lane] = field(default_factory=dict)
    probes: dict[Work, _Probing] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.lanes or self.probes)


class Party:
    """Runs one problem; `finished` is called when nothing of it is in the engine any more."""

    def __init__(self, stage: Stage, station: Station, way: Way, finished: Callable[[Party], None]) -> None:
        self.began = self.finished_at = station.now
        self.probe_tokens = 0
        self._stage = stage
        self._station = station
        self._way = way
        self._finished = finished
        self._texts = 0
        self._lanes: list[_Lane] = []
        self._open = _Open()
        self._primer: _Lane | None = None
        self._behind: list[_Lane] = []  # start when the primer's first token has come
        self._is_primed = self._is_closing = self._is_done = False
        self._clock: Clock[_Text] = Clock(stage.policy, len(stage.recording), self, self._make_text)

    def start(self) -> None:
        """Let the policy begin."""
        self._clock.begin()
        self._after()

    # --- what came of it

    @property
    def verdict(self) -> Verdict:
        """The vote."""
        return plurality(self._stage.policy.ballots())

    def settle(self) -> list[tuple[Charge, Fate]]:
        """Every rollout's bill and fate."""
        return self._clock.settle()

    @property
    def generated(self) -> int:
        """Tokens generated, probes left aside."""
        return sum(lane.generated for lane in self._lanes)

    # --- what the clock wants (clock.Driver)

    def _make_text(self) -> _Text:
        self._texts += 1
        return _Text(self._texts - 1, self._stage)

    def launch(self, rollouts: Sequence[int]) -> None:
        fresh = [_Lane(rollout, self._clock.entrants[rollout].text) for rollout in rollouts]
        self._lanes += fresh
        if not self._is_primed and len(fresh) > 1:
            self._is_primed = True
            self._primer, *self._behind = fresh
            fresh = [self._primer]
        for lane in fresh:
            self._ask(lane)

    def stop(self, rollout: int) -> None:
        lane = self._lanes[rollout]
        if lane.is_stopped:
            return
        lane.is_stopped = True
        work = lane.text.work
        if work is not None and work in self._open.lanes:
            work.look = None
            self._station.stop(work)
        if lane is self._primer:
            self._start_others()

    def decide(self, rollout: int, fate: Fate, prefix: Prefix) -> None: ...

    def release(self, rollout: int) -> None:
        lane = self._lanes[rollout]
        if lane.is_stopped:
            return
        if self._way == "pause":
            self._ask(lane)
        elif lane.text.work is not None:
            self._station.release(lane.text.work, self._target(lane))

    def probe(self, number: int, tokens: int, prefix: Prefix) -> None:
        answer, cost = self._stage.recording.probe(prefix.rollout, prefix.tokens)
        self.probe_tokens += cost
        positions = self._stage.prompt_tokens + prefix.tokens
        computed = positions * (1 - self._station.timing.resumed)
        work = Work(self, prefix.rollout, prompt=positions, computed=computed, until=cost)
        self._open.probes[work] = _Probing(number, answer)
        self._station.submit(work)

    # --- what the station tells (station.Owner)

    def reached(self, work: Work) -> None:
        lane = self._open.lanes.get(work)
        if lane is not None and not lane.is_stopped:
            self._began_generating(lane)
            self._clock.grew(lane.rollout)
        self._after()

    def held(self, work: Work) -> None:
        lane = self._open.lanes.get(work)
        if lane is not None and not lane.is_stopped:
            self._began_generating(lane)
            self._clock.held(lane.rollout)
        self._after()

    def ended(self, work: Work) -> None:
        probing = self._open.probes.get(work)
        if probing is not None:
            self._clock.probed(probing.number, probing.answer)
            return
        lane = self._open.lanes[work]
        if lane.is_stopped:
            return
        self._began_generating(lane)
        if lane.text.tokens < self._stage.recording.tokens(lane.rollout):
            self._clock.held(lane.rollout)  # paused: its request went so far
        else:
            lane.text.is_whole = True
            self._clock.ended(lane.rollout)

    def gone(self, work: Work) -> None:
        self._open.probes.pop(work, None)
        lane = self._open.lanes.pop(work, None)
        if lane is not None:
            lane.generated += work.done
            if lane.text.work is work:
                lane.text.before, lane.text.work = lane.text.tokens, None
        self._after()

    # --- requests

    def _ask(self, lane: _Lane) -> None:
        if lane.is_stopped:
            return
        text, timing, prompt = lane.text, self._station.timing, self._stage.prompt_tokens
        if text.work is not None:  # its last request is just ending
            text.before, text.work = text.tokens, None
        total, target = self._stage.recording.tokens(lane.rollout), self._target(lane)
        until = target if self._way == "pause" and target is not None else total
        cached = timing.resumed * (prompt + text.before) if text.before else timing.shared * prompt
        if lane is self._primer:
            cached = 0.0
        work = Work(
            self,
            lane.rollout,
            prompt=prompt + text.before,
            computed=prompt + text.before - cached,
            until=until - text.before,
        )
        work.hold = None if self._way != "barrier" or target is None else target - text.before
        text.work = work
        self._open.lanes[work] = lane
        self._station.submit(work)

    def _target(self, lane: _Lane) -> int | None:
        """Where the policy wants to see it next, when that lies before its end."""
        target = self._clock.entrants[lane.rollout].target
        return target if target is not None and target < self._stage.recording.tokens(lane.rollout) else None

    def _began_generating(self, lane: _Lane) -> None:
        if lane is self._primer:
            self._start_others()

    def _start_others(self) -> None:
        self._primer = None
        behind, self._behind = self._behind, []
        for lane in behind:
            self._ask(lane)

    # --- after everything that happens

    def _after(self) -> None:
        if self._clock.is_over and not self._is_closing:
            self._is_closing = True
            for lane in self._lanes:
                self.stop(lane.rollout)
            for work in self._open.probes:
                self._station.stop(work)
        if self._is_closing:
            if not self._open and not self._is_done:
                self._is_done = True
                self.finished_at = self._station.now
                self._finished(self)
            return
        for work, lane in self._open.lanes.items():
            work.look = None if lane.is_stopped else self._look(lane)

    def _look(self, lane: _Lane) -> int | None:
        """How many tokens of its request until somebody wants to know."""
        text = lane.text
        looks = [self._clock.awaited(lane.rollout), text.next_commitment()]
        if lane is self._primer and not text.tokens:
            looks.append(1)
        return min((look - text.before for look in looks if look is not None and look > text.tokens), default=None)
