r"""A committed answer taken apart: the mathematics itself, and what is written around it.

    read_form(r"x = 5\text{ cm}")  ->  Form(body="5", unit="cm", name="x", bracket="", words=False)

Units, an assignment's left side and brackets are read here and compared as strings, because a computer-algebra system
drops them: to it `5 m` is `5 cm`, `101_2` is `101_3`, `east` is `seat` and `5 6` is 11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fot.grading.commas import is_in_thousands, separate, split_list

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

_CHARACTERS = str.maketrans(
    {
        "\N{MINUS SIGN}": "-",
        "\N{EN DASH}": "-",
        "\N{MULTIPLICATION SIGN}": r"\times ",
        "\N{MIDDLE DOT}": r"\cdot ",
        "\N{DOT OPERATOR}": r"\cdot ",
        "\N{DIVISION SIGN}": "/",
        "\N{PLUS-MINUS SIGN}": r"\pm ",
        "\N{SQUARE ROOT}": r"\sqrt ",
        "\N{INFINITY}": r"\infty ",
        "\N{DEGREE SIGN}": r"^\circ ",
        "\N{LESS-THAN OR EQUAL TO}": r"\le ",
        "\N{GREATER-THAN OR EQUAL TO}": r"\ge ",
        "\N{NOT EQUAL TO}": r"\ne ",
        "\N{UNION}": r"\cup ",
        "\N{INTERSECTION}": r"\cap ",
        "\N{EMPTY SET}": r"\emptyset ",
        "\N{ELEMENT OF}": r"\in ",
        "\N{GREEK SMALL LETTER PI}": r"\pi ",
        "\N{GREEK SMALL LETTER THETA}": r"\theta ",
        "\N{SUPERSCRIPT TWO}": "^2",
        "\N{SUPERSCRIPT THREE}": "^3",
        "\N{VULGAR FRACTION ONE HALF}": r"\frac{1}{2}",
        "\N{VULGAR FRACTION ONE QUARTER}": r"\frac{1}{4}",
        "\N{VULGAR FRACTION THREE QUARTERS}": r"\frac{3}{4}",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{NO-BREAK SPACE}": " ",
        "\N{FULLWIDTH LEFT PARENTHESIS}": "(",
        "\N{FULLWIDTH RIGHT PARENTHESIS}": ")",
        "\N{FULLWIDTH COMMA}": ",",
    }
)

_REWRITINGS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])\s*\.?", ""),
        (r"\\(?:displaystyle|textstyle|limits|boldsymbol)(?![a-zA-Z])", ""),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\frac\s*(\d)\s+(\d)", r"\\frac{\1}{\2}"),
        (r"\A\s*(?:=|\\approx(?![a-zA-Z]))\s*(?=\S)", ""),
        (r"\A\](?=[^\[\]]*[\[\]]\Z)", "("),
        (r"(?<=\A[\[(])([^\[\]]*)\[\Z", r"\1)"),
        (
            r"[\[(]\s*\\begin\s*\{array\}\s*(?:\{[^{}]*\})?(.*)\\end\s*\{array\}\s*[\])]",
            r"\\begin{pmatrix}\1\\end{pmatrix}",
        ),
        (r"\A\s*\\mathbb\s*\{?R\}?\s*\Z", r"(-\\infty,\\infty)"),
        (
            r"\\(?:mathrm|mathbf|mathit|mathsf|textbf|textit|textrm|textnormal|mbox|operatorname|rm|bf)(?=\s*\{)",
            r"\\text",
        ),
        (r"\\lbrace(?![a-zA-Z])", r"\\{"),
        (r"\\rbrace(?![a-zA-Z])", r"\\}"),
        (r"\\lbrack(?![a-zA-Z])", "["),
        (r"\\rbrack(?![a-zA-Z])", "]"),
        (r"\\langle(?![a-zA-Z])\s*", "("),
        (r"\s*\\rangle(?![a-zA-Z])", ")"),
        (r"\\(?:leq|leqslant)(?![a-zA-Z])", r"\\le"),
        (r"\\(?:geq|geqslant)(?![a-zA-Z])", r"\\ge"),
        (r"\\varnothing(?![a-zA-Z])", r"\\emptyset"),
        (r"(?<=\d)(?:\\[,!; ]|\{,\})(?=\d{3}(?!\d))", ""),
        (r"(?<!\\)\\[,!;: >]|\\q?quad(?![a-zA-Z])|(?<!\\)~", " "),
        (r"\\text\s*\{\s*(?:and|or)\s*,?\s*\}", ","),
        (r"(?<=[\s\d)}\]])(?:,\s*)?(?:and|or)(?=[\s\d(\\-])", ","),
        (r",\s*,", ","),
        (r"(?<=\d)\s*\^\s*\{?\s*\\circ\s*\}?\s*(?:\\text\s*\{)?\s*([CF])\b\s*\}?", r" deg \1"),
        (r"\^\s*(?:\{\s*\\(?:circ|degree)\s*\}|\\(?:circ|degree)(?![a-zA-Z]))|\\degree(?![a-zA-Z])", r"\\degree "),
        (r"\\\^", "^"),
    )
)

_WRAPPINGS = (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)"))

_UNITS = {
    "%": r"\\?%|percent(?:age)?|pct",
    "degree": r"\\degree|degrees?|deg",
    "celsius": r"deg(?:rees?)?\s*(?:C|Celsius)|°C",
    "fahrenheit": r"deg(?:rees?)?\s*(?:F|Fahrenheit)|°F",
    "radian": r"radians?|rad",
    "cm": r"cm|centimet(?:er|re)s?",
    "mm": r"mm|millimet(?:er|re)s?",
    "km": r"km|kilomet(?:er|re)s?",
    "meter": r"met(?:er|re)s?",
    "inch": r"inch(?:es)?",
    "foot": r"ft|foot|feet",
    "mile": r"miles?",
    "mph": r"mph|miles\s*per\s*hour",
    "kg": r"kg|kilograms?",
    "gram": r"grams?",
    "pound": r"lbs?|pounds?",
    "second": r"sec|secs|seconds?",
    "minute": r"mins?|minutes?",
    "hour": r"hrs?|hours?",
    "day": r"days?",
    "dollar": r"dollars?|USD|\\\$",
    "cent": r"cents?|\\cents?",
    "ohm": r"ohms?|\\Omega",
    "unit": r"(?:sq(?:uare|\.)?|cubic)?\s*units?",
}
_LETTER_UNITS = {
    "m": "meter", "g": "gram", "s": "second", "h": "hour", "C": "celsius", "F": "fahrenheit", "in": "inch",
    "mi": "mile",
}  # fmt: skip
_KNOWN = tuple((name, re.compile(rf"(?:{pattern})\Z", re.IGNORECASE)) for name, pattern in _UNITS.items())

_POWER = r"(?:\s*\^\s*\{?\s*(?P<power>[23])\s*\}?)?"
_TEXT_UNIT = re.compile(rf"(?<=[\d}})\]a-z!])\s*\\text\s*\{{(?P<unit>[^{{}}]+)\}}{_POWER}\s*\Z")
_BARE_UNIT = re.compile(rf"(?<=[\d}})\]])\s*(?P<unit>[a-zA-Z]{{2,}}(?:[\s/.-]+[a-zA-Z]+)*){_POWER}\s*\Z")
_SIGN_UNIT = re.compile(r"(?<=\S)\s*(?P<unit>\\?%|\\degree|\\Omega)\s*\Z")
_BASE = re.compile(r"(?<=[0-9A-Fa-f])\s*_\s*(?:\{\s*(?:\\text\s*\{)?(?P<base>\w+)\s*\}{1,2}|(?P<digit>\d))\s*\Z")
_MODULO = re.compile(
    r"\s*(?:\\pmod\s*(?:\{\s*(?P<a>[^{}]+)\}|(?P<b>\d))|\(?\s*(?:\\text\s*\{\s*\(?\s*mod\s*\}?|\\mod(?![a-z])|mod\b)\s*\{?(?P<c>\w+)\)?\}?\)?)\s*\Z"
)
_ANGLE = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-z])[^+\-]*\\degree\s*\Z")
_CURRENCY = re.compile(r"\s*\\?\$\s*(?=[\d.])|\s*(?P<sign>[€£¥])\s*(?=[\d.])")

_NAME = re.compile(
    r"\s*(?P<name>(?:\\?[a-zA-Z]+'?(?:_(?:\{\w+\}|\w+))?)?(?:\s*\(\s*[a-zA-Z](?:\s*,\s*[a-zA-Z])*\s*\))?)\s*(?:=|\\in(?![a-z]))\s*(?P<rest>.+)\Z",
    re.DOTALL,
)
_OPTION = re.compile(
    r"\\text\s*\{\s*(?P<letter>\([A-J]\))\s*\}[\s.:]*(?=\S)|(?P<bare>\([A-J]\))(?:\s*(?=[\d$])|\s+(?=[\\-]))"
)
_BUILDER = re.compile(
    r"\s*[a-z]\s*(?:\\in\s*\\mathbb\s*\{?R\}?\s*)?(?:\\mid|\\vert|\\colon|:|\|)\s*(?P<condition>.+)\Z", re.DOTALL
)
_OR = re.compile(r"\\text\s*\{\s*or\s*\}|\\(?:lor|vee)(?![a-zA-Z])|\bor\b")
_ONE_SIDED = re.compile(
    r"\\?[a-z]+\s*(?P<sign><|>|\\(?:lt|gt|leq?(?:slant)?|geq?(?:slant)?)(?![a-z]))\s*(?P<bound>[^<>=,]+)"
)
_SIGNS = re.compile(r"\\(?:pm|mp)(?![a-zA-Z])\s*")
_NAMED_LAST = re.compile(r"\s*(?P<rest>[^=a-zA-Z]*\d[^=a-zA-Z]*|[^=a-zA-Z]*\\frac[^=a-zA-Z]*)=\s*(?P<name>[a-zA-Z])\s*")
_RELATION = re.compile(r"[=<>]|\\(?:le|ge|ne|lt|gt|neq|equiv|approx)(?![a-zA-Z])")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_RUN = re.compile(r"[^\W\d_]{3,}")
_FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        "sin cos tan cot sec csc log ln exp sqrt pi det mod max min gcd lcm arcsin arccos arctan sinh cosh tanh deg "
        "inf infinity rank dim lim",
    )
)


def read_form(answer: str) -> Form:
    """The parts of an answer; linear in its length, which `fot.grading.limits` bounds."""
    text = _unwrap(answer.translate(_CHARACTERS))
    whole = re.fullmatch(r"\\text\s*\{([^{}]*)\}", text)
    if whole:
        text = whole.group(1)
    text = text.strip()
    option = _OPTION.match(text)
    text, unit = _split_unit(text[option.end() :] if option else text)
    listed = text.replace(",", ", ") if is_in_thousands(text) else ""
    text = separate(text)
    names, parts = zip(*map(_split_name, split_list(text)), strict=True)
    name = names[0] if len(set(names)) == 1 else ""
    if name:
        text = ", ".join(parts)
    elif option:
        name = option.group("letter") or option.group("bare")
    text, bracket = _split_bracket(text.strip())
    if _has_words(text):
        return Form(_fold(text), unit, name, bracket, words=True)
    text, bracket = _written_out(text, bracket)
    return Form(_inner_degrees(text), unit, name, bracket, listed)


def _unwrap(text: str) -> str:
    text = _union(text.strip())
    for opening, closing in _WRAPPINGS:
        if len(text) > len(opening + closing) and text.startswith(opening) and text.endswith(closing):
            inside = text[len(opening) : -len(closing)]
            if opening not in inside:
                text = inside.strip()
    for pattern, replacement in _REWRITINGS:
        text = pattern.sub(replacement, text)
    return re.sub(r"(?<![.\d])\.\Z|(?<=\d)\.\Z|(?<=[^\d.])\.\Z", "", text.strip()).strip()


def _union(text: str) -> str:
    r"""`x<2 \text{ or } x>3` as a union of intervals, when each side is such a relation."""
    parts = _OR.split(text.strip("$ "))
    intervals = [_interval(part.strip()) for part in parts]
    return r"\cup".join(intervals) if len(parts) > 1 and all(intervals) else text


def _interval(relation: str) -> str:
    match = _ONE_SIDED.fullmatch(relation)
    if match is None:
        return ""
    sign, bound = match.group("sign"), match.group("bound")
    is_open = sign in ("<", ">", r"\lt", r"\gt")
    if sign in ("<", r"\lt") or sign.startswith(r"\le"):
        return rf"(-\infty,{bound}{')' if is_open else ']'}"
    return rf"{'(' if is_open else '['}{bound},\infty)"


def _split_unit(text: str) -> tuple[str, str]:
    """The rest, and the unit's name with its power; what is not known as a unit is taken as it is written."""
    currency = _CURRENCY.match(text)
    if currency:
        return text[currency.end() :], currency.group("sign") or "dollar"
    modulo = _MODULO.search(text)
    if modulo and modulo.start():
        modulus = modulo.group("a") or modulo.group("b") or modulo.group("c")
        return text[: modulo.start()].strip(), f"modulo {modulus.strip()}"
    base = _BASE.search(text)
    if base and re.fullmatch(r"[0-9A-Fa-f. ]*\d[0-9A-Fa-f. ]*", text[: base.start()]):
        return text[: base.start()], f"base {base.group('base') or base.group('digit')}"
    for pattern in (_SIGN_UNIT, _TEXT_UNIT, _BARE_UNIT):
        match = pattern.search(text)
        if match and not _ANGLE.search(text) and (unit := _unit_name(match, bare=pattern is _BARE_UNIT)):
            return text[: match.start()].strip(), unit
    return text, ""


def _unit_name(match: re.Match[str], *, bare: bool) -> str:
    written = " ".join(match.group("unit").split())
    power = match.groupdict().get("power")
    for name, pattern in _KNOWN:
        if pattern.match(written):
            return f"{name}^{power}" if power else name
    squared = re.fullmatch(r"(sq(?:uare|\.)?|cubic)\s+(.+)", written, re.IGNORECASE)
    if squared:
        power, written = ("3" if squared.group(1).lower() == "cubic" else "2"), squared.group(2)
        return next((f"{name}^{power}" for name, pattern in _KNOWN if pattern.match(written)), f"{written}^{power}")
    if bare and not _RUN.search(written):
        return ""  # two letters after a number are a product sooner than a unit
    if bare and any(word.lower() in _FUNCTIONS for word in re.findall(r"[a-zA-Z]+", written)):
        return ""
    written = _LETTER_UNITS.get(written, " ".join(word.removesuffix("s") for word in _fold(written).split()))
    return f"{written}^{power}" if power else written


def _split_name(part: str) -> tuple[str, str]:
    match = _NAME.match(part) or _NAMED_LAST.fullmatch(part)
    if match is None or _RELATION.search(match.group("rest")):
        return "", part
    return re.sub(r"\s+", "", match.group("name")), match.group("rest")


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
        plain = pair == "()" or (pair == "{}" and not text.startswith("\\"))
        return _split_bracket(inside) if plain else (inside, pair)
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
    return any(run.group().lower() not in _FUNCTIONS for run in _RUN.finditer(_COMMAND.sub(" ", bare)))


def _fold(text: str) -> str:
    plain = re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text)
    return " ".join(plain.casefold().split()).strip(" .'\"")


def _inner_degrees(text: str) -> str:
    r"""Degrees inside an expression are a number: `\cos 60\degree` is a cosine of pi thirds."""
    return re.sub(r"(\d+(?:\.\d+)?)\s*\\degree", r"(\1 \\cdot \\frac{\\pi}{180})", text)
