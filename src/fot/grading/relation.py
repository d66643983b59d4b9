r"""Which two answers are equal, as far as that can be told without a computer-algebra system; the rest are questions.

Two relations are built on the same parts. *Grading* has a reference that says what was asked, so what one side leaves
out is allowed it: `5\text{ cm}` and 5, `x=5` and 5, `50\%` and both 50 and 0.5. *Voting* has none, and concedes less
(see `fot.grading.keys`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

from fot.grading.base import Grade, Judgement
from fot.grading.bodies import LETTERS, Question, compare_bodies, grade_equality, is_equation
from fot.grading.commas import split_list
from fot.grading.forms import Form
from fot.grading.numerals import read_numeral
from fot.grading.units import SCALES, changes_number

__all__ = ["compare_forms"]

_CORRECT, _WRONG, _UNDECIDED = Judgement.CORRECT, Judgement.WRONG, Judgement.UNDECIDED
_SMALL = tuple(
    re.findall(
        r"\w+",
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen",
    )
)
_TENS = tuple(re.findall(r"\w+", "twenty thirty forty fifty sixty seventy eighty ninety"))
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_SMALL)} | {
    f"{tens}{joint}{ones}": str(value + unit)
    for value, tens in zip(range(20, 100, 10), _TENS, strict=True)
    for unit, ones in enumerate(("", *_SMALL[1:10]))
    for joint in ("- " if ones else ("",))
}
_COUNTING = {*_SMALL, *_TENS, *SCALES, "none", "nil", "once", "twice", "half", "third", "quarter", "dozen", "infinite"}
_PLURAL = re.compile(r"(?<=\w{3})s\b")
_CONVERTED = {"%": r"\frac{{{}}}{{100}}", "degree": r"\frac{{({})\pi}}{{180}}"} | {
    word: rf"({{}})\cdot 10^{{{{{power}}}}}" for word, power in SCALES.items()
}
_DECIMAL = re.compile(r"-?\d*\.\d+", re.ASCII)
_TEMPERATURES = ({"degree", "celsius"}, {"degree", "fahrenheit"})


def compare_forms(gold: Form, answer: Form) -> list[Grade | Question]:
    """The ways in which an answer may be right, to be tried in order: it is correct when one of them is."""
    if gold.words or answer.words:
        return [_compare_words(gold, answer)]
    if gold.name.startswith("(") and answer.body == gold.name.strip("()"):
        return [Grade(_CORRECT, "the option's letter")]
    if answer.name.startswith("(") and gold.body == answer.name.strip("()"):
        return [Grade(_CORRECT, "the option's letter")]
    if gold.name and answer.name and gold.name != answer.name:
        if not _solved_for(gold.name, answer.body) or not _solved_for(answer.name, gold.body):
            return [Grade(_WRONG, "another unknown")]
        gold, answer = (Form(f"{form.name}={form.body}", form.unit) for form in (gold, answer))
    if bool(gold.name) != bool(answer.name):
        gold, answer = _name_restored(gold, answer), _name_restored(answer, gold)
    return _compare_units(gold, answer)


def _compare_words(gold: Form, answer: Form) -> Grade:
    ours, theirs = (_plain_words(" ".join((form.body.casefold(), form.unit)).strip()) for form in (gold, answer))
    if ours == theirs:
        return Grade(_CORRECT, "the same words")
    if all(form.words or form.body.isalpha() for form in (gold, answer)):
        doubt = _like_words(ours, theirs)
        return Grade(_UNDECIDED, doubt) if doubt else Grade(_WRONG, "other words")
    if _is_number(gold) and answer.words and not re.search(r"\d", theirs):
        if _COUNTING.isdisjoint(re.findall(r"\w+", theirs)):
            return Grade(_WRONG, "words, and the reference is a number")
        return Grade(_UNDECIDED, "a number in words")
    if read_numeral(ours) and read_numeral(theirs):
        return Grade(_WRONG, "another number")
    return Grade(_UNDECIDED, "words against mathematics")


def _like_words(ours: str, theirs: str) -> str:
    """Why the two may be the same after all, or nothing."""
    if sorted(ours) == sorted(theirs) and len(ours) <= 4:
        return "the same letters in another order: a word or a product?"
    return "one or several?" if _PLURAL.sub("", ours) == _PLURAL.sub("", theirs) else ""


def _is_number(form: Form) -> bool:
    """Digits, and no unknown among them?"""
    return bool(re.search(r"\d", form.body)) and not form.words and not LETTERS.search(form.body)


def _plain_words(text: str) -> str:
    """Without an article, one way to list, and numbers as digits."""
    text = re.sub(
        r"\s*(?:,\s*)?\b(?:and|or)\b\s*|\s*,\s*", ", ", re.sub(r"\A(?:option\s+|(?:an?|the)\s+(?=\S{2}))", "", text)
    )
    return _NUMBER_WORDS.get(text, text)


def _name_restored(form: Form, other: Form) -> Form:
    """`y=2x` beside the equation `2x-y=0` is one too; beside anything else its left side is a name."""
    if form.name and is_equation(other.body):
        return Form(f"{form.name}={form.body}", form.unit, bracket=form.bracket)
    return form


def _solved_for(name: str, body: str) -> bool:
    """Does the other side's unknown stand in this one's body, as `y=x+1` and `x=y-1` have it?"""
    return len(name) == 1 and name in set("".join(LETTERS.findall(body)))


def _compare_units(gold: Form, answer: Form) -> list[Grade | Question]:
    plain = compare_bodies(gold, answer)
    ours, theirs = _generic(gold.unit, answer.unit), _generic(answer.unit, gold.unit)
    if "base " in ours + theirs and (told := _compare_bases(gold, answer)):
        return [told]
    if ours == theirs:
        return [plain]
    if {ours, theirs} == {"degree", "radian"}:
        return [_converted(*(replace(form, unit=form.unit.replace("radian", "")) for form in (gold, answer)))]
    if not ours or not theirs:
        return [_conceded(gold, answer, plain), *([_converted(gold, answer)] if _pattern(gold, answer) else [])]
    if isinstance(plain, Grade) and plain.verdict is _CORRECT:
        return [_told_units(ours, theirs)]
    return [Grade(_UNDECIDED, "another unit, and units are not converted")]


def _generic(unit: str, other: str) -> str:
    """`units` is whatever the other side has, to the same power."""
    name, _, power = unit.partition("^")
    return other if name == "unit" and power == other.partition("^")[2] else "" if unit == "unit" else unit


def _told_units(ours: str, theirs: str) -> Grade:
    """Two units on the same number."""
    words = set(ours.split()), set(theirs.split())
    if words[0] < words[1] or words[1] < words[0]:  # `5 years` and `5 years old`, but also `m` and `m per second`
        return Grade(_UNDECIDED, "one unit says more than the other")
    if ours.casefold() == theirs.casefold() or {ours, theirs} in _TEMPERATURES:
        return Grade(_UNDECIDED, "a unit that may be another")
    return Grade(_WRONG, "the same number of another unit")


def _conceded(gold: Form, answer: Form, plain: Grade | Question) -> Grade | Question:
    """The comparison with the unit of one side left out, unless it says another number then."""
    unit = gold.unit or answer.unit
    if isinstance(plain, Grade) and plain.verdict is not _CORRECT:
        return plain
    if changes_number(unit):
        return Grade(_UNDECIDED, "what stands after the number may change it")
    if unit == "%" and answer.unit and _is_at_most_one(gold):
        return Grade(_UNDECIDED, "a percentage, or a share?")
    return plain


def _is_at_most_one(form: Form) -> bool:
    numeral = read_numeral(form.body)
    return numeral is not None and abs(numeral.value) <= 1


def _compare_bases(gold: Form, answer: Form) -> Grade | None:
    """Numbers with a base by value; without a base, the same digits are the same, and the same value is a question."""
    values = _in_base(gold), _in_base(answer)
    if any(value is None and form.unit for value, form in zip(values, (gold, answer), strict=True)):
        return Grade(_UNDECIDED, "no number in its base")
    if None in values:
        return None
    if gold.unit and answer.unit:
        return grade_equality(values[0] == values[1], "the same number in its base", "another number in its base")
    if gold.body != answer.body and values[0] == values[1]:
        return Grade(_UNDECIDED, "the same value, and a base was asked for")
    return None


def _in_base(form: Form) -> int | None:
    base = _NUMBER_WORDS.get(name := form.unit.removeprefix("base ") or "10", name)
    try:
        return int(form.body.strip(), int(base)) if base.isdigit() and base.isascii() else None
    except ValueError:
        return None


def _pattern(gold: Form, answer: Form) -> str:
    return _CONVERTED.get((gold.unit or answer.unit).partition(" ")[0], "")


def _converted(gold: Form, answer: Form) -> Grade | Question:
    r"""A percentage, an angle or a scale beside a bare number may also be meant by value: `50\%` is 0.5."""
    pattern = _pattern(gold, answer)
    if gold.unit:
        gold = Form(_by_value(gold.body, pattern), bracket=gold.bracket)
    else:
        answer = Form(_by_value(answer.body, pattern), bracket=answer.bracket)
    return compare_bodies(gold, answer)


def _by_value(body: str, pattern: str) -> str:
    """Each part of a list by value; a decimal stays a decimal, which may be another number rounded."""
    if pattern != _CONVERTED["%"]:
        return ", ".join(pattern.format(part) for part in split_list(body))
    shifted = (
        f"{Decimal(part).scaleb(-2):f}" if _DECIMAL.fullmatch(part) else pattern.format(part)
        for part in split_list(body)
    )
    return ", ".join(shifted)
