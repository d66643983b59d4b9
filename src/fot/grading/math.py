r"""Mathematical equality of a committed answer with the reference: `1/2` is `0.5`, and 7 is not 700.

An answer goes through, in order: equality as a string, size limits, what is written around the mathematics, exact
arithmetic on numbers that are written out, and at last math-verify in a worker process that is killed at a limit.
What none of them settles is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from fot.core.answers import answer_key
from fot.errors import MissingExtra
from fot.grading.base import Closing, Grade, GraderOptions, Judgement, Pair, distinct, prejudge
from fot.grading.bodies import Question, letters_differ_in_case
from fot.grading.forms import read_form
from fot.grading.limits import static_limit
from fot.grading.relation import compare_forms
from fot.grading.workers import Lost, WorkerPool

__all__ = ["MathGrader", "answer_questions", "math_pool"]

_LIMIT_S = 5.0


@dataclass(slots=True)
class _Open:
    """A pair that is being judged: the ways that are left to try, and the best grade so far."""

    ways: list[Grade | Question]
    best: Grade = field(default_factory=lambda: Grade(Judgement.WRONG, "not equal"))

    def settle(self, grade: Grade) -> None:
        rank = (Judgement.WRONG, Judgement.UNDECIDED, Judgement.CORRECT)
        if rank.index(grade.verdict) >= rank.index(self.best.verdict):
            self.best = grade

    def question(self) -> Question | None:
        """The next question that has to be asked; None when the best grade stands."""
        while self.ways and self.best.verdict is not Judgement.CORRECT:
            way = self.ways.pop(0)
            if isinstance(way, Question):
                return way
            self.settle(way)
        return None


class MathGrader(Closing):
    """Correct when math-verify, or exact arithmetic, finds the committed answer equal to the reference."""

    name = "math"

    def __init__(self, options: GraderOptions | None = None) -> None:
        """Starts nothing yet. Raises `MissingExtra` without the extra `math`."""
        self._pool = math_pool(options or GraderOptions())
        self._grades: dict[Pair, Grade] = {}

    @property
    def version(self) -> str:
        """The version of our own rules and that of math-verify: a change of either may change a grade."""
        from importlib.metadata import version

        return f"math/3+math-verify-{version('math-verify')}"

    @property
    def process_ids(self) -> list[int]:
        """The worker processes that are kept running."""
        return self._pool.process_ids

    def grade(self, gold: str | None, answer: str | None) -> Grade:
        return self.grade_all([(gold, answer)])[0]

    def grade_all(self, pairs: Sequence[Pair], progress: Callable[[int], None] = lambda _: None) -> list[Grade]:
        wanted = distinct(pairs)
        open_pairs: dict[Pair, _Open] = {}
        for pair in wanted:
            if pair not in self._grades:
                begun = _begin(*pair)
                if isinstance(begun, Grade):
                    self._grades[pair] = begun
                else:
                    open_pairs[pair] = begun
        total, left = len(wanted), set(open_pairs)
        progress(total - len(left))

        def settled(pair: Pair) -> None:
            self._grades[pair] = open_pairs[pair].best
            left.discard(pair)
            progress(total - len(left))

        self._settle(open_pairs, settled)
        return [self._grades[pair] for pair in pairs]

    def close(self) -> None:
        self._pool.close()

    def _settle(self, open_pairs: dict[Pair, _Open], settled: Callable[[Pair], None]) -> None:
        """Ask round by round: what the first way left open goes into the next round."""
        unsettled = dict(open_pairs)
        while unsettled:
            asked = [(pair, question) for pair, held in unsettled.items() if (question := held.question())]
            for pair in unsettled.keys() - {pair for pair, _ in asked}:
                settled(pair)
                del unsettled[pair]

            def heard(position: int, grade: Grade, asked: list[tuple[Pair, Question]] = asked) -> None:
                pair = asked[position][0]
                unsettled[pair].settle(grade)
                if not unsettled[pair].ways or grade.verdict is Judgement.CORRECT:
                    settled(pair)
                    del unsettled[pair]

            answer_questions(self._pool, [question for _, question in asked], heard)


def math_pool(options: GraderOptions) -> WorkerPool:
    """Workers that run math-verify, not started yet. Raises `MissingExtra` without the extra `math`."""
    if find_spec("math_verify") is None:
        raise MissingExtra("math")
    return WorkerPool("fot.grading.math_worker", options.worker_count, options.limit_s or _LIMIT_S)


def _begin(gold: str | None, answer: str | None) -> Grade | _Open:
    pair = prejudge(gold, answer)
    if isinstance(pair, Grade):
        return pair
    gold, answer = pair
    if answer_key(gold) == answer_key(answer):
        return Grade(Judgement.CORRECT, "the same key")
    for what, text in (("the reference", gold), ("the answer", answer)):
        if reason := static_limit(text):
            return Grade(Judgement.UNDECIDED, f"{what} is beyond a limit: {reason}")
    return _Open(compare_forms(read_form(gold), read_form(answer)))


def answer_questions(pool: WorkerPool, questions: Sequence[Question], heard: Callable[[int, Grade], None]) -> None:
    """Have the workers compare; `heard(position, grade)` is told of each question as it is settled."""

    def done(position: int, reply: Any) -> None:
        heard(position, _grade_of(questions[position], reply))

    pool.run((question._asdict() for question in questions), done)


def _grade_of(question: Question, reply: Any) -> Grade:
    if isinstance(reply, Lost):
        return Grade(Judgement.UNDECIDED, reply.reason)
    if reply["equal"] is None:
        return Grade(Judgement.UNDECIDED, reply["reason"])
    if not reply["equal"]:
        return Grade(Judgement.WRONG, reply["reason"])
    if letters_differ_in_case(question.gold, question.answer):
        return Grade(Judgement.UNDECIDED, "equal but for the case of a letter")
    return Grade(Judgement.CORRECT, reply["reason"])
