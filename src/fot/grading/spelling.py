r"""One spelling for what is written in many ways: Unicode signs, LaTeX commands, Markdown.

    one_spelling(r"$\dfrac 1 2$")  ->  r"\frac{1}{2}"
    one_spelling("2√3")            ->  r"2\sqrt{3}"

A rewriting never changes a value. Linear in the length, which `fot.grading.limits` bounds.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["one_spelling"]

_SIGNS = {
    "\N{MINUS SIGN}": "-",
    "\N{EN DASH}": "-",
    "\N{MULTIPLICATION SIGN}": r"\times ",
    "\N{MIDDLE DOT}": r"\cdot ",
    "\N{DOT OPERATOR}": r"\cdot ",
    "\N{DIVISION SIGN}": "/",
    "\N{PLUS-MINUS SIGN}": r"\pm ",
    "\N{SQUARE ROOT}": r"\sqrt ",
    "\N{CUBE ROOT}": r"\sqrt[3]",
    "\N{INFINITY}": r"\infty ",
    "\N{DEGREE SIGN}": r"^\circ ",
    "\N{ALMOST EQUAL TO}": r"\approx ",
    "\N{LESS-THAN OR EQUAL TO}": r"\le ",
    "\N{GREATER-THAN OR EQUAL TO}": r"\ge ",
    "\N{NOT EQUAL TO}": r"\ne ",
    "\N{UNION}": r"\cup ",
    "\N{INTERSECTION}": r"\cap ",
    "\N{EMPTY SET}": r"\emptyset ",
    "\N{ELEMENT OF}": r"\in ",
    "\N{GREEK SMALL LETTER PI}": r"\pi ",
    "\N{GREEK SMALL LETTER THETA}": r"\theta ",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{NO-BREAK SPACE}": " ",
}
_FULL_WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_FRACTION_SLASH = "\N{FRACTION SLASH}"


def _vulgar_fractions() -> dict[str, str]:
    fractions = {}
    for character in map(chr, (*range(0xBC, 0xBF), *range(0x2150, 0x215F))):
        above, slash, below = unicodedata.normalize("NFKC", character).partition(_FRACTION_SLASH)
        if slash:
            fractions[character] = rf"\frac{{{above}}}{{{below}}}"
    return fractions


_CHARACTERS = str.maketrans(_SIGNS | _FULL_WIDTH | _vulgar_fractions())
_RAISED = re.compile("[\N{SUPERSCRIPT TWO}\N{SUPERSCRIPT THREE}\N{SUPERSCRIPT ONE}\u2070-\u207f]+")
_LOWERED = re.compile("[\u2080-\u208e]+")
_ROOTED = re.compile("([\N{SQUARE ROOT}\N{CUBE ROOT}])\\s*(\\d+)")

_REWRITINGS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\A\*\*(?=[^*]+\*\*\Z)|(?<=[^*])\*\*\Z", ""),
        (r"\*\*", "^"),
        (r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])\s*\.?", ""),
        (r"\\(?:displaystyle|textstyle|limits|boldsymbol)(?![a-zA-Z])|\\(?:text)?color\s*\{[a-zA-Z]*\}", ""),
        (r"\\underline\s*\{([^{}]*)\}", r"\1"),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\frac\s*(\d)\s+(\d)", r"\\frac{\1}{\2}"),
        (r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
        (r"\{\s*([^{}\\]+?)\s*\\choose\s+([^{}\\]+?)\s*\}", r"\\binom{\1}{\2}"),
        (r"\\log\s*_\s*(?:e(?![a-zA-Z])|\{\s*e\s*\})", r"\\ln "),
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
        (r"\\text\s*\{\s*([ie])\s*\}", r" \1 "),  # of roman type, and no unit
        (r"\\text\s*\{[\s.]*\}", " "),
        (r"\\mu\s*\\text\s*\{\s*(?=\w)", r"\\text{micro "),
        (r"\\lbrace(?![a-zA-Z])", r"\\{"),
        (r"\\rbrace(?![a-zA-Z])", r"\\}"),
        (r"\\lbrack(?![a-zA-Z])", "["),
        (r"\\rbrack(?![a-zA-Z])", "]"),
        (r"\\langle(?![a-zA-Z])\s*", "("),
        (r"\s*\\rangle(?![a-zA-Z])", ")"),
        (r"\\(?:leq|leqslant)(?![a-zA-Z])", r"\\le"),
        (r"\\(?:geq|geqslant)(?![a-zA-Z])", r"\\ge"),
        (r"\\varnothing(?![a-zA-Z])|\\\{\s*\\\}", r"\\emptyset"),
        (r"(?<=\d)(?:\\[,!; ]|\{,\})(?=\d{3}(?!\d))", ""),
        (r"(?<!\\)\\[,!;: >]|\\q?quad(?![a-zA-Z])|(?<!\\)~", " "),
        (r"\\text\s*\{\s*(?:and|or)\s*,?\s*\}", ","),
        (r"(?<=[\s\d)}\]])(?:,\s*)?(?:and|or)(?=[\s\d(\\-])", ","),
        (r",\s*,", ","),
        (r"(?<=\d)\s*(?:\\text\s*\{\s*to\s*\}|\bto\b)\s*(?=\d)", ":"),
        (r"(?<=\d)\s*\^\s*\{?\s*(?:\\text\s*\{)?\s*(st|nd|rd|th)\b\s*\}*\Z", r"\\text{\1}"),
        (r"(?<=\d)\s*\^\s*\{?\s*\\circ\s*\}?\s*(?:\\text\s*\{)?\s*([CF])\b\s*\}?", r" deg \1"),
        (r"\^\s*(?:\{\s*\\(?:circ|degree)\s*\}|\\(?:circ|degree)(?![a-zA-Z]))|\\degree(?![a-zA-Z])", r"\\degree "),
        (r"\\\^", "^"),
    )
)

_WRAPPINGS = (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)"))
_OR = re.compile(r"\\text\s*\{\s*or\s*\}|\\(?:lor|vee)(?![a-zA-Z])|\bor\b")
_ONE_SIDED = re.compile(
    r"\\?[a-z]+\s*(?P<sign><|>|\\(?:lt|gt|leq?(?:slant)?|geq?(?:slant)?)(?![a-z]))\s*(?P<bound>[^<>=,]+)"
)
_FALLING = re.compile(r"([^<>=,\\]+)(>|\\ge?(?![a-z]))([^<>=,\\]+)(>|\\ge?(?![a-z]))([^<>=,\\]+)")


def one_spelling(answer: str) -> str:
    """The answer without what is around its whole, in one spelling."""
    text = _RAISED.sub(lambda run: f"^{{{_level(run.group())}}}", answer)
    text = _LOWERED.sub(lambda run: f"_{{{_level(run.group())}}}", text)
    text = _ROOTED.sub(r"\1{\2}", text)
    text = _union(text.translate(_CHARACTERS).strip())
    for opening, closing in _WRAPPINGS:
        if len(text) > len(opening + closing) and text.startswith(opening) and text.endswith(closing):
            inside = text[len(opening) : -len(closing)]
            if opening not in inside:
                text = inside.strip()
    for pattern, replacement in _REWRITINGS:
        text = pattern.sub(replacement, text)
    text = re.sub(r"(?<![.\d])\.\Z|(?<=\d)\.\Z|(?<=[^\d.])\.\Z", "", text.strip()).strip()
    return _rising(text)


def _level(run: str) -> str:
    return unicodedata.normalize("NFKC", run).translate(_CHARACTERS)


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


def _rising(text: str) -> str:
    """`3>x>2` as `2<x<3`."""
    match = _FALLING.fullmatch(text)
    if match is None:
        return text
    above, first, middle, second, below = match.groups()
    signs = ["<" if sign == ">" else r"\le " for sign in (second, first)]
    return f"{below.strip()}{signs[0]}{middle.strip()}{signs[1]}{above.strip()}"
