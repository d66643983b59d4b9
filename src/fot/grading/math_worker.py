"""One worker of the `math` grader: compares pairs of LaTeX strings with math-verify, one JSON request a line.

Runs as `python -m fot.grading.math_worker LIMIT_S`. Its own timer ends the process after that much processor time:
there is no handler, so nothing that a computer-algebra system does can outlast it. math-verify's own time-outs, which
score as wrong, are switched off.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
from typing import Any

from fot.grading.numerals import LEAST_DIGITS, read_numeral

__all__ = ["compare", "main"]

_MEMORY = 3 * 2**30
_TIGHT = 1e-40
_DECIMAL = 1e-5
_DIGITS = 60


def main() -> None:
    """Answer requests `{"gold", "answer", "is_rounded"}` with `{"equal", "reason"}` until standard input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that a library prints gets among the replies
    limit_s = float(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    import math_verify  # noqa: F401 - before the first limit starts to count

    print(json.dumps({"ready": True}), file=replies, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        equal, reason = compare(request["gold"], request["answer"], is_rounded=request["is_rounded"])
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps({"equal": equal, "reason": reason}), file=replies, flush=True)


def compare(gold: str, answer: str, *, is_rounded: bool) -> tuple[bool | None, str]:
    """Are the two equal (None: cannot be told)? `is_rounded`: one of them was written with decimals."""
    try:
        golds, answers = _read(gold), _read(answer)
        if not golds or not answers:
            return None, f"the {'answer' if golds else 'reference answer'} cannot be read as mathematics"
        rounded = _rounded(gold, answer, golds, answers)
        if rounded is not None:
            return rounded, "rounded" if rounded else "another number, or rounded to fewer than six digits"
        equal = _verify(golds, answers)
        exact = ([], []) if equal else _exactly(golds, answers)
        if exact[0]:
            golds, answers = exact
            equal = _verify(golds, answers)
        if equal and _is_apart(golds[0], answers[0], _DECIMAL if is_rounded and not exact[0] else _TIGHT):
            return False, "equal only after math-verify's rounding"
    except Exception as error:  # whatever a hostile string brings about in a parser is no judgement
        return None, f"math-verify failed: {type(error).__name__}"
    return bool(equal), "math-verify: equal" if equal else "math-verify: not equal"


def _read(latex: str) -> list[Any]:
    """The whole string as mathematics, or nothing: no search for a number in it, no unit taken away."""
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse

    normalization = NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none", equations=False
    )
    config = LatexExtractionConfig(boxed_match_priority=-1, normalization_config=normalization)
    read = parse(f"$${latex}$$", [config], fallback_mode="no_fallback", parsing_timeout=None, raise_on_error=True)
    return list(read)


def _verify(golds: list[Any], answers: list[Any]) -> bool:
    from math_verify import verify

    return bool(verify(golds, answers, timeout_seconds=None, raise_on_error=True, allow_set_relation_comp=True))


def _exactly(golds: list[Any], answers: list[Any]) -> tuple[list[Any], list[Any]]:
    """Both once more, where that may change what is equal, and else nothing.

    Decimals become fractions (`2^{0.5}` is a root), and `i` the imaginary unit when there is no other unknown.
    """
    import sympy

    parts = [part for part in (*golds, *answers) if isinstance(part, sympy.Basic)]
    symbols = {symbol for part in parts for symbol in part.free_symbols}
    imaginary = dict.fromkeys(symbols, sympy.I) if {symbol.name for symbol in symbols} == {"i"} else {}
    if not imaginary and not any(part.atoms(sympy.Float) for part in parts):
        return [], []

    def exact(part: Any) -> Any:
        if not isinstance(part, sympy.Basic):
            return part
        return _in_fractions(part).subs(imaginary)

    return [exact(part) for part in golds], [exact(part) for part in answers]


def _in_fractions(part: Any) -> Any:
    """The expression with a fraction for each of its decimals."""
    import sympy

    return part.xreplace({number: sympy.Rational(str(number)) for number in part.atoms(sympy.Float)})


def _rounded(gold: str, answer: str, golds: list[Any], answers: list[Any]) -> bool | None:
    """Where one is a decimal and the other a number without end: is it that number rounded, to six digits or more?"""
    import mpmath
    import sympy

    numerals = read_numeral(gold), read_numeral(answer)
    decimals = [numeral for numeral in numerals if numeral and numeral.decimals]
    endless = answers[0] if numerals[0] else golds[0]
    if len(decimals) != 1 or not isinstance(endless, sympy.Expr) or endless.free_symbols:
        return None
    endless, decimal = _in_fractions(endless), decimals[0]
    value = None if endless.is_rational else _value(endless)
    if value is None:
        return None
    places = 10 ** (decimal.decimals or 0)
    with mpmath.workdps(_DIGITS):
        is_near = abs(value[0] * places - decimal.value.numerator * places // decimal.value.denominator) <= 0.5
    return bool(is_near) and len(str(abs(decimal.value * places))) >= LEAST_DIGITS


def _is_apart(a: Any, b: Any, tolerance: float) -> bool:
    """Do the values differ by more than `tolerance`, relative to the larger? False when they cannot be computed."""
    left, right = _values(a), _values(b)
    if left is None or right is None or len(left) != len(right):
        return False
    import mpmath

    with mpmath.workdps(_DIGITS):
        return any(abs(x - y) > tolerance * max(abs(x), abs(y)) for x, y in zip(left, right, strict=True))


def _values(expression: Any) -> list[Any] | None:
    """Numbers that stand for an expression: its value, or its parts' values, at fixed places for its symbols."""
    import sympy

    if isinstance(expression, sympy.FiniteSet):
        numbers = _joined(expression.args)
        return sorted(numbers, key=lambda value: (value.real, value.imag)) if numbers else None
    if isinstance(expression, sympy.MatrixBase):
        return _joined(expression.flat())
    if isinstance(expression, sympy.Interval | sympy.Tuple):
        return _joined(expression.args[:2] if isinstance(expression, sympy.Interval) else expression.args)
    return _value(expression) if isinstance(expression, sympy.Expr) else None


def _value(expression: Any) -> list[Any] | None:
    import sympy

    places = {
        symbol: sympy.Rational(int.from_bytes(str(symbol).encode()) % 9973 + 1009, 997)
        for symbol in expression.free_symbols
    }
    value = expression.doit().subs(places).evalf(_DIGITS)
    return [_number(value)] if value.is_number and value.is_finite else None


def _joined(parts: Any) -> list[Any] | None:
    values = [_values(part) for part in parts]
    if any(value is None for value in values):
        return None
    return [number for value in values if value for number in value]


def _number(value: Any) -> Any:
    """In the arithmetic of `mpmath`, whose exponents have no bounds."""
    import mpmath

    real, imaginary = value.as_real_imag()
    with mpmath.workdps(_DIGITS):
        return mpmath.mpc(mpmath.mpf(str(real)), mpmath.mpf(str(imaginary)))


if __name__ == "__main__":
    main()
