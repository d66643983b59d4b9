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
_DIGITS = 60
_TOLD = {True: "math-verify: equal", False: "math-verify: not equal"}


def main() -> None:
    """Answer requests `{"gold", "answer", "is_rounded"}` with `{"equal", "reason"}` until standard input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that a library prints gets among the replies
    limit_s = float(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    import math_verify  # noqa: F401 - before the first limit starts to count

    import fot.grading.math_numbers  # noqa: F401 - likewise

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
        meant = _meant(golds, answers)
        equal = any(_verify(*read) for read in ((golds, answers), meant, _in_fractions(*meant)))
        return _checked(equal, meant[0][0], meant[1][0], is_rounded=is_rounded)
    except Exception as error:  # whatever a hostile string brings about in a parser is no judgement
        return None, f"math-verify failed: {type(error).__name__}"


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


def _meant(golds: list[Any], answers: list[Any]) -> tuple[list[Any], list[Any]]:
    """Both with real odd roots of negative numbers, or with `i` as the imaginary unit if there is no other unknown."""
    import sympy

    parts = [part for part in (*golds, *answers) if isinstance(part, sympy.Basic)]
    symbols = {symbol for part in parts for symbol in part.free_symbols}
    imaginary = dict.fromkeys(symbols, sympy.I) if {symbol.name for symbol in symbols} == {"i"} else {}
    is_complex = bool(imaginary) or any(part.has(sympy.I) for part in parts)

    def meant(part: Any) -> Any:
        if not isinstance(part, sympy.Basic):
            return part
        return part.subs(imaginary) if is_complex else part.replace(_is_odd_root, _real_root)

    return [meant(part) for part in golds], [meant(part) for part in answers]


def _in_fractions(golds: list[Any], answers: list[Any]) -> tuple[list[Any], list[Any]]:
    """Both with fractions for their decimals: `2^{0.5}` is a root."""
    import sympy

    from fot.grading.math_numbers import in_fractions

    exact = (
        [in_fractions(part) if isinstance(part, sympy.Basic) else part for part in read] for read in (golds, answers)
    )
    return next(exact), next(exact)


def _is_odd_root(part: Any) -> bool:
    return bool(part.is_Pow and part.exp.is_Rational and part.exp.q > 1 and part.exp.q % 2 and part.base.is_negative)


def _real_root(part: Any) -> Any:
    return (-1) ** part.exp.p * (-part.base) ** part.exp


def _rounded(gold: str, answer: str, golds: list[Any], answers: list[Any]) -> bool | None:
    """Where one is a decimal and the other a number without end: is it that number rounded, to six digits or more?"""
    import mpmath
    import sympy

    numerals = read_numeral(gold), read_numeral(answer)
    decimals = [numeral for numeral in numerals if numeral and numeral.decimals]
    from fot.grading.math_numbers import in_fractions

    endless = answers[0] if numerals[0] else golds[0]
    if len(decimals) != 1 or not isinstance(endless, sympy.Expr) or endless.free_symbols:
        return None
    endless, decimal = in_fractions(endless), decimals[0]
    value = None if endless.is_rational else _value(endless)
    if value is None:
        return None
    places = 10 ** (decimal.decimals or 0)
    with mpmath.workdps(_DIGITS):
        is_near = abs(value * places - decimal.value.numerator * places // decimal.value.denominator) <= 0.5
    return bool(is_near) and len(str(abs(decimal.value * places))) >= LEAST_DIGITS


def _value(expression: Any) -> Any | None:
    """In the arithmetic of `mpmath`, whose exponents have no bounds."""
    import mpmath

    value = expression.doit().evalf(_DIGITS)
    if not (value.is_number and value.is_finite):
        return None
    real, imaginary = value.as_real_imag()
    with mpmath.workdps(_DIGITS):
        return mpmath.mpc(mpmath.mpf(str(real)), mpmath.mpf(str(imaginary)))


def _checked(equal: bool, gold: Any, answer: Any, *, is_rounded: bool) -> tuple[bool | None, str]:
    """What math-verify says, held against the numbers: it compares some values to a few digits only."""
    import sympy

    from fot.grading.math_numbers import apart, is_same_kind, numbers

    if isinstance(gold, sympy.Equality) != isinstance(answer, sympy.Equality):
        gold, answer = (part.rhs if isinstance(part, sympy.Equality) else part for part in (gold, answer))
    ours, theirs = numbers(gold), numbers(answer)
    if ours is None or theirs is None or len(ours) != len(theirs):
        return equal, _TOLD[equal]
    is_apart = any(apart(*pair) for pair in zip(ours, theirs, strict=True))
    if equal and is_apart:
        return False, "equal only after math-verify's rounding"
    if equal or is_apart or not is_same_kind(gold, answer):
        return equal, _TOLD[equal]
    if is_rounded:
        return True, "rounded"
    if isinstance(gold, sympy.Expr) and not gold.free_symbols | answer.free_symbols:
        is_proved = (gold - answer).equals(0)
        return (True, "equal numbers") if is_proved else (None, "equal to a thousand digits, and not proved to be")
    return False, _TOLD[False]


if __name__ == "__main__":
    main()
