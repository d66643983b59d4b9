"""Which answers are one vote.

`exact` keys are those of `fot.core.answers`. `math` keys merge answers that are equal as mathematics. Equality as a
computer-algebra system tells it is neither symmetric nor transitive, so it is made both: two answers are joined when
either is equal to the other taken as the reference, and joined is whatever a chain of joined answers connects. The
classes are a function of the *set* of answers: neither their order nor their number matters.

With no reference to say what was asked, a unit or a left side is left out of a vote only when nothing speaks against
it: `5` votes with `5 cm` unless some other answer says `5 m`. What is undecided is not joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol, Self

from fot.core.answers import answer_key
from fot.core.registry import unknown_name
from fot.core.vote import Ballot, plurality
from fot.grading.base import Closing, Grade, GraderOptions, Judgement
from fot.grading.bodies import Question, compare_bodies, is_equation
from fot.grading.forms import Form, read_form
from fot.grading.limits import static_limit

__all__ = ["KEYS", "ExactKeys", "Keys", "MathKeys", "Merging", "vote_keys", "winners_changed"]


class Keys(Protocol):
    """Says which answers count as one."""

    @property
    def name(self) -> str: ...

    def classes(self, answers: Iterable[str]) -> dict[str, str]:
        """For every answer the one that stands for its class; equal answers have equal representatives."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...


class ExactKeys(Closing):
    """Answers with one `answer_key` are one; the key stands for them."""

    name = "exact"

    def __init__(self, options: GraderOptions | None = None) -> None:
        """Takes the options that every kind of keys takes, and needs none."""

    def classes(self, answers: Iterable[str]) -> dict[str, str]:
        return {answer: answer_key(answer) for answer in answers}


class MathKeys(Closing):
    """Answers that are equal as mathematics are one; the shortest key of a class stands for it."""

    name = "math"

    def __init__(self, options: GraderOptions | None = None) -> None:
        """Starts nothing yet. Raises `MissingExtra` without the extra `math`."""
        from fot.grading.math import math_pool

        self._pool = math_pool(options or GraderOptions())
        self._equal: dict[Question, bool] = {}

    def classes(self, answers: Iterable[str]) -> dict[str, str]:
        keys = {answer: answer_key(answer) for answer in answers}
        names = sorted(set(keys.values()), key=lambda key: (len(key), key))
        # As it was written: a key has no blanks left, and `100, 200` is no number.
        written = {key: answer for answer, key in sorted(keys.items(), key=lambda item: (len(item[0]), item[0]))}
        forms = {name: read_form(written[name]) for name in names if static_limit(written[name]) is None}
        bodies = _Joined(names)
        for a, b in self._equal_pairs(forms):
            bodies.join(a, b)
        joined = _Joined(names)
        for members in bodies.classes():
            for a, b in _undecorated(members, forms):
                joined.join(a, b)
        return {answer: joined.find(key) for answer, key in keys.items()}

    def close(self) -> None:
        self._pool.close()

    def _equal_pairs(self, forms: dict[str, Form]) -> list[tuple[str, str]]:
        """Pairs whose mathematics is equal in one direction or the other."""
        directions = {
            pair: (_compare(forms[pair[0]], forms[pair[1]]), _compare(forms[pair[1]], forms[pair[0]]))
            for pair in combinations(forms, 2)
        }
        told = (way for ways in directions.values() for way in ways)
        self._ask(dict.fromkeys(way for way in told if isinstance(way, Question) and way not in self._equal))
        return [pair for pair, ways in directions.items() if any(map(self._is_equal, ways))]

    def _is_equal(self, way: Grade | Question) -> bool:
        return self._equal[way] if isinstance(way, Question) else way.verdict is Judgement.CORRECT

    def _ask(self, wanted: Iterable[Question]) -> None:
        from fot.grading.math import answer_questions

        questions = list(wanted)

        def heard(position: int, grade: Grade) -> None:
            self._equal[questions[position]] = grade.verdict is Judgement.CORRECT

        answer_questions(self._pool, questions, heard)


def _compare(a: Form, b: Form) -> Grade | Question:
    """Equality of the mathematics with nothing conceded: brackets and kinds must be the same."""
    if a.words != b.words or a.bracket != b.bracket or is_equation(a.body) != is_equation(b.body):
        return Grade(Judgement.WRONG, "written otherwise")
    if a.words:
        return Grade(Judgement.CORRECT if a.body == b.body else Judgement.WRONG, "words")
    return compare_bodies(replace(a, unit="", name=""), replace(b, unit="", name=""))


def _undecorated(members: Sequence[str], forms: dict[str, Form]) -> list[tuple[str, str]]:
    """Pairs to join among equal bodies: those with the same unit and name, and bare ones where that is unambiguous."""
    decorations: dict[tuple[str, str], list[str]] = {}
    for member in members:
        form = forms.get(member)
        decorations.setdefault((form.unit, form.name) if form else ("", ""), []).append(member)
    pairs = [(group[0], member) for group in decorations.values() for member in group[1:]]
    units = {unit for unit, _ in decorations} - {""}
    names = {name for _, name in decorations} - {""}
    if len(units) <= 1 and len(names) <= 1:
        pairs += [(members[0], group[0]) for group in decorations.values()]
    return pairs


class _Joined:
    """Classes of names, each called by the one that is first in order."""

    def __init__(self, names: Iterable[str]) -> None:
        self._order = {name: place for place, name in enumerate(names)}
        self._parent = {name: name for name in self._order}

    def find(self, name: str) -> str:
        while self._parent[name] != name:
            name = self._parent[name]
        return name

    def join(self, a: str, b: str) -> None:
        first, second = sorted((self.find(a), self.find(b)), key=self._order.__getitem__)
        self._parent[second] = first

    def classes(self) -> list[list[str]]:
        classes: dict[str, list[str]] = {}
        for name in self._order:
            classes.setdefault(self.find(name), []).append(name)
        return list(classes.values())


KEYS: dict[str, Callable[[GraderOptions | None], Keys]] = {"exact": ExactKeys, "math": MathKeys}
"""The kinds of vote keys by name."""


def vote_keys(name: str, options: GraderOptions | None = None) -> Keys:
    """The kind of keys with this name. Raises `ConfigError` for an unknown one."""
    if name not in KEYS:
        raise unknown_name("kind of vote keys", name, KEYS)
    return KEYS[name](options)


@dataclass(frozen=True, slots=True)
class Merging:
    """What keys did to the votes of many problems, against exact keys."""

    problems: int
    answers_before: int
    answers_after: int
    winners_changed: int


def winners_changed(keys: Keys, votes: Iterable[Sequence[str]]) -> Merging:
    """Compare plurality under `keys` with that under exact keys; `votes`: each problem's answers in ballot order.

    A winner has changed when the exact winner is not in the class that wins.
    """
    problems = before = after = changed = 0
    for answers in votes:
        classes = keys.classes(answers)
        exact = plurality(Ballot(place, answer_key(answer)) for place, answer in enumerate(answers)).answer
        merged = plurality(Ballot(place, classes[answer]) for place, answer in enumerate(answers)).answer
        by_key = {answer_key(answer): classes[answer] for answer in answers}
        problems += 1
        before += len(by_key)
        after += len(set(by_key.values()))
        changed += exact is not None and by_key[exact] != merged
    return Merging(problems, before, after, changed)
