r"""What is written after a number, or before it: units, currencies, percent, degrees, bases, moduli.

    split_unit(r"5\text{ cm}^2")    ->  ("5", "cm^2")
    split_unit(r"\$5")              ->  ("5", "dollar")
    split_unit(r"5\text{ million}") ->  ("5", "million")

A unit is a name: what is not known is taken as it is written.
"""

from __future__ import annotations

import re

__all__ = ["FUNCTIONS", "SCALES", "changes_number", "fold", "split_unit"]

SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
"""Words that multiply by a power of ten."""

_UNITS = {
    "%": r"\\?%|per\s*cent(?:age)?|pct",
    "degree": r"\\degree|degrees?|deg",
    "celsius": r"deg(?:rees?)?\s*(?:C|Celsius)|°C",
    "fahrenheit": r"deg(?:rees?)?\s*(?:F|Fahrenheit)|°F",
    "radian": r"radians?|rad",
    "cm": r"cm|centimet(?:er|re)s?",
    "mm": r"(?-i:mm|MM)|millimet(?:er|re)s?",
    "km": r"km|kilomet(?:er|re)s?",
    "meter": r"met(?:er|re)s?",
    "inch": r"inch(?:es)?",
    "foot": r"ft|foot|feet",
    "mile": r"miles?",
    "mph": r"mph|miles\s*per\s*hour",
    "kg": r"kg|kilograms?",
    "gram": r"grams?",
    "pound": r"lbs?|pounds?",
    "liter": r"lit(?:er|re)s?",
    "ml": r"(?-i:ml|mL)|millilit(?:er|re)s?",
    "newton": r"newtons?",
    "joule": r"joules?",
    "watt": r"watts?",
    "volt": r"volts?",
    "ampere": r"amp(?:ere)?s?",
    "second": r"sec|secs|seconds?",
    "minute": r"mins?|minutes?",
    "hour": r"hrs?|hours?",
    "day": r"days?",
    "dollar": r"dollars?|USD|\\\$",
    "cent": r"cents?|\\cents?",
    "ohm": r"ohms?|\\Omega",
    "unit": r"units?",
}
_SYMBOLS = {
    "m": "meter", "g": "gram", "s": "second", "h": "hour", "C": "celsius", "F": "fahrenheit", "in": "inch",
    "mi": "mile", "L": "liter", "l": "liter", "N": "newton", "J": "joule", "W": "watt", "V": "volt", "A": "ampere",
}  # fmt: skip
_KNOWN = tuple((name, re.compile(rf"(?:{pattern})\Z", re.IGNORECASE)) for name, pattern in _UNITS.items())
_SHORT = 3
"""Letters of what may be a symbol, in which case matters (`mW`, `MW`) and a last `s` is no plural."""

_CHANGING = frozenset(
    word.rstrip("s")
    for word in re.findall(
        r"\w+",
        "or not is isn more less fewer least most than if but only except unless factorial squared cubed half halves "
        "third thirds quarter quarters fifth fifths tenth tenths hundredth hundredths thousandth thousandths dozen "
        "dozens remainder r wrong incorrect",
    )
)
_RUN = re.compile(r"[^\W\d_]{3,}")
FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        "sin cos tan cot sec csc log ln exp sqrt pi det mod max min gcd lcm arcsin arccos arctan sinh cosh tanh deg "
        "inf infinity rank dim lim",
    )
)
"""Runs of letters that are mathematics, and neither a unit nor a word."""

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


def split_unit(text: str) -> tuple[str, str]:
    """The rest, and the unit's name with its power, or nothing."""
    currency = _CURRENCY.match(text)
    if currency:
        rest, scale = split_unit(text[currency.end() :])
        if not scale or scale in SCALES:
            return rest, f"{scale} {currency.group('sign') or 'dollar'}".strip()
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
        if match and not _ANGLE.search(text) and (unit := _name(match, bare=pattern is _BARE_UNIT)):
            return text[: match.start()].strip(), unit
    return text, ""


def changes_number(unit: str) -> bool:
    """May the number mean something else without these words, as in `5 or more`?"""
    words = {word.rstrip("s") for word in re.findall(r"\w+", unit.casefold())}
    return not _CHANGING.isdisjoint(words) or unit.partition(" ")[0] in SCALES


def fold(text: str) -> str:
    """Words in lower case, with single blanks."""
    plain = re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text)
    return " ".join(plain.casefold().split()).strip(" .'\"")


def _name(match: re.Match[str], *, bare: bool) -> str:
    written = " ".join(match.group("unit").replace(".", " ").split())
    power = match.groupdict().get("power") or ""
    for pattern, exponent in ((r"sq(?:uare)?\s+(.+)|(.+)\s+squared", "2"), (r"cubic\s+(.+)|(.+)\s+cubed", "3")):
        if raised := re.fullmatch(pattern, written, re.IGNORECASE):
            written, power = raised.group(1) or raised.group(2), exponent
    known = next((name for name, pattern in _KNOWN if pattern.match(written)), "")
    if not known and bare and not _is_bare_unit(written):
        return ""
    scale, _, rest = written.casefold().partition(" ")
    if scale in SCALES and rest:
        measured = next((name for name, pattern in _KNOWN if pattern.match(rest)), _singular(rest))
        return f"{scale} {measured}"
    name = known or _SYMBOLS.get(written) or _singular(written)
    return f"{name}^{power}" if power else name


def _is_bare_unit(written: str) -> bool:
    """Two letters after a number are a product sooner than a unit, and a function's name is a function."""
    words = re.findall(r"[a-zA-Z]+", written)
    return bool(_RUN.search(written)) and not any(word.lower() in FUNCTIONS for word in words)


def _singular(written: str) -> str:
    words = written.split() if len(written) <= _SHORT else fold(written).split()
    return " ".join(word.removesuffix("s") if len(word) > _SHORT else word for word in words)
