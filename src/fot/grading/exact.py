"""Equality of strings after rewritings that never change a value: the grader that needs nothing.

Its equality is that of the exact vote keys, so a winner by exact votes is correct exactly when its key is the gold's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from fot.core.answers import answer_key
from fot.grading.base import Grade, GraderOptions, Judgement, Pair, distinct, prejudge

__all__ = ["ExactGrader"]


class ExactGrader:
    """Correct when both answers have one key (`fot.core.answers.answer_key`)."""

    name = "exact"
    version = "exact/2"

    def __init__(self, options: GraderOptions | None = None) -> None:
        """Takes the options that every grader takes, and needs none."""

    def grade(self, gold: str | None, answer: str | None) -> Grade:
        judged = prejudge(gold, answer)
        if judged is not None or gold is None or answer is None:
            return judged or Grade(Judgement.NO_ANSWER, "nothing was committed")
        if answer_key(gold) == answer_key(answer):
            return Grade(Judgement.CORRECT, "the same string" if gold == answer else "the same key")
        return Grade(Judgement.WRONG, "another key")

    def grade_all(self, pairs: Sequence[Pair], progress: Callable[[int], None] = lambda _: None) -> list[Grade]:
        grades = {pair: self.grade(*pair) for pair in distinct(pairs)}
        progress(len(grades))
        return [grades[pair] for pair in pairs]

    def close(self) -> None:
        """Nothing is kept running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
