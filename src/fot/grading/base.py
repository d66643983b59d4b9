"""What a grader is: a reference answer and a committed answer in, a judgement with its reason out.

    with grader("math") as math:
        grade = math.grade(gold="1/2", answer="0.5")
        grades = math.grade_all(pairs)          # as many grades as pairs, in their order

A grader sees the committed answer alone, never a rollout's text. What it cannot judge is `undecided`: never `wrong`.
A grader of another package is a class at an entry point of the group `fot.graders`, called with `GraderOptions`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol, Self, cast

from fot.core.registry import unknown_name
from fot.errors import ConfigError

__all__ = [
    "GRADERS",
    "Closing",
    "Grade",
    "Grader",
    "GraderOptions",
    "Judgement",
    "Pair",
    "StringGrader",
    "distinct",
    "grader",
    "grader_names",
    "prejudge",
]

Pair = tuple[str | None, str | None]
"""The reference answer and the committed answer; None where there is none."""


class Judgement(StrEnum):
    """What a grader says of an answer."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNDECIDED = "undecided"
    NO_ANSWER = "no_answer"


@dataclass(frozen=True, slots=True)
class Grade:
    """A judgement, and why: short, for people, without the answer's own text."""

    verdict: Judgement
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderOptions:
    """What a grader may use.

    `workers`: processes at once (None: one a core); `limit_s`: seconds for one pair (None: the grader's own limit);
    `accept_risk`: run code without a sandbox where there is none.
    """

    workers: int | None = None
    limit_s: float | None = None
    accept_risk: bool = False

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"workers is {self.workers}, and must be at least 1")
        if self.limit_s is not None and not self.limit_s > 0:
            raise ConfigError(f"limit_s is {self.limit_s}, and must be more than 0 seconds")

    @property
    def worker_count(self) -> int:
        """How many processes: what was asked for, or the cores that this process may use."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return self.workers or cores or 1


class Grader(Protocol):
    """Judges answers; `version` changes whenever a grade might; both name the grade in stored results."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def grade(self, gold: str | None, answer: str | None) -> Grade:
        """The grade of one pair; raises `GradingError` only when the grader cannot run at all."""
        ...

    def grade_all(self, pairs: Sequence[Pair], progress: Callable[[int], None] = lambda _: None) -> list[Grade]:
        """The grades of many pairs, in their order; each distinct pair is judged once.

        `progress` is told how many distinct pairs are done.
        """
        ...

    def close(self) -> None:
        """End what the grader keeps running; it may be used again afterwards."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...


GRADERS: dict[str, str] = {
    "exact": "fot.grading.exact:ExactGrader",
    "math": "fot.grading.math:MathGrader",
    "choice": "fot.grading.choice:ChoiceGrader",
    "code": "fot.grading.code:CodeGrader",
}
"""Where the graders live, as `module:class`."""

_GROUP = "fot.graders"


def grader_names() -> list[str]:
    """Every name that `grader` takes: ours, then those of installed packages."""
    return [*GRADERS, *sorted({point.name for point in entry_points(group=_GROUP)} - set(GRADERS))]


def grader(name: str, options: GraderOptions | None = None) -> Grader:
    """The grader of this name; ours win over an installed package's. Raises `ConfigError` for an unknown one."""
    options = options or GraderOptions()
    if name in GRADERS:
        module, _, attribute = GRADERS[name].partition(":")
        made = getattr(import_module(module), attribute)(options)
    else:
        points = tuple(entry_points(group=_GROUP, name=name))
        if not points:
            raise unknown_name("grader", name, grader_names())
        made = points[0].load()(options)
    return cast("Grader", made)


def prejudge(gold: str | None, answer: str | None) -> Grade | tuple[str, str]:
    """The grade that needs no grader: nothing to judge, or nothing to judge by. Else the pair, to be judged."""
    if answer is None or not answer.strip():
        return Grade(Judgement.NO_ANSWER, "nothing was committed")
    if gold is None or not gold.strip():
        return Grade(Judgement.UNDECIDED, "there is no reference answer")
    return gold, answer


def distinct(pairs: Iterable[Pair]) -> list[Pair]:
    """Each pair once, in the order of first appearance."""
    return list(dict.fromkeys(pairs))


class Closing:
    """Is closed at the end of a `with` block; by itself it keeps nothing running."""

    def close(self) -> None:
        """Nothing is kept running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class StringGrader(Closing):
    """A grader to which the two strings say everything: nothing is run, nothing is remembered."""

    def __init__(self, options: GraderOptions | None = None) -> None:
        """Takes the options that every grader takes, and needs none."""

    def judge(self, gold: str, answer: str) -> Grade:
        """The grade of a pair in which neither is blank."""
        raise NotImplementedError

    def grade(self, gold: str | None, answer: str | None) -> Grade:
        pair = prejudge(gold, answer)
        return pair if isinstance(pair, Grade) else self.judge(*pair)

    def grade_all(self, pairs: Sequence[Pair], progress: Callable[[int], None] = lambda _: None) -> list[Grade]:
        grades = {pair: self.grade(*pair) for pair in distinct(pairs)}
        progress(len(grades))
        return [grades[pair] for pair in pairs]
