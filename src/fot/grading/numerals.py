r"""Numbers that are written out, read exactly.

`033`, `1,234.50`, `-\frac{3}{4}`, `1\frac12`, `0.1\overline{6}`, `1.2\times10^{-3}`.

No tolerance lives here. 10001 is not 10000, and 0.1 is one tenth.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

__all__ = ["LEAST_DIGITS", "Numeral", "read_numeral", "same_numeral"]

_LARGEST_POWER = 1_000
LEAST_DIGITS = 6

_APART = re.compile(r"[\d.]\s+[\d.]", re.ASCII)
_LISTED = re.compile(r",\s")
_PLAIN = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+"
_SIGNED = rf"[+-]?(?:{_PLAIN})"
_DECIMAL = re.compile(rf"({_SIGNED})\Z", re.ASCII)
_REPEATING = re.compile(r"([+-]?)(\d*)\.(\d*)(?:\\(?:overline|bar)\{(\d+)\}|\\(?:bar|dot)\{?(\d)\}?)\Z", re.ASCII)
_FRACTION = re.compile(
    rf"([+-]?)(?:\\frac\{{({_SIGNED})\}}\{{({_SIGNED})\}}|\\frac(\d)(\d)|({_PLAIN})/({_PLAIN}))\Z", re.ASCII
)
_MIXED = re.compile(r"([+-]?)(\d+)(?:\s*\\frac\{(\d+)\}\{(\d+)\}|\s*\\frac(\d)(\d)|\s+(\d+)/(\d+))\Z", re.ASCII)
_SCIENTIFIC = re.compile(
    rf"(?:({_SIGNED})(?:\\times|\\cdot|\*|x))?([+-]?)10\^(?:\{{([+-]?\d+)\}}|\(([+-]?\d+)\)|([+-]?\d+))\Z", re.ASCII
)
_E_NOTATION = re.compile(rf"({_SIGNED})[eE]([+-]?\d+)\Z", re.ASCII)


class Numeral(NamedTuple):
    """An exact value; `decimals`: how many were written (None: the writing rounds nothing)."""

    value: Fraction
    decimals: int | None


def read_numeral(body: str) -> Numeral | None:
    """The number that `body` writes out, or None when it is anything else."""
    try:
        if _APART.search(body):  # two numbers side by side are at most a mixed number
            return _mixed(body.strip())
        if _LISTED.search(body):
            return None
        compact = re.sub(r"\s+", "", body)
        return _decimal(compact) or _mixed(compact) or _exact(compact) or _scientific(compact)
    except ZeroDivisionError:
        return None


def same_numeral(a: Numeral, b: Numeral) -> bool:
    """Equal values; or one is the other rounded, where the other has no end in decimals and six digits are given."""
    return a.value == b.value or _rounds_to(a, b) or _rounds_to(b, a)


def _rounds_to(exact: Numeral, decimal: Numeral) -> bool:
    if decimal.decimals is None or _terminates(exact.value):
        return False
    digits = len(str(abs(decimal.value.numerator * 10**decimal.decimals // decimal.value.denominator)))
    scale = 10**decimal.decimals
    rounded = Fraction((2 * abs(exact.value) * scale + 1).__floor__() // 2, scale)
    same_sign = (exact.value < 0) == (decimal.value < 0)
    return digits >= LEAST_DIGITS and same_sign and rounded == abs(decimal.value)


def _terminates(value: Fraction) -> bool:
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


def _decimal(text: str) -> Numeral | None:
    if not _DECIMAL.match(text):
        return None
    whole, point, decimals = text.replace(",", "").lstrip("+-").partition(".")
    value = Fraction(int(whole + decimals or "0"), 10 ** len(decimals))
    return Numeral(-value if text.startswith("-") else value, len(decimals) if point else None)


def _value(text: str) -> Fraction:
    numeral = _decimal(text)
    return numeral.value if numeral else Fraction(0)


def _mixed(text: str) -> Numeral | None:
    match = _MIXED.match(text)
    if match is None:
        return None
    sign, whole, *parts = match.groups()
    numerator, denominator = (int(part) for part in parts if part is not None)
    value = int(whole) + Fraction(numerator, denominator)
    return Numeral(-value if sign == "-" else value, None)


def _exact(text: str) -> Numeral | None:
    if match := _FRACTION.match(text):
        sign, *parts = match.groups()
        numerator, denominator = (_value(part) for part in parts if part is not None)
        return Numeral((-1 if sign == "-" else 1) * numerator / denominator, None)
    if match := _REPEATING.match(text):
        sign, whole, fixed, several, single = match.groups()
        repeated = several or single
        head = Fraction(int(whole + fixed or "0"), 10 ** len(fixed))
        tail = Fraction(int(repeated), (10 ** len(repeated) - 1) * 10 ** len(fixed))
        return Numeral(-(head + tail) if sign == "-" else head + tail, None)
    return None


def _scientific(text: str) -> Numeral | None:
    if match := _SCIENTIFIC.match(text):
        factor, sign, *powers = match.groups()
        power = next(part for part in powers if part is not None)
    elif match := _E_NOTATION.match(text):
        factor, power = match.groups()
        sign = ""
    else:
        return None
    if abs(int(power)) > _LARGEST_POWER:
        return None
    value = _value(factor or "1") * Fraction(10) ** int(power)
    return Numeral(-value if sign == "-" else value, None)
