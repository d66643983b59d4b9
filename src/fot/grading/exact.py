"""Equality of strings after rewritings that never change a value: the grader that needs nothing.

Its equality is that of the exact vote keys, so a winner by exact votes is correct exactly when its key is the gold's.
"""

from __future__ import annotations

from fot.core.answers import answer_key
from fot.grading.base import Grade, Judgement, StringGrader

__all__ = ["ExactGrader"]


class ExactGrader(StringGrader):
    """Correct when both answers have one key (`fot.core.answers.answer_key`)."""

    name = "exact"
    version = "exact/2"

    def judge(self, gold: str, answer: str) -> Grade:
        if answer_key(gold) == answer_key(answer):
            return Grade(Judgement.CORRECT, "the same string" if gold == answer else "the same key")
        return Grade(Judgement.WRONG, "another key")
