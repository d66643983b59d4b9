"""How hard problems are beside each other, as a model judges: in batches, each put in order, several times over.

This is the ranking that Difficulty-Adaptive Self-Consistency begins with. Every call is a rollout of the sampler, so a
run that was cut goes on where it stopped, and every token of it is known and can be charged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean

from fot.core.ledger import Charge
from fot.core.rollout import estimated_tokens
from fot.core.signals import mix
from fot.errors import ConfigError
from fot.online.sampler import Task

__all__ = ["Asked", "Ranked", "batches", "calls", "order_of", "question", "ranked"]

_NUMBER = re.compile(r"\bQ(\d+)\b")
_REASONING_END = "</think>"


@dataclass(frozen=True, slots=True)
class Asked:
    """A problem to be ranked: its benchmark, its id, its text."""

    benchmark: str
    problem_id: str
    text: str


@dataclass(slots=True)
class Ranked:
    """What came of it for one problem. `places` count from 0, the easiest of a batch."""

    places: list[int] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    """Its share of every call that it was in, `start` being what that share attends to (the prompt, and the half of
    the answer that stands before its middle)."""

    @property
    def difficulty(self) -> float | None:
        """The mean place; None when no answer that it was in could be read."""
        return fmean(self.places) if self.places else None


def batches(problems: int, size: int, rounds: int, seed: int) -> list[list[int]]:
    """Random batches of problems, each problem in every round at least once; the last is filled from the one before."""
    if size < 2 or rounds < 1:
        raise ConfigError("batches must hold at least 2 problems, and there must be a round", "The paper: 8, and 5.")
    made = []
    for number in range(rounds):
        order = list(range(problems))
        Random(mix(seed, number)).shuffle(order)  # noqa: S311 - not for secrets
        firsts = range(0, problems, size)
        made += [order[first : first + size] if first + size <= problems else order[-size:] for first in firsts]
    return made


def question(texts: Sequence[str]) -> str:
    """What the model is asked about one batch."""
    listed = "\n\n".join(f"Q{number}: {text}" for number, text in enumerate(texts, start=1))
    return (
        f"Here are {len(texts)} problems. Do not solve them. Judge how hard each one is, and put them in order, the "
        f"easiest first and the hardest last.\n\n{listed}\n\nEnd with one line that holds all {len(texts)} labels in "
        f"that order and nothing else, separated by commas, in the form Q2, Q1, Q3."
    )


def order_of(text: str, size: int) -> list[int] | None:
    """The order that an answer ends with, as places in the batch; None when it names not all of them exactly once."""
    answer = text.rpartition(_REASONING_END)[2]
    named = [int(number) - 1 for number in _NUMBER.findall(answer)][-size:]
    return named if sorted(named) == list(range(size)) else None


def calls(asked: Sequence[Asked], made: Sequence[Sequence[int]], model: str) -> Iterable[Task]:
    """The calls of a ranking as tasks of a `Sampler`."""
    for number, batch in enumerate(made):
        about = {"model": model, "benchmark": "ranking", "problem_id": str(number), "problem": "", "gold": None}
        yield Task(about, question([asked[at].text for at in batch]), 0)


def ranked(
    asked: Sequence[Asked], made: Sequence[Sequence[int]], rows: Iterable[Mapping[str, object]]
) -> tuple[list[Ranked], int]:
    """A `Ranked` for each problem from the rows of the calls, and how many answers could not be read (dropped)."""
    found = [Ranked() for _ in asked]
    unread = 0
    for row in rows:
        batch = made[int(str(row["problem_id"]))]
        order = order_of(str(row["text"]), len(batch))
        prompt = _counted(row.get("prompt_tokens"), question([asked[at].text for at in batch]))
        tokens = _counted(row.get("n_tokens"), str(row["text"]))
        for at, share in zip(batch, _shares(tokens, len(batch)), strict=True):
            found[at].charges.append(Charge(share, prompt + (tokens - share) // 2))
        for place, member in enumerate(order or ()):
            found[batch[member]].places.append(place)
        unread += order is None
    return found, unread


def _counted(told: object, text: str) -> int:
    """Tokens as the server told them, or estimated from the text."""
    return told if isinstance(told, int) else estimated_tokens(len(text))


def _shares(tokens: int, parts: int) -> list[int]:
    """So many tokens dealt out as evenly as whole numbers allow."""
    return [tokens // parts + (part < tokens % parts) for part in range(parts)]
