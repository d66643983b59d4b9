r"""A committed answer taken apart: the mathematics itself, and what is written around it.

    read_form(r"x = 5\text{ cm}")  ->  Form(body="5", unit="cm", name="x", bracket="", words=False)

Units, an assignment's left side and brackets are read here and compared as strings, because a computer-algebra system
drops them: to it `5 m` is `5 cm`, `101_2` is `101_3`, `east` is `seat` and `5 6` is 11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fot.grading.commas import is_in_thousands, separate, split_list
from fot.grading.spelling import one_spelling
from fot.grading.units import FUNCTIONS, fold, split_unit

__all__ = ["BRACKETS", "Form", "read_form"]


@dataclass(frozen=True, slots=True)
class Form:
    """`bracket` is the pair around a list of several (`()`, `[]`, `(]`, `[)`, `{}`), or empty.

    `listed`: what a number in thousands would be as a list (`1,234` as `1, 234`), else empty. `words`: the body is
    text, folded to lower case and single blanks; otherwise it is LaTeX without dollars.
    """

    body: str
    unit: str = ""
    name: str = ""
    bracket: str = ""
    listed: str = ""
    words: bool = False


BRACKETS = ("()", "[]", "(]", "[)", "{}")

_NAME = re.compile(
    r"\s*(?P<name>(?:m?\s*\\angle\s*[A-Z]+|\\frac\s*\{\s*d\s*\w\s*\}\s*\{\s*d\s*\w\s*\}|\\?[a-zA-Z]+'?(?:_(?:\{\w+\}|\w+))?)?(?:\s*\(\s*[a-zA-Z](?:\s*,\s*[a-zA-Z])*\s*\))?)\s*(?:=|\\in(?![a-z]))\s*(?P<rest>.+)\Z",
    re.DOTALL,
)
_UNKNOWN = re.compile(r"\\?[a-zA-Z]+")
_OPTION = re.compile(
    r"\\text\s*\{\s*(?P<letter>\([A-J]\))\s*\}[\s.:]*(?=\S)|(?P<bare>\([A-J]\))(?:\s*(?=[\d$])|\s+(?=[\\-]))"
)
_BUILDER = re.compile(
    r"\s*[a-z]\s*(?:\\in\s*\\mathbb\s*\{?R\}?\s*)?(?:\\mid|\\vert|\\colon|:|\|)\s*(?P<condition>.+)\Z", re.DOTALL
)
_SIGNS = re.compile(r"\\(?:pm|mp)(?![a-zA-Z])\s*")
_NAMED_LAST = re.compile(r"\s*(?P<rest>[^=a-zA-Z]*\d[^=a-zA-Z]*|[^=a-zA-Z]*\\frac[^=a-zA-Z]*)=\s*(?P<name>[a-zA-Z])\s*")
_RELATION = re.compile(r"[=<>]|\\(?:le|ge|ne|lt|gt|neq|equiv|approx)(?![a-zA-Z])")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_RUN = re.compile(r"[^\W\d_]{3,}")


def read_form(answer: str) -> Form:
    """The parts of an answer; linear in its length, which `fot.grading.limits` bounds."""
    text = one_spelling(answer)
    whole = re.fullmatch(r"\\text\s*\{([^{}]*)\}", text)
    if whole:
        text = whole.group(1)
    text = text.strip()
    option = _OPTION.match(text)
    text, unit = _split_units(text[option.end() :] if option else text)
    listed = text.replace(",", ", ") if is_in_thousands(text) else ""
    name, text, bracket = _split_names(separate(text))
    if option and not name:
        name = option.group("letter") or option.group("bare")
    if not bracket:
        text, bracket = _split_bracket(text.strip())
    if bracket and not unit:
        text, unit = _split_units(text, of_each=True)
    if _has_words(text):
        return Form(fold(text), unit, name, bracket, words=True)
    text, bracket = _written_out(text, bracket)
    return Form(_inner_degrees(text), unit, name, bracket, listed)


def _split_units(text: str, *, of_each: bool = False) -> tuple[str, str]:
    r"""Without the unit of the whole, or of each part: `20\%, 30\%` is 20, 30 in percent."""
    parts = split_list(separate(text))
    if len(parts) > 1:
        bare, units = zip(*map(split_unit, parts), strict=True)
        if units[0] and len(set(units)) == 1:
            return ", ".join(bare), units[0]
    return (text, "") if of_each else split_unit(text)


def _split_names(text: str) -> tuple[str, str, str]:
    """What the parts are named, the parts, and their bracket: `y=2, x=1` is (1, 2), named (x,y)."""
    names, parts = zip(*map(_split_name, split_list(text)), strict=True)
    if len(set(names)) == 1:
        return (names[0], ", ".join(parts), "") if names[0] else ("", text, "")
    if len(set(names)) < len(names) or not all(_UNKNOWN.fullmatch(name) for name in names):
        return "", text, ""
    ordered = sorted(zip(names, parts, strict=True))
    return f"({','.join(name for name, _ in ordered)})", ", ".join(part for _, part in ordered), "()"


def _split_name(part: str) -> tuple[str, str]:
    match = _NAME.match(part) or _NAMED_LAST.fullmatch(part)
    if match is None or _RELATION.search(match.group("rest")):
        return "", part
    return re.sub(r"[\s{}]+", "", match.group("name")), match.group("rest")


def _split_bracket(text: str) -> tuple[str, str]:
    """Without brackets around the whole; they count only around several, since `(5)` is 5 and `[5]` is a list."""
    inner = text.removeprefix("\\")
    if len(inner) < 2 or inner[0] not in "([{" or inner[-1] not in ")]}" or not _encloses(inner):
        return text, ""
    pair = inner[0] + inner[-1]
    inside = inner[1:-1].removesuffix("\\").strip()
    if pair not in BRACKETS or not inside:
        return text, ""
    if len(split_list(inside)) == 1:
        is_plain = pair == "()" or (pair == "{}" and not text.startswith("\\"))
        is_tuple = inside.startswith("(") and _encloses(inside)  # the set of one tuple is the tuple
        return _split_bracket(inside) if is_plain or is_tuple else (inside, pair)
    return inside, pair


def _written_out(text: str, bracket: str) -> tuple[str, str]:
    r"""A set by its condition as the condition, and one sign `\pm` as two values."""
    builder = _BUILDER.match(text) if bracket == "{}" else None
    if builder and _RELATION.search(builder.group("condition")):
        return builder.group("condition"), ""
    if bracket in ("", "{}") and len(_SIGNS.findall(text)) == 1 and len(split_list(text)) == 1:
        return f"{_SIGNS.sub('+', text)}, {_SIGNS.sub('-', text)}", bracket
    return text, bracket


def _encloses(text: str) -> bool:
    """Does the first bracket close at the last character?"""
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "{([") - (character in "})]")
        if depth == 0:
            return place == len(text) - 1
    return False


def _has_words(text: str) -> bool:
    bare = re.sub(r"\\(?:begin|end)\s*\{[a-zA-Z]*\}", " ", text)
    if re.search(r"\\text\s*\{[^{}]*[^\W\d_]{2}", bare):
        return True
    return any(run.group().lower() not in FUNCTIONS for run in _RUN.finditer(_COMMAND.sub(" ", bare)))


def _inner_degrees(text: str) -> str:
    r"""Degrees inside an expression are a number: `\cos 60\degree` is a cosine of pi thirds."""
    return re.sub(r"(\d+(?:\.\d+)?)\s*\\degree", r"(\1 \\cdot \\frac{\\pi}{180})", text)
