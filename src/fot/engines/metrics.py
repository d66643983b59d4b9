"""Reading a server's own books: Prometheus text."""

from __future__ import annotations

import re

__all__ = ["metric"]


def metric(text: str, *names: str) -> int | None:
    """The sum over all labels of the first of these metrics that is there; None when none is."""
    for name in names:
        values = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})?[ \t]+([^\s]+)", text, re.M)
        if values:
            return round(sum(float(value) for value in values))
    return None
