"""The numbers behind an expression of sympy, and whether two of them differ: a check of math-verify's equality.

An expression with unknowns stands for its values at two fixed places. Decimals are the fractions that they write out,
but one of six digits or more may be another number rounded: it is as good as half a unit of its last place.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import mpmath
import sympy

from fot.grading.numerals import LEAST_DIGITS

__all__ = ["apart", "in_fractions", "is_same_kind", "numbers"]

_MOST_DIGITS = 1_000
_TIGHT = sympy.Rational(1, 10**40)
_DIGITS = 60
_SLOW = (
    sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.factorial, sympy.gamma, sympy.binomial, sympy.zeta,
)  # fmt: skip
"""What takes long to a thousand digits."""

_INFINITE = (sympy.oo, -sympy.oo, sympy.zoo)


class Number(NamedTuple):
    """An expression without unknowns and decimals, and by how much its decimals may be rounded."""

    value: Any
    slack: Any


def numbers(expression: Any) -> list[Number] | None:
    """The numbers in an order that does not depend on that in a set; None where there are none."""
    if isinstance(expression, sympy.MatrixBase):
        return _joined(expression.flat())
    if isinstance(expression, sympy.Tuple):
        return _joined(expression.args)
    if isinstance(expression, sympy.Interval):
        return _joined(expression.args[:2])
    if isinstance(expression, sympy.FiniteSet | sympy.Union):
        held = _joined(expression.args)
        return held and sorted(held, key=_place)
    return _at_places(expression) if isinstance(expression, sympy.Expr) else None


def is_same_kind(a: Any, b: Any) -> bool:
    """May equal numbers make the two equal?"""
    if isinstance(a, sympy.Interval) and isinstance(b, sympy.Interval):
        return bool(a.left_open == b.left_open and a.right_open == b.right_open)
    if isinstance(a, sympy.MatrixBase) and isinstance(b, sympy.MatrixBase):
        return bool(a.shape == b.shape)
    return any(isinstance(a, kind) and isinstance(b, kind) for kind in (sympy.Tuple, sympy.FiniteSet, sympy.Expr))


def apart(a: Number, b: Number) -> bool:
    """Do two numbers differ, by more than their decimals may be rounded? False when that cannot be computed."""
    if a.value in _INFINITE or b.value in _INFINITE:
        return bool(a.value != b.value)
    difference = a.value - b.value
    if difference.has(*_SLOW):
        value, size = difference.evalf(_DIGITS), abs(a.value.evalf(_DIGITS))
        return bool(value.is_number and value.is_finite and abs(value) > _TIGHT * (1 + size))
    value = difference.evalf(2, maxn=_MOST_DIGITS)
    if not (value.is_number and value.is_finite) or not _is_certain(value):
        return False
    return bool(abs(value) > (a.slack + b.slack) * sympy.Rational(1001, 1000))


def in_fractions(part: Any) -> Any:
    """The expression with a fraction for each of its decimals."""
    return part.xreplace({number: sympy.Rational(str(number)) for number in part.atoms(sympy.Float)})


def _is_certain(value: Any) -> bool:
    """Has the value a digit that is known not to be zero?"""
    return any(part != 0 and getattr(part, "_prec", 2) > 1 for part in value.as_real_imag())


def _ends(expression: Any) -> list[tuple[Any, Any]]:
    """The expression with each of its long decimals moved up and down by half a unit of its last place."""
    ends = []
    for number in expression.atoms(sympy.Float):
        whole, _, decimals = str(number).rstrip("0").partition(".")
        if "e" not in decimals and len((whole + decimals).lstrip("-0")) >= LEAST_DIGITS:
            exact, half = sympy.Rational(str(number)), sympy.Rational(1, 2 * 10 ** len(decimals))
            up, down = (in_fractions(expression.xreplace({number: exact + step})) for step in (half, -half))
            ends.append((up, down))
    return ends


def _at_places(expression: Any) -> list[Number] | None:
    symbols = sorted(expression.free_symbols, key=str)
    exact, ends = in_fractions(expression).doit(), _ends(expression)
    held = []
    for shift in (0, 17) if symbols else (0,):
        places = {
            symbol: sympy.Rational(int.from_bytes(str(symbol).encode()) % 9973 + 1009 + shift, 997)
            for symbol in symbols
        }
        slack = sum(abs((up - down).subs(places).evalf(15)) / 2 for up, down in ends)
        held.append(Number(exact.subs(places), slack))
    return held if all(number.value.is_number or number.value in _INFINITE for number in held) else None


def _joined(parts: Any) -> list[Number] | None:
    held = [numbers(part) for part in parts]
    return None if any(part is None for part in held) else list(chain.from_iterable(part for part in held if part))


def _place(number: Number) -> tuple[float, float]:
    if number.value in _INFINITE:
        return (0.0 if number.value is sympy.zoo else float(number.value), 0.0)
    real, imaginary = (mpmath.mpf(str(part.evalf(15))) for part in number.value.as_real_imag())
    return float(mpmath.nstr(real, 12)), float(mpmath.nstr(imaginary, 12))
