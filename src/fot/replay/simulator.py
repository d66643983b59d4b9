"""Driving a policy over one problem's recorded rollouts; its clock is the token count."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fot.core.ledger import Charge
from fot.core.policy import (
    Action,
    Bank,
    Conclude,
    Event,
    Fate,
    Launch,
    Observation,
    Policy,
    Prefix,
    Probe,
    Prune,
    Watch,
)
from fot.core.vote import Verdict, plurality

__all__ = ["Outcome", "Recording", "simulate"]


class Recording(Protocol):
    """One problem's rollouts as a replay needs them, in order of `rollout_id`."""

    def __len__(self) -> int: ...

    def tokens(self, rollout: int) -> int:
        """Its full length."""
        ...

    def prefix(self, rollout: int, tokens: int) -> Prefix:
        """What it was at `tokens` tokens."""
        ...

    def commitment_tokens(self, rollout: int) -> Sequence[int]:
        """Rising token counts at which the answer that its prefix commits to changes."""
        ...

    def probe(self, rollout: int, tokens: int) -> tuple[str, int]:
        """What a probe at `tokens` tokens answered, and what that cost; `ConfigError` where none was recorded."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy did with one problem, by rollout."""

    verdict: Verdict
    charges: tuple[Charge, ...]
    fates: tuple[Fate, ...]
    probes: tuple[Charge, ...] = ()
    """Each probe's tokens, with the position in its rollout as `start`."""

    @property
    def probe_tokens(self) -> int:
        """Tokens spent on probes."""
        return sum(probe.tokens for probe in self.probes)

    @property
    def stops(self) -> tuple[int, ...]:
        """Tokens charged to each rollout."""
        return tuple(charge.tokens for charge in self.charges)


def simulate(policy: Policy, recording: Recording, *, follow_commitments: bool = False) -> Outcome:
    """Run `policy` to its end; `follow_commitments` brings it every change of a committed answer."""
    return _Run(policy, recording, follow_commitments).outcome()


class _Run:
    def __init__(self, policy: Policy, recording: Recording, follow_commitments: bool) -> None:
        self._policy = policy
        self._recording = recording
        self._follow = follow_commitments
        self._queue: list[tuple[int, int, int]] = []  # (time, rollout, event), the order of the protocol
        self._starts: list[int] = []
        self._stops: dict[int, tuple[int, Fate]] = {}
        self._answers: dict[int, list[str]] = {}  # of probes that are still to be told
        self._probes: list[Charge] = []
        self._clock = 0
        self._concluded = False

    def outcome(self) -> Outcome:
        self._apply(self._policy.start())
        while self._queue and not self._concluded:
            self._clock, rollout, event = heapq.heappop(self._queue)
            if rollout not in self._stops or event == Event.ENDED.value:
                self._deliver(rollout, Event(event))
        rollouts = range(len(self._recording))
        settled = [self._settle(rollout) for rollout in rollouts]
        return Outcome(
            verdict=plurality(self._policy.ballots()),
            charges=tuple(charge for charge, _ in settled),
            fates=tuple(fate for _, fate in settled),
            probes=tuple(self._probes),
        )

    def _deliver(self, rollout: int, event: Event) -> None:
        if event is Event.ENDED and rollout not in self._stops:
            self._stops[rollout] = (self._recording.tokens(rollout), Fate.FINISHED)
        elif rollout in self._stops:
            return
        prefix = self._recording.prefix(rollout, self._clock - self._starts[rollout])
        probe = self._answers[rollout].pop(0) if event is Event.PROBED else None
        self._apply(self._policy.observe(Observation(event, self._clock, prefix, probe)))

    def _apply(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Launch(rollouts):
                    self._launch(rollouts)
                case Watch(rollout, tokens):
                    self._watch(rollout, tokens)
                case Bank(rollout):
                    self._stop(rollout, Fate.BANKED)
                case Prune(rollout):
                    self._stop(rollout, Fate.PRUNED)
                case Conclude():
                    self._concluded = True
                case Probe(rollout, _):
                    self._probe(rollout)

    def _launch(self, count: int) -> None:
        for rollout in range(len(self._starts), min(len(self._starts) + count, len(self._recording))):
            self._starts.append(self._clock)
            end = self._clock + self._recording.tokens(rollout)
            heapq.heappush(self._queue, (end, rollout, Event.ENDED.value))
            if self._follow:
                for tokens in self._recording.commitment_tokens(rollout):
                    heapq.heappush(self._queue, (self._clock + tokens, rollout, Event.COMMITTED.value))

    def _watch(self, rollout: int, tokens: int) -> None:
        if tokens < self._recording.tokens(rollout):
            time = max(self._clock, self._starts[rollout] + tokens)
            heapq.heappush(self._queue, (time, rollout, Event.REACHED.value))

    def _probe(self, rollout: int) -> None:
        position = self._clock - self._starts[rollout]
        answer, cost = self._recording.probe(rollout, position)
        self._answers.setdefault(rollout, []).append(answer)
        self._probes.append(Charge(cost, position))
        heapq.heappush(self._queue, (self._clock, rollout, Event.PROBED.value))

    def _stop(self, rollout: int, fate: Fate) -> None:
        """A rollout that ended before keeps its length as the bill; only its fate is new."""
        tokens, _ = self._stops.get(rollout, (self._clock - self._starts[rollout], fate))
        self._stops[rollout] = (tokens, fate)

    def _settle(self, rollout: int) -> tuple[Charge, Fate]:
        if rollout >= len(self._starts):
            return Charge(0, self._clock), Fate.UNUSED
        start = self._starts[rollout]
        running = (min(self._clock - start, self._recording.tokens(rollout)), Fate.CANCELLED)
        tokens, fate = self._stops.get(rollout, running)
        return Charge(tokens, start), fate
