"""The few distributions that the tests here need, from scipy."""

from __future__ import annotations

from typing import Any

from fot.errors import MissingExtra

__all__ = ["two_sided_normal", "two_sided_t"]


def two_sided_t(t: float, freedom: float) -> float:
    """The chance of a Student t at least as far from 0; 0 where it is too small for a float."""
    return float(2.0 * _special().stdtr(freedom, -abs(t)))


def two_sided_normal(z: float) -> float:
    """The chance of a standard normal at least as far from 0."""
    return float(2.0 * _special().ndtr(-abs(z)))


def _special() -> Any:
    try:
        import scipy.special
    except ImportError:
        raise MissingExtra("stats") from None
    return scipy.special
