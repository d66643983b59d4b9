"""Slim-SC: drop one of two rollouts that think the same thought.

Thoughts are told apart by the words that open them, and compared by an embedder. Only needed for what is compared:
nothing is embedded before the warm-up is over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from fot.core.policy import Action, Event, Launch, Need, Observation, Policy, Prefix, Prune, Watch
from fot.core.registry import unknown_name
from fot.core.vote import Ballot, Seat
from fot.methods.embedding import EMBEDDERS, Embedder, embedder
from fot.methods.signals import problem_seed
from fot.methods.spec import Context, Method, parameter

if TYPE_CHECKING:
    from fot.methods.embedding import Vectors

__all__ = ["SLIMSC", "STRATEGIES", "SlimSc", "SlimScPlan", "Thoughts"]

_OPENING = re.compile(r"(?<![^\W_])(?:But another|perhaps another|Another|[aA]lternative|Oh wait|But wait|Wait)")
_REASONING_END = "</think>"
STRATEGIES = ("diversity", "random", "fewest", "most")


@dataclass(frozen=True)
class SlimScPlan:
    """Slim-SC's parameters. The threshold is the one of the paper's comparison; Slim-SC itself uses 0.95 and 0.98."""

    threshold: float = parameter(0.9, "cosine similarity above which two thoughts are the same")
    strategy: str = parameter("diversity", "which of the two goes: diversity, random, fewest or most (thoughts)")
    warmup: int = parameter(20, "thoughts that a rollout may have before it is compared")
    interval: int = parameter(500, "tokens between looks (Slim-SC: 3 seconds)")
    delay: int = parameter(6, "looks before anything is pruned (Slim-SC: 20 of its looks, about 3,000 tokens)")
    shortest: int = parameter(25, "tokens below which a thought is not counted")
    embedder: str = parameter("mpnet", "mpnet (the published one), or an approximation: minilm, wordllama")

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError("threshold must lie above 0 and at most at 1")
        if self.strategy not in STRATEGIES:
            raise ValueError(f"strategy is one of {', '.join(STRATEGIES)}")
        if self.interval < 1 or min(self.warmup, self.delay, self.shortest) < 0:
            raise ValueError("interval must be at least 1, and warmup, delay and shortest not negative")
        if self.embedder not in EMBEDDERS:
            raise unknown_name("embedder", self.embedder, EMBEDDERS)


@dataclass(slots=True)
class Thoughts:
    """One rollout's complete thoughts so far, found as its text grows."""

    shortest: int
    texts: list[str] = field(default_factory=list)
    is_reasoning: bool = True
    _opened: int = 0  # where the thought that is not complete yet begins
    _searched: int = 0

    def read(self, prefix: Prefix) -> None:
        """Take in what has come; a thought is complete when the next one opens."""
        text = prefix.text
        end = text.find(_REASONING_END, max(0, self._opened))
        self.is_reasoning = end < 0
        for opening in _OPENING.finditer(text, self._searched, len(text) if end < 0 else end):
            start = opening.start()
            if start <= self._opened:
                continue
            thought = text[self._opened : start]
            if len(thought) * prefix.tokens >= self.shortest * len(text):
                self.texts.append(thought)
            self._opened = start
        self._searched = max(self._opened, len(text) - 16)  # an opening may have been cut


class SlimSc:
    """Every `interval` tokens the newest thought of each rollout is compared with all thoughts of the others."""

    def __init__(self, k: int, plan: SlimScPlan, load: Callable[[], Embedder], seed: int = 0) -> None:
        self.k = k
        self.plan = plan
        self._load = load
        self._random = Random(seed)  # noqa: S311 - not for secrets
        self._running = set(range(k))
        self._thoughts = {rollout: Thoughts(plan.shortest) for rollout in range(k)}
        self._vectors: dict[int, Vectors] = {}  # a row for each thought
        self._compared = dict.fromkeys(range(k), 0)
        self._arrived: dict[int, Prefix] = {}
        self._answers: dict[int, str] = {}
        self._inherited = dict.fromkeys(range(k), 0)  # how many rollouts this one stands for
        self._looks = 0

    def start(self) -> Sequence[Action]:
        return [Launch(self.k), *self._watch()]

    def observe(self, observation: Observation) -> Sequence[Action]:
        prefix = observation.prefix
        if prefix.rollout not in self._running:
            return []
        if observation.event is Event.REACHED:
            self._arrived[prefix.rollout] = prefix
        elif observation.event in (Event.ENDED, Event.FAILED):
            self._running.discard(prefix.rollout)
            self._arrived.pop(prefix.rollout, None)
            if observation.event is Event.ENDED and prefix.answer is not None:
                self._answers[prefix.rollout] = prefix.answer
        if not self._running or not self._running <= self._arrived.keys():
            return []
        return self._look()

    def _watch(self) -> list[Action]:
        return [Watch(rollout, (self._looks + 1) * self.plan.interval) for rollout in sorted(self._running)]

    def _look(self) -> list[Action]:
        for rollout in sorted(self._running):
            self._thoughts[rollout].read(self._arrived[rollout])
        self._looks += 1
        self._arrived.clear()
        pruned = self._compare() if self._looks > self.plan.delay else []
        return [*(Prune(rollout) for rollout in pruned), *self._watch()]

    def _compare(self) -> list[int]:
        """Which rollouts go now: at most one of each pair, and never all."""
        thinking = [rollout for rollout in sorted(self._running) if self._thoughts[rollout].is_reasoning]
        fresh = [rollout for rollout in thinking if self._has_news(rollout)]
        if len(thinking) < 2 or not fresh:
            return []
        self._embed(thinking)
        nearest = self._nearest(fresh, [rollout for rollout in thinking if rollout in self._vectors])
        pruned: list[int] = []
        for rollout in fresh:
            self._compared[rollout] = len(self._thoughts[rollout].texts)
            alike = next((other for other in nearest[rollout] if other not in pruned), None)
            if rollout not in pruned and alike is not None and len(self._running) > 1:
                loser, winner = self._choose(rollout, alike)
                self._inherited[winner] += 1 + self._inherited[loser]
                self._running.discard(loser)
                pruned.append(loser)
        return pruned

    def _has_news(self, rollout: int) -> bool:
        count = len(self._thoughts[rollout].texts)
        return count > self.plan.warmup and count > self._compared[rollout]

    def _embed(self, rollouts: Sequence[int]) -> None:
        import numpy as np

        new = {r: self._thoughts[r].texts[len(self._vectors.get(r, ())) :] for r in rollouts}
        texts = [text for thoughts in new.values() for text in thoughts]
        if not texts:
            return
        vectors = self._load().embed(texts)
        done = 0
        for rollout, thoughts in new.items():
            if thoughts:
                own = vectors[done : done + len(thoughts)]
                done += len(thoughts)
                self._vectors[rollout] = np.vstack([self._vectors[rollout], own]) if rollout in self._vectors else own

    def _nearest(self, fresh: Sequence[int], others: Sequence[int]) -> dict[int, list[int]]:
        """For each fresh rollout those with a thought like its newest, the most alike first."""
        import numpy as np

        newest = np.stack([self._vectors[rollout][-1] for rollout in fresh])
        most = {other: (self._vectors[other] @ newest.T).max(axis=0).tolist() for other in others}
        nearest: dict[int, list[int]] = {}
        for at, rollout in enumerate(fresh):
            alike = [other for other in others if other != rollout and most[other][at] > self.plan.threshold]
            nearest[rollout] = sorted(alike, key=lambda other: -most[other][at])
        return nearest

    def _choose(self, current: int, other: int) -> tuple[int, int]:
        """Loser and winner."""
        if self.plan.strategy == "random":
            first = self._random.random() < 0.5
            return (current, other) if first else (other, current)
        sizes = {rollout: len(self._vectors[rollout]) for rollout in (current, other)}
        if self.plan.strategy == "diversity":
            # The one that repeats itself more goes; of equals the one with fewer thoughts, else the current one.
            keys = {r: (-self.sameness(r), sizes[r], r != current) for r in (current, other)}
        else:
            sign = 1 if self.plan.strategy == "fewest" else -1
            keys = {r: (float(sign * sizes[r]), 0, r != current) for r in (current, other)}
        loser = min((current, other), key=keys.__getitem__)
        return loser, other if loser == current else current

    def sameness(self, rollout: int) -> float:
        """Mean cosine over pairs of a rollout's own thoughts, for each of its thoughts."""
        vectors = self._vectors.get(rollout)
        size = 0 if vectors is None else len(vectors)
        if vectors is None or size < 2:
            return 0.0
        total = vectors.sum(axis=0)
        return float((total @ total - size) / (size * (size - 1)) / size)

    def ballots(self) -> Sequence[Ballot]:
        """Those that stand for more pruned ones come first, so that a tie goes to them; then the less repetitive."""
        order = sorted(self._answers, key=lambda r: (-self._inherited[r], self.sameness(r), r))
        return [Ballot(rollout, self._answers[rollout]) for rollout in order]

    def seats(self) -> Sequence[Seat] | None:
        """Places depend on who will have been pruned: any seat may come first or last."""
        taken = [Seat(answer, (0,), (self.k,)) for answer in self._answers.values()]
        return taken + [Seat(None, (0,), (self.k,)) for _ in self._running]

    def foresee(self, ahead: Sequence[Observation]) -> Iterable[int]:
        return ()


def _build(plan: SlimScPlan, context: Context) -> Policy:
    return SlimSc(context.k, plan, lambda: embedder(plan.embedder), problem_seed(context))


SLIMSC = Method(
    name="slimsc",
    summary="drop one of two rollouts whose thoughts are the same, by an embedder",
    plan=SlimScPlan,
    build=_build,
    needs=lambda plan: frozenset({Need.TEXT}),
    draws=lambda plan, k: 10 if plan.strategy == "random" else 1,
)
