r"""What is not worth handing to a computer-algebra system: size limits that are checked before any parsing.

Every check is one linear pass over the string. What passes may still be slow; that is what killing a worker is for.
"""

from __future__ import annotations

import re

__all__ = ["LONGEST", "static_limit"]

LONGEST = 4096
"""Characters of an answer that is looked at as mathematics."""

DEEPEST = 32
LONGEST_DIGITS = 256
LARGEST_EXPONENT = 10_000
LARGEST_FACTORIAL = 1_000
MOST_TOKENS = 512

_DIGITS = re.compile(rf"\d{{{LONGEST_DIGITS + 1},}}", re.ASCII)
_TOKEN = re.compile(r"\\[a-zA-Z]+|\d+|[^\s\\]")
_EXPONENT = re.compile(r"(?:\^|\*\*)\s*[{(]?\s*[+-]?\s*(\d+)")
_TOWER = re.compile(r"(?:\^|\*\*)\s*[{(]*\s*(\d+)\s*[})]?\s*(?:\^|\*\*)\s*[{(]*\s*(\d+)")
_FACTORIAL = re.compile(r"(\d+)\s*[})]*\s*!")
_BINOMIAL = re.compile(r"\\[dt]?binom\s*\{?\s*(\d+)")


def static_limit(answer: str) -> str | None:
    """Why `answer` is not handed on, or None when it may be."""
    if len(answer) > LONGEST:
        return f"longer than {LONGEST} characters"
    if _depth(answer) > DEEPEST:
        return f"nested deeper than {DEEPEST}"
    if _DIGITS.search(answer):
        return f"a number of more than {LONGEST_DIGITS} digits"
    if sum(1 for _ in _TOKEN.finditer(answer)) > MOST_TOKENS:
        return f"more than {MOST_TOKENS} tokens"
    return _too_large(answer)


def _depth(answer: str) -> int:
    depth = deepest = 0
    for character in answer:
        if character in "{([":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "})]":
            depth -= 1
    return deepest


def _too_large(answer: str) -> str | None:
    if any(int(match.group(1)) > LARGEST_EXPONENT for match in _EXPONENT.finditer(answer)):
        return f"an exponent or bound above {LARGEST_EXPONENT}"
    for match in _TOWER.finditer(answer):
        base, exponent = int(match.group(1)), int(match.group(2))
        if base > 1 and (exponent > 32 or base**exponent > LARGEST_EXPONENT):
            return f"an exponent or bound above {LARGEST_EXPONENT}"
    for pattern in (_FACTORIAL, _BINOMIAL):
        if any(int(match.group(1)) > LARGEST_FACTORIAL for match in pattern.finditer(answer)):
            return f"a factorial or binomial above {LARGEST_FACTORIAL}"
    return None
