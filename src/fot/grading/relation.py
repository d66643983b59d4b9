r"""Which two answers are equal, as far as that can be told without a computer-algebra system; the rest are questions.

Two relations are built on the same parts. *Grading* has a reference that says what was asked, so what one side leaves
out is allowed it: `5\text{ cm}` and 5, `x=5` and 5, `50\%` and both 50 and 0.5. *Voting* has none, and concedes less
(see `fot.grading.keys`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from fot.grading.base import Grade, Judgement
from fot.grading.commas import split_list
from fot.grading.forms import Form
from fot.grading.numerals import read_numeral, same_numeral

__all__ = ["Question", "compare_bodies", "compare_forms", "is_equation", "letters_differ_in_case"]


class Question(NamedTuple):
    """Two bodies that only algebra can compare; `is_rounded`: one of them is written with decimals."""

    gold: str
    answer: str
    is_rounded: bool


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
_CONVERTED = {"%": r"\frac{{{}}}{{100}}", "degree": r"\frac{{({})\pi}}{{180}}"}
_SIDE_BY_SIDE = re.compile(r"(?<!_)\d\s+\d|\d'|\d\s*_\s*[{\d]|\d\.\d+\.\d", re.ASCII)
_RATIO = re.compile(r"\d+(?:\s*:\s*\d+)+\Z", re.ASCII)
_CLOCK = re.compile(r"\d{1,2}(?:\s*:\s*\d\d)+\Z", re.ASCII)
_LOOSE_UNIT = re.compile(r"\d\s+(?:m|g|s|h|L|N|J|W|V|A|K)\Z")
_EQUATION = re.compile(r"(?<![<>\\])=")
_DECIMALS = re.compile(r"\d\.\d|(?<!\d)\.\d")
_MATRIX = re.compile(r"\\begin\s*\{[a-zA-Z]*matrix\}")
_UNREAD = re.compile(r"\\(?:zeta|Gamma)\s*\(|!\s*!")
_LETTER = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]+")


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


def compare_bodies(gold: Form, answer: Form) -> Grade | Question:
    """The mathematics alone with its brackets; what stands around it has been dealt with."""
    gold, answer = _listed(gold, answer), _listed(answer, gold)
    numbers = read_numeral(gold.body), read_numeral(answer.body)
    if gold.listed and answer.listed and sorted(split_list(gold.listed)) == sorted(split_list(answer.listed)):
        return _told_listed(gold.body == answer.body)
    if not gold.bracket and not answer.bracket and numbers[0] and numbers[1]:
        return _told(same_numeral(numbers[0], numbers[1]), "the same number", "another number")
    bodies = _bracketed(gold, answer)
    if isinstance(bodies, Grade):
        return bodies
    if bodies[0] == bodies[1]:
        return Grade(_CORRECT, "the same expression")
    odd = _compare_odd(*bodies)
    return odd or Question(*bodies, is_rounded=any(_DECIMALS.search(body) for body in bodies))


def is_equation(body: str) -> bool:
    """Does the body, its left side restored or never taken away, hold an equals sign?"""
    while (outside := re.sub(r"\{[^{}]*\}", "", body)) != body:
        body = outside
    return bool(_EQUATION.search(body))


def letters_differ_in_case(gold: str, answer: str) -> bool:
    """Are the letters outside commands the same only when their case is ignored? Algebra ignores it."""
    ours, theirs = (set("".join(_LETTER.findall(body))) for body in (gold, answer))
    return ours != theirs and {letter.lower() for letter in ours} == {letter.lower() for letter in theirs}


def _listed(form: Form, other: Form) -> Form:
    """Beside a list, what might be a number in thousands is a list as well."""
    is_list = other.bracket or len(split_list(other.body)) > 1
    return replace(form, body=form.listed, listed="") if form.listed and is_list else form


def _told_listed(same_order: bool) -> Grade:
    if same_order:
        return Grade(_CORRECT, "the same number")
    return Grade(_UNDECIDED, "numbers in thousands, or lists in another order?")


def _told(equal: bool, if_equal: str, if_not: str) -> Grade:
    return Grade(_CORRECT, if_equal) if equal else Grade(_WRONG, if_not)


def _compare_words(gold: Form, answer: Form) -> Grade:
    ours, theirs = (_plain_words(" ".join((form.body.casefold(), form.unit)).strip()) for form in (gold, answer))
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


def _plain_words(text: str) -> str:
    """Without an article, one way to list, and numbers as digits."""
    text = re.sub(r"\s*(?:,\s*)?\b(?:and|or)\b\s*|\s*,\s*", ", ", re.sub(r"\A(?:an?|the)\s+(?=\S{2})", "", text))
    return _NUMBER_WORDS.get(text, text)


def _name_restored(form: Form, other: Form) -> Form:
    """`y=2x` beside the equation `2x-y=0` is one too; beside anything else its left side is a name."""
    if form.name and is_equation(other.body):
        return Form(f"{form.name}={form.body}", form.unit, bracket=form.bracket)
    return form


def _solved_for(name: str, body: str) -> bool:
    """Does the other side's unknown stand in this one's body, as `y=x+1` and `x=y-1` have it?"""
    return len(name) == 1 and name in set("".join(_LETTER.findall(body)))


def _compare_units(gold: Form, answer: Form) -> list[Grade | Question]:
    plain = compare_bodies(gold, answer)
    ours, theirs = (form.unit.removeprefix("unit") for form in (gold, answer))
    if "base " in ours + theirs and (told := _compare_bases(gold, answer)):
        return [told]
    if ours == theirs or not ours or not theirs:
        return [plain, *_converted(gold, answer)] if ours != theirs else [plain]
    if isinstance(plain, Grade) and plain.verdict is _CORRECT:
        words = set(ours.split()), set(theirs.split())
        if words[0] < words[1] or words[1] < words[0]:  # `5 years` and `5 years old`, but also `m` and `m per second`
            return [Grade(_UNDECIDED, "one unit says more than the other")]
        return [Grade(_WRONG, "the same number of another unit")]
    return [Grade(_UNDECIDED, "another unit, and units are not converted")]


def _compare_bases(gold: Form, answer: Form) -> Grade | None:
    """Numbers with a base by value; without a base, the same digits are the same, and the same value is a question."""
    values = _in_base(gold), _in_base(answer)
    if values[0] is None or values[1] is None:
        return None
    if gold.unit and answer.unit:
        return _told(values[0] == values[1], "the same number in its base", "another number in its base")
    if gold.body != answer.body and values[0] == values[1]:
        return Grade(_UNDECIDED, "the same value, and a base was asked for")
    return None


def _in_base(form: Form) -> int | None:
    base = form.unit.removeprefix("base ") or "10"
    try:
        return int(form.body.strip(), int(base)) if base.isdigit() and base.isascii() else None
    except ValueError:
        return None


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
        if _is_relation((answer if gold.bracket else gold).body):  # x > 3 and (3, oo): algebra knows
            return _dressed(gold.body, gold.bracket), _dressed(answer.body, answer.bracket)
        if told := _beside_bare(*((gold, answer) if gold.bracket else (answer, gold))):
            return told
    return _dressed(gold.body, pair), _dressed(answer.body, pair)


def _beside_bare(held: Form, bare: Form) -> Grade | None:
    """What a list in brackets beside one without comes to before any algebra, if that is enough."""
    if _MATRIX.search(bare.body):
        return Grade(_UNDECIDED, "a matrix against a list")
    if held.bracket not in ("()", "{}"):
        return Grade(_WRONG, "other brackets")
    if len(split_list(held.body)) == len(split_list(bare.body)) or "pm" in held.body + bare.body:
        return None
    if held.body.replace(", ", "") == bare.body:
        return Grade(_UNDECIDED, "a list, or a number in thousands?")
    return Grade(_WRONG, "lists of different length")


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
    if doubt := _doubt(gold, answer):
        return Grade(_UNDECIDED, doubt)
    if (read_numeral(gold) or read_numeral(answer)) and len(split_list(gold)) != len(split_list(answer)):
        return Grade(_WRONG, "one number against several")
    return None


def _doubt(gold: str, answer: str) -> str:
    """Why algebra is not to be asked about the two, or nothing."""
    if _SIDE_BY_SIDE.search(gold) or _SIDE_BY_SIDE.search(answer):
        return "numbers side by side, or a number with an index"
    if bool(_LOOSE_UNIT.search(gold)) != bool(_LOOSE_UNIT.search(answer)):
        return "one letter after a number: a unit or an unknown?"
    if _UNREAD.search(gold) or _UNREAD.search(answer):
        return "a function that is not read"
    unions = [r"\cup" in body for body in (gold, answer)]
    if unions[0] != unions[1] and len(split_list(answer if unions[0] else gold)) > 1:
        return "a union of intervals against a list"
    return "a number, and the reference is an equation" if is_equation(gold) and read_numeral(answer) else ""
