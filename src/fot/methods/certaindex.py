"""Certaindex: stop a rollout once it keeps giving the same answer.

Online the answer is probed for, beside the text. The offline proxy looks at what the text itself commits to: it can
fire later than a probe would, and pays for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fot.core.answers import answer_key
from fot.core.policy import Action, Bank, Event, Need, Observation, Policy, Prefix, Probe, Watch
from fot.core.sampling import Majority
from fot.methods.spec import Context, Method, parameter

__all__ = ["CERTAINDEX", "CertaindexPlan", "probed_answer"]


@dataclass(frozen=True)
class CertaindexPlan:
    """Certaindex's parameters; the defaults are those of its proxy."""

    threshold: int = parameter(2, "looks in a row that must give the same answer")
    chunk: int = parameter(32, "tokens between looks")
    probe: bool = parameter(False, "ask the model for its answer (on), or read what the text commits to (off)")
    probe_tokens: int = parameter(20, "tokens that a probe may cost")
    doubts: tuple[str, ...] = parameter(
        ("wait", "hold", "but", "okay", "no", "hmm"), "words that make a probe's answer worthless, in any case"
    )

    def __post_init__(self) -> None:
        if min(self.threshold, self.chunk, self.probe_tokens) < 1:
            raise ValueError("threshold, chunk and probe_tokens must be at least 1")


def probed_answer(text: str) -> str | None:
    r"""The answer in what a probe gave after `\boxed{`: up to the brace that closes it; None without one."""
    depth = 0
    for at, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return answer_key(text[:at]) if text[:at].strip() else None
    return None


class _Stopping(Majority):
    """Each rollout is stopped, and keeps its vote, when it is certain."""

    def __init__(self, k: int, plan: CertaindexPlan) -> None:
        super().__init__(k)
        self.plan = plan

    def observe(self, observation: Observation) -> Sequence[Action]:
        rollout = observation.prefix.rollout
        if rollout not in self._open:
            return []
        super().observe(observation)
        return self._look(observation) if rollout in self._open else []

    def _look(self, observation: Observation) -> list[Action]:
        raise NotImplementedError

    def _bank(self, rollout: int, answer: str) -> list[Action]:
        self._answers[rollout] = answer
        self._open.discard(rollout)
        return [Bank(rollout)]


class _Reading(_Stopping):
    """The proxy: looks come at multiples of the chunk, but only those after a commitment can matter."""

    def __init__(self, k: int, plan: CertaindexPlan) -> None:
        super().__init__(k, plan)
        self._due: dict[int, int] = {}

    def _look(self, observation: Observation) -> list[Action]:
        prefix: Prefix = observation.prefix
        if observation.event is Event.REACHED:
            is_due = prefix.tokens >= self._due.get(prefix.rollout, prefix.tokens + 1)
            return self._bank(prefix.rollout, prefix.answer) if is_due and prefix.answer is not None else []
        self._due.pop(prefix.rollout, None)
        if prefix.answer is None:
            return []
        chunk = self.plan.chunk
        due = (-(-prefix.tokens // chunk) + self.plan.threshold - 1) * chunk
        self._due[prefix.rollout] = due
        return [Watch(prefix.rollout, due)]


class _Probing(_Stopping):
    """Every chunk the model is asked."""

    def __init__(self, k: int, plan: CertaindexPlan) -> None:
        super().__init__(k, plan)
        self._probes: dict[int, list[str]] = {}

    def start(self) -> Sequence[Action]:
        return [*super().start(), *(Watch(rollout, self.plan.chunk) for rollout in range(self.k))]

    def _look(self, observation: Observation) -> list[Action]:
        rollout, tokens = observation.prefix.rollout, observation.prefix.tokens
        if observation.event is Event.REACHED:
            return [Probe(rollout, self.plan.probe_tokens), Watch(rollout, tokens + self.plan.chunk)]
        if observation.event is not Event.PROBED:
            return []
        recent = [*self._probes.get(rollout, []), observation.probe or ""][-self.plan.threshold :]
        self._probes[rollout] = recent
        answer = probed_answer(recent[-1])
        is_certain = len(recent) == self.plan.threshold and answer is not None
        if is_certain and all(probed_answer(text) == answer and not self._doubts(text) for text in recent):
            return self._bank(rollout, answer or "")
        return []

    def _doubts(self, text: str) -> bool:
        return any(word in text.lower() for word in self.plan.doubts)


def _build(plan: CertaindexPlan, context: Context) -> Policy:
    return _Probing(context.k, plan) if plan.probe else _Reading(context.k, plan)


CERTAINDEX = Method(
    name="certaindex",
    summary="stop each rollout once it keeps giving the same answer (probe=off: an offline proxy)",
    plan=CertaindexPlan,
    build=_build,
    needs=lambda plan: frozenset({Need.PROBES if plan.probe else Need.COMMITMENTS}),
)
