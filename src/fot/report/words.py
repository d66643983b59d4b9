"""Figures in sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fot.report.table import written
from fot.stats.paired import Interval

__all__ = [
    "between", "count", "gained", "gains", "interval_pp", "joined", "percent", "points", "signed",
    "sure", "unpublished",
]  # fmt: skip


def percent(share: float) -> str:
    """A fraction as a percentage with one digit."""
    return written(share, "share")


def unpublished(models: Sequence[str]) -> list[str]:
    """Models without who published them, where that leaves them apart."""
    own = [model.rpartition("/")[2] for model in models]
    return own if len(set(own)) == len(set(models)) else list(models)


def points(share: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return written(share, "points")


def signed(value: float) -> str:
    """A number with its sign."""
    return written(float(value), "signed")


def count(number: float, one: str, many: str = "") -> str:
    """`3 problems`, `1 problem`."""
    return f"{written(float(number), 'mean')} {one if number == 1 else many or one + 's'}"


def joined(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def interval_pp(interval: Interval) -> str:
    """A 95% interval in percentage points."""
    return f"95% interval {written(interval, 'interval-pp')} pp"


def gained(delta: float) -> str:
    """A difference in problems, in words; a twentieth of one is none."""
    if round(delta, 1) == 0:
        return "as many problems as self-consistency"
    return f"{count(abs(delta), 'problem')} {'more' if delta > 0 else 'fewer'} than self-consistency"


def gains(delta: float) -> str:
    """The same as what somebody does: `gains 2 problems`, `loses 1 problem`, `gains nothing`."""
    if round(delta, 1) == 0:
        return "gains nothing"
    return f"{'gains' if delta > 0 else 'loses'} {count(abs(delta), 'problem')}"


def between(low: float, high: float, written_: Callable[[float], str]) -> str:
    """`between 1 and 3`, or the one value that both are."""
    return f"between {written_(low)} and {written_(high)}" if written_(low) != written_(high) else f"at {written_(low)}"


def sure(p: float) -> str:
    """What a p-value allows to be said."""
    if p < 0.05:
        return f"more than chance would give (p = {written(p, 'p')})"
    return f"no more than chance gives (p = {written(p, 'p')})"
