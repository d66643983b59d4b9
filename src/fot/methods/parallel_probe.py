"""Parallel-Probe: ask all rollouts in step, drop those that keep disagreeing, stop when the vote is stable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fot.core.policy import Action, Bank, Conclude, Event, Launch, Need, Observation, Policy, Probe, Prune, Watch
from fot.core.vote import Ballot, Seat, plurality
from fot.methods.certaindex import probed_answer
from fot.methods.spec import Context, Method, parameter

__all__ = ["PARALLEL_PROBE", "ParallelProbe", "ParallelProbePlan"]


@dataclass(frozen=True)
class ParallelProbePlan:
    """Parallel-Probe's parameters; the defaults are those of its code."""

    interval: int = parameter(500, "tokens between looks")
    warmup: int = parameter(15, "looks before anything is pruned")
    patience: int = parameter(7, "looks in a row at which a rollout may disagree with the vote")
    stable: int = parameter(40, "looks in a row over which an unchanged vote ends everything")
    steps: int = parameter(100, "looks at most")
    probe: bool = parameter(True, "ask the model for its answer (on), or read what the text commits to (off)")
    probe_tokens: int = parameter(20, "tokens that a probe may cost")

    def __post_init__(self) -> None:
        if min(self.interval, self.patience, self.stable, self.steps, self.probe_tokens) < 1 or self.warmup < 0:
            raise ValueError("all parameters must be at least 1 (warmup 0)")


class ParallelProbe:
    """One look is complete when every running rollout has been seen at it. An unknown answer is no disagreement."""

    def __init__(self, k: int, plan: ParallelProbePlan) -> None:
        self.k = k
        self.plan = plan
        self._running = set(range(k))
        self._answers: dict[int, str] = {}
        self._against: dict[int, int] = {}
        self._seen: set[int] = set()
        self._step = 1
        self._leader: str | None = None
        self._unchanged = 0

    def start(self) -> Sequence[Action]:
        return [Launch(self.k), *self._watch()]

    def observe(self, observation: Observation) -> Sequence[Action]:
        prefix = observation.prefix
        if prefix.rollout not in self._running:
            return []
        if observation.event is Event.REACHED and self.plan.probe:
            return [Probe(prefix.rollout, self.plan.probe_tokens)]
        asked = observation.event is Event.PROBED
        answer = probed_answer(observation.probe or "") if asked else prefix.answer
        if answer is not None:
            self._answers[prefix.rollout] = answer
        if observation.event in (Event.ENDED, Event.FAILED):
            self._running.discard(prefix.rollout)
        elif observation.event in (Event.REACHED, Event.PROBED):
            self._seen.add(prefix.rollout)
        if not self._running or not self._seen or not self._running <= self._seen:
            return []
        return self._decide()

    def _decide(self) -> list[Action]:
        """What a complete look brings."""
        leader = plurality(self.ballots()).answer
        self._unchanged = self._unchanged + 1 if leader is not None and leader == self._leader else 0
        self._leader = leader
        if self._unchanged >= self.plan.stable or self._step >= self.plan.steps:
            voting = sorted(self._running & self._answers.keys())
            return [*(Bank(rollout) for rollout in voting), Conclude()]
        actions: list[Action] = []
        for rollout in sorted(self._running & self._answers.keys()):
            self._against[rollout] = 0 if self._answers[rollout] == leader else self._against.get(rollout, 0) + 1
            if self._step > self.plan.warmup and self._against[rollout] >= self.plan.patience:
                self._running.discard(rollout)
                del self._answers[rollout]
                actions.append(Prune(rollout))
        self._step += 1
        self._seen.clear()
        return [*actions, *self._watch()]

    def _watch(self) -> list[Action]:
        return [Watch(rollout, self._step * self.plan.interval) for rollout in sorted(self._running)]

    def ballots(self) -> Sequence[Ballot]:
        return [Ballot(rollout, self._answers[rollout]) for rollout in sorted(self._answers)]

    def seats(self) -> Sequence[Seat] | None:
        """Until a rollout has ended, its vote may turn."""
        fixed = [Seat(a, (r,), (r,)) for r, a in self._answers.items() if r not in self._running]
        return fixed + [Seat(None, (rollout,), (rollout,)) for rollout in self._running]

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        return ()


def _build(plan: ParallelProbePlan, context: Context) -> Policy:
    return ParallelProbe(context.k, plan)


PARALLEL_PROBE = Method(
    name="parallel-probe",
    summary="consensus pruning: drop rollouts that keep disagreeing with the vote, stop when it is stable",
    plan=ParallelProbePlan,
    build=_build,
    needs=lambda plan: frozenset({Need.PROBES}) if plan.probe else frozenset(),
)
