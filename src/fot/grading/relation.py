r"""Which two answers are equal, as far as that can be told without a computer-algebra system; the rest are questions.

Two relations are built on the same parts. *Grading* has a reference that says what was asked, so what one side leaves
out is allowed it: `5\text{ cm}` and 5, `x=5` and 5, `50\%` and both 50 and 0.5. *Voting* has none, and concedes less
(see `fot.grading.keys`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fot.grading.base import Grade, Judgement
from fot.grading.forms import Form, split_list
from fot.grading.numerals import read_numeral, same_numeral

__all__ = ["Question", "compare_bodies", "compare_forms", "letters_differ_in_case"]


class Question(NamedTuple):
    """Two bodies that only algebra can compare; `is_rounded`: one of them is written with decimals."""

    gold: str
    answer: str
    is_rounded: bool


_CORRECT, _WRONG, _UNDECIDED = Judgement.CORRECT, Judgement.WRONG, Judgement.UNDECIDED
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        re.findall(
            r"\w+",
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty",
        )
    )
}
_CONVERTED = {"%": r"\frac{{{}}}{{100}}", "degree": r"\frac{{({})\pi}}{{180}}"}
_SIDE_BY_SIDE = re.compile(r"(?<!_)\d\s+\d|\d'|\d\s*_\s*[{\d]|\d\.\d+\.\d", re.ASCII)
_RATIO = re.compile(r"\d+(?:\s*:\s*\d+)+\Z", re.ASCII)
_CLOCK = re.compile(r"\d{1,2}(?:\s*:\s*\d\d)+\Z", re.ASCII)
_LOOSE_UNIT = re.compile(r"\d\s+(?:m|g|s|h|L|N|J|W|V|A|K)\Z")
_EQUATION = re.compile(r"(?<![<>\\])=")
_DECIMALS = re.compile(r"\d\.\d|(?<!\d)\.\d")
_MATRIX = re.compile(r"\\begin\s*\{[a-zA-Z]*matrix\}")
_LETTER = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]+")


def compare_forms(gold: Form, answer: Form) -> list[Grade | Question]:
    """The ways in which an answer may be right, to be tried in order: it is correct when one of them is."""
    if gold.words or answer.words:
        return [_compare_words(gold, answer)]
    if gold.name and answer.name and gold.name != answer.name:
        return [Grade(_WRONG, "another unknown")]
    if bool(gold.name) != bool(answer.name):
        gold, answer = _name_restored(gold, answer), _name_restored(answer, gold)
    return _compare_units(gold, answer)


def compare_bodies(gold: Form, answer: Form) -> Grade | Question:
    """The mathematics alone with its brackets; what stands around it has been dealt with."""
    numbers = read_numeral(gold.body), read_numeral(answer.body)
    if not gold.bracket and not answer.bracket and numbers[0] and numbers[1]:
        return _told(same_numeral(numbers[0], numbers[1]), "the same number", "another number")
    bodies = _bracketed(gold, answer)
    if isinstance(bodies, Grade):
        return bodies
    if bodies[0] == bodies[1]:
        return Grade(_CORRECT, "the same expression")
    odd = _compare_odd(*bodies)
    return odd or Question(*bodies, is_rounded=any(_DECIMALS.search(body) for body in bodies))


def letters_differ_in_case(gold: str, answer: str) -> bool:
    """Are the letters outside commands the same only when their case is ignored? Algebra ignores it."""
    ours, theirs = (set("".join(_LETTER.findall(body))) for body in (gold, answer))
    return ours != theirs and {letter.lower() for letter in ours} == {letter.lower() for letter in theirs}


def _told(equal: bool, if_equal: str, if_not: str) -> Grade:
    return Grade(_CORRECT, if_equal) if equal else Grade(_WRONG, if_not)


def _compare_words(gold: Form, answer: Form) -> Grade:
    ours, theirs = (" ".join((form.body.casefold(), form.unit)).strip() for form in (gold, answer))
    ours, theirs = _NUMBER_WORDS.get(ours, ours), _NUMBER_WORDS.get(theirs, theirs)
    if ours == theirs:
        return Grade(_CORRECT, "the same words")
    if all(form.words or form.body.isalpha() for form in (gold, answer)):
        if sorted(ours) == sorted(theirs) and len(ours) <= 4:
            return Grade(_UNDECIDED, "the same letters in another order: a word or a product?")
        return Grade(_WRONG, "other words")
    if re.search(r"\d", ours) and not re.search(r"\d", theirs) and answer.words:
        return Grade(_WRONG, "words, and the reference is a number")
    if read_numeral(ours) and read_numeral(theirs):
        return Grade(_WRONG, "another number")
    return Grade(_UNDECIDED, "words against mathematics")


def _name_restored(form: Form, other: Form) -> Form:
    """`y=2x` beside the equation `2x-y=0` is one too; beside anything else its left side is a name."""
    if form.name and _EQUATION.search(other.body):
        return Form(f"{form.name}={form.body}", form.unit, bracket=form.bracket)
    return form


def _compare_units(gold: Form, answer: Form) -> list[Grade | Question]:
    plain = compare_bodies(gold, answer)
    ours, theirs = (form.unit.removeprefix("unit") for form in (gold, answer))
    if ours == theirs or not ours or not theirs:
        return [plain, *_converted(gold, answer)] if ours != theirs else [plain]
    if isinstance(plain, Grade) and plain.verdict is _CORRECT:
        return [Grade(_WRONG, "the same number of another unit")]
    return [Grade(_UNDECIDED, "another unit, and units are not converted")]


def _converted(gold: Form, answer: Form) -> list[Grade | Question]:
    r"""A percentage or an angle beside a bare number may also be meant by value: `50\%` is 0.5."""
    pattern = _CONVERTED.get(gold.unit or answer.unit)
    if pattern is None:
        return []
    if gold.unit:
        gold = Form(pattern.format(gold.body), bracket=gold.bracket)
    else:
        answer = Form(pattern.format(answer.body), bracket=answer.bracket)
    return [compare_bodies(gold, answer)]


def _bracketed(gold: Form, answer: Form) -> tuple[str, str] | Grade:
    r"""Both bodies in brackets that can be compared; a bare list follows the other side's `()` or `\{\}`."""
    pair = gold.bracket or answer.bracket
    if gold.bracket and answer.bracket and gold.bracket != answer.bracket:
        return Grade(_WRONG, "other brackets")
    if bool(gold.bracket) != bool(answer.bracket):
        bare = answer if gold.bracket else gold
        if _MATRIX.search(bare.body):
            return Grade(_UNDECIDED, "a matrix against a list")
        if _is_relation(bare.body):  # x > 3 and (3, oo): algebra knows
            return _dressed(gold.body, gold.bracket), _dressed(answer.body, answer.bracket)
        if pair not in ("()", "{}"):
            return Grade(_WRONG, "other brackets")
        if len(split_list(gold.body)) != len(split_list(answer.body)) and "pm" not in gold.body + answer.body:
            return Grade(_WRONG, "lists of different length")
    return _dressed(gold.body, pair), _dressed(answer.body, pair)


def _is_relation(body: str) -> bool:
    return bool(re.search(r"[<>]|\\(?:le|ge|lt|gt)(?![a-z])", body))


def _dressed(body: str, pair: str) -> str:
    if not pair:
        return body
    return rf"\{{{body}\}}" if pair == "{}" else f"{pair[0]}{body}{pair[1]}"


def _compare_odd(gold: str, answer: str) -> Grade | None:
    """What algebra would read as something else: clock times, numbers side by side, one-letter units."""
    if _RATIO.match(gold) and _RATIO.match(answer) and (_CLOCK.match(gold) or _CLOCK.match(answer)):
        ours, theirs = ([int(part) for part in body.split(":")] for body in (gold, answer))
        if ours != theirs and not (_CLOCK.match(gold) and _CLOCK.match(answer)):
            return Grade(_UNDECIDED, "a time or a ratio?")
        return _told(ours == theirs, "the same time or ratio", "another time")
    if _SIDE_BY_SIDE.search(gold) or _SIDE_BY_SIDE.search(answer):
        return Grade(_UNDECIDED, "numbers side by side, or a number with an index")
    if bool(_LOOSE_UNIT.search(gold)) != bool(_LOOSE_UNIT.search(answer)):
        return Grade(_UNDECIDED, "one letter after a number: a unit or an unknown?")
    numbers = read_numeral(gold), read_numeral(answer)
    if any(numbers) and len(split_list(gold)) != len(split_list(answer)):
        return Grade(_WRONG, "one number against several")
    return None
