r"""Are two bodies of mathematics equal, as far as that can be told without a computer-algebra system?

A body is an answer without its unit and its name (see `fot.grading.forms`). What a computer-algebra system would read
as something else is told here, or is undecided; the rest are questions to it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from fot.grading.base import Grade, Judgement
from fot.grading.commas import split_list
from fot.grading.forms import Form
from fot.grading.numerals import read_numeral, same_numeral

__all__ = ["LETTERS", "Question", "compare_bodies", "grade_equality", "is_equation", "letters_differ_in_case"]


class Question(NamedTuple):
    """Two bodies that only algebra can compare; `is_rounded`: one of them is written with decimals."""

    gold: str
    answer: str
    is_rounded: bool


_CORRECT, _WRONG, _UNDECIDED = Judgement.CORRECT, Judgement.WRONG, Judgement.UNDECIDED
LETTERS = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]+")
"""Letters outside commands."""

_SIDE_BY_SIDE = re.compile(r"(?<!_)\d\s+\d|\d'|\d\s*_\s*[{\d]|\d\.\d+\.\d", re.ASCII)
_RATIO = re.compile(r"\d+(?:\s*:\s*\d+)+\Z", re.ASCII)
_CLOCK = re.compile(r"\d{1,2}(?:\s*:\s*\d\d)+\Z", re.ASCII)
_LOOSE_UNIT = re.compile(r"\d\s+(?:m|g|s|h|L|N|J|W|V|A|K)\Z")
_LOOSE_SLASH = re.compile(r"\d\s*/\s*\d+\s*(?:[a-zA-Z(]|\\(?:pi|sqrt|theta)(?![a-z]))")
_DOTS = re.compile(r"\\[lc]?dots(?![a-z])|\.\.\.|\N{HORIZONTAL ELLIPSIS}")
_EQUATION = re.compile(r"(?<![<>\\])=")
_DECIMALS = re.compile(r"\d\.\d|(?<!\d)\.\d")
_MATRIX = re.compile(r"\\begin\s*\{(?:[a-zA-Z]*matrix|array|cases)\}")
_UNREAD = re.compile(r"\\begin\s*\{cases\}|\\(?:zeta|Gamma)\s*\(|!\s*!")
_COMBINED = re.compile(r"\\(?:cup|cap|setminus|mid|mathbb)(?![a-z])|\\pm|[:|]")
_ARITHMETIC = re.compile(r"\\(?:frac|sqrt|cdot|times|pi|binom)(?![a-z])")
_WORKED = re.compile(r"[\d+*/^-]|\\(?:frac|sqrt|cdot|times)")
_MEASURED = re.compile(r"\||[a-zA-Z]\s*\(|\\(?!frac|sqrt|cdot|times)[a-zA-Z]")


def compare_bodies(gold: Form, answer: Form) -> Grade | Question:
    """The mathematics alone with its brackets; what stands around it has been dealt with."""
    gold, answer = _listed(gold, answer), _listed(answer, gold)
    numbers = read_numeral(gold.body), read_numeral(answer.body)
    if gold.listed and answer.listed and sorted(split_list(gold.listed)) == sorted(split_list(answer.listed)):
        return _told_listed(gold.body == answer.body)
    if not gold.bracket and not answer.bracket and numbers[0] and numbers[1]:
        return grade_equality(same_numeral(numbers[0], numbers[1]), "the same number", "another number")
    bodies = _bracketed(gold, answer)
    if isinstance(bodies, Grade):
        return bodies
    if bodies[0] == bodies[1]:
        return Grade(_CORRECT, "the same expression")
    return _compare_odd(*bodies) or _asked(*bodies)


def _asked(gold: str, answer: str) -> Grade | Question:
    bodies: tuple[str, str] | Grade = (gold, answer)
    if is_equation(answer) and not is_equation(gold) and len(split_list(answer)) == 1:
        bodies = _beside_equation(gold, answer)
    if isinstance(bodies, Grade):
        return bodies
    return Question(*bodies, is_rounded=any(_DECIMALS.search(body) for body in bodies))


def is_equation(body: str) -> bool:
    """Does the body, its left side restored or never taken away, hold an equals sign?"""
    while (outside := re.sub(r"\{[^{}]*\}", "", body)) != body:
        body = outside
    return bool(_EQUATION.search(body))


def _beside_equation(gold: str, answer: str) -> tuple[str, str] | Grade:
    """What is asked beside an answer such as `m+n=25` or `2+3=5`, of which algebra would read the right side alone."""
    *left, right = _EQUATION.split(answer)
    numbers = [part for part in left if not LETTERS.search(part) and "\\" not in _ARITHMETIC.sub("", part)]
    unknowns = [{*"".join(LETTERS.findall(part))} for part in left]
    for part, letters in zip(left, unknowns, strict=True):
        if len(letters) == 1 and _WORKED.search(part) and not _MEASURED.search(part):
            return Grade(_UNDECIDED, "an equation in one unknown, and the reference is none")
    if not numbers:
        return gold, answer
    return f"({', '.join([gold] * (len(numbers) + 1))})", f"({', '.join([*numbers, right])})"


def letters_differ_in_case(gold: str, answer: str) -> bool:
    """Are the letters outside commands the same only when their case is ignored? Algebra ignores it."""
    ours, theirs = (set("".join(LETTERS.findall(body))) for body in (gold, answer))
    return ours != theirs and {letter.lower() for letter in ours} == {letter.lower() for letter in theirs}


def _listed(form: Form, other: Form) -> Form:
    """Beside a list, what might be a number in thousands is a list as well."""
    is_list = other.bracket or len(split_list(other.body)) > 1
    return replace(form, body=form.listed, listed="") if form.listed and is_list else form


def _told_listed(same_order: bool) -> Grade:
    if same_order:
        return Grade(_CORRECT, "the same number")
    return Grade(_UNDECIDED, "numbers in thousands, or lists in another order?")


def _bracketed(gold: Form, answer: Form) -> tuple[str, str] | Grade:
    r"""Both bodies in brackets that can be compared; a bare list follows the other side's `()` or `\{\}`."""
    pair = gold.bracket or answer.bracket
    if gold.bracket and answer.bracket and gold.bracket != answer.bracket:
        return Grade(_WRONG, "other brackets")
    if bool(gold.bracket) != bool(answer.bracket):
        bare = (answer if gold.bracket else gold).body
        if _is_relation(bare) or _COMBINED.search(bare):  # x > 3 and (3, oo): algebra knows
            return _dressed(gold.body, gold.bracket), _dressed(answer.body, answer.bracket)
        if told := _beside_bare(*((gold, answer) if gold.bracket else (answer, gold))):
            return told
    return _dressed(gold.body, pair), _dressed(answer.body, pair)


def _beside_bare(held: Form, bare: Form) -> Grade | None:
    """What a list in brackets beside one without comes to before any algebra, if that is enough."""
    if _MATRIX.search(bare.body):
        return Grade(_UNDECIDED, "a matrix against a list")
    if r"\emptyset" in (held.body, bare.body):
        return Grade(_WRONG, "the empty set against the set of it")
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
    if _RATIO.match(gold) and _RATIO.match(answer):
        return _compare_ratios(gold, answer)
    if doubt := _doubt(gold, answer):
        return Grade(_UNDECIDED, doubt)
    lists = [split_list(body) for body in (gold, answer)]
    return None if len(lists[0]) == len(lists[1]) else _compare_lengths(gold, answer, lists)


def _compare_lengths(gold: str, answer: str, lists: list[list[str]]) -> Grade | None:
    """Lists of different length outside of any bracket."""
    if read_numeral(gold) or read_numeral(answer):
        return Grade(_WRONG, "one number against several")
    if min(map(len, lists)) == 1 or _COMBINED.search(gold + answer) or _is_relation(gold + answer):
        return None
    if set(lists[0]) == set(lists[1]):
        return Grade(_UNDECIDED, "the same parts, not as often")
    return Grade(_WRONG, "lists of different length")


def _compare_ratios(gold: str, answer: str) -> Grade:
    ours, theirs = ([int(part) for part in body.split(":")] for body in (gold, answer))
    clocks = [bool(_CLOCK.match(body)) for body in (gold, answer)]
    if any(clocks):
        if ours != theirs and not all(clocks):
            return Grade(_UNDECIDED, "a time or a ratio?")
        return grade_equality(ours == theirs, "the same time or ratio", "another time")
    is_same = len(ours) == len(theirs) and all(a * theirs[0] == b * ours[0] for a, b in zip(ours, theirs, strict=True))
    return grade_equality(is_same, "the same ratio", "another ratio")


def _doubt(gold: str, answer: str) -> str:
    """Why algebra is not to be asked about the two, or nothing."""
    if _SIDE_BY_SIDE.search(gold) or _SIDE_BY_SIDE.search(answer):
        return "numbers side by side, or a number with an index"
    if bool(_LOOSE_UNIT.search(gold)) != bool(_LOOSE_UNIT.search(answer)):
        return "one letter after a number: a unit or an unknown?"
    for pattern, doubt in ((_UNREAD, "a notation that is not read"), (_DOTS, "dots"), (_LOOSE_SLASH, "a loose slash")):
        if pattern.search(gold) or pattern.search(answer):
            return doubt
    if gold.count(r"\{") != answer.count(r"\{") and not _COMBINED.search(gold + answer):
        return "sets inside of sets"
    unions = [r"\cup" in body for body in (gold, answer)]
    if unions[0] != unions[1] and len(split_list(answer if unions[0] else gold)) > 1:
        return "a union of intervals against a list"
    return "a number, and the reference is an equation" if is_equation(gold) and read_numeral(answer) else ""


def grade_equality(equal: bool, if_equal: str, if_not: str) -> Grade:
    """Correct or wrong, with its reason."""
    return Grade(_CORRECT, if_equal) if equal else Grade(_WRONG, if_not)
