r"""Which answers count as the same vote: a canonical key of what a rollout committed to.

Keys are exact after a few rewritings that never change a value: outer dollars, blanks around signs, spacing commands,
`\text{…}` around the whole answer, and leading zeros of a whole number (AIME's `033`). Anything cleverer is a grader's.
"""

from __future__ import annotations

import re

__all__ = ["answer_key"]

_SPACING = re.compile(r"\\[!,;: ]|~")
_BETWEEN_NUMBERS = re.compile(r"(?<=\d)(?:\\[,;: ]|~)+(?=\d)(?!\d{3}(?!\d))", re.ASCII)
_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\{([^{}]*)\}")
_INTEGER = re.compile(r"([+-]?)0*(\d+)\Z", re.ASCII)
_LETTER = re.compile(r"\(?([A-Z])[).]?\Z")
_LEFT_RIGHT = re.compile(r"\\(?:left|right)(?![a-zA-Z])")
_AROUND_SIGNS = re.compile(r"\s*([^\w\s])\s*")
_LONG = 4096


def answer_key(answer: str) -> str:
    """The key under which an answer is counted and compared; equal keys are one answer, and a key is its own key."""
    key = answer.strip()
    if "\n" in key or len(key) > _LONG:  # code, or hostile: rewriting could only harm
        return answer.strip("\n").rstrip()
    while (rewritten := _rewrite(key)) != key and rewritten:
        key = rewritten
    return key


def _rewrite(key: str) -> str:
    key = _BETWEEN_NUMBERS.sub(" ", key.strip("$").strip())  # `5\ 6` is not 56; `10\,000` is a number
    key = _SPACING.sub("", key)
    key = _LEFT_RIGHT.sub("", key.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac"))
    whole = _TEXT.fullmatch(key)
    key = " ".join((whole.group(1) if whole else key).split()).rstrip(".")
    key = _AROUND_SIGNS.sub(r"\1", key)
    letter = _LETTER.match(key)
    if letter:
        return letter.group(1)
    integer = _INTEGER.match(key)
    if integer:
        sign = "-" if integer.group(1) == "-" and integer.group(2) != "0" else ""
        return sign + integer.group(2)
    return key
