"""Looking a name up in a table, with an error that helps."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from fot.errors import ConfigError

__all__ = ["unknown_name"]


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """The error for a name that no table holds: says what is close, and what there is."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    guess = f" Did you mean '{close[0]}'?" if close else ""
    return ConfigError(f"unknown {kind} '{name}'.{guess}", f"Available: {', '.join(names)}.")
