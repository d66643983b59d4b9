"""A plan as a picture: rollouts that run and positions they hold, over time, one panel each."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Protocol

__all__ = ["picture"]

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 760, 170, 70, 34, 46
_COLOURS = ("#4269d0", "#e8743b", "#3ca951", "#a463f2", "#c4a000", "#7d7d7d")


class Bin(Protocol):
    """One stretch of time."""

    @property
    def seconds(self) -> float: ...
    @property
    def batch(self) -> float: ...
    @property
    def kv(self) -> float: ...


def picture(series: Sequence[tuple[str, Sequence[Bin]]], label: str = "") -> str:
    """An SVG with a line for each series in each of two panels; `label` stands in a corner."""
    wall = max((sum(each.seconds for each in bins) for _, bins in series), default=0.0) or 1.0
    height = _TOP + 2 * (_HEIGHT + _GAP) + 18 * len(series)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        "<title>Rollouts running and KV positions over time</title>",
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    panels = (("rollouts running", [(n, [(b.seconds, b.batch) for b in bins]) for n, bins in series]),
              ("KV positions", [(n, [(b.seconds, b.kv) for b in bins]) for n, bins in series]))  # fmt: skip
    for at, (title, lines) in enumerate(panels):
        parts += _panel(title, lines, wall, _TOP + at * (_HEIGHT + _GAP))
    for at, (name, _) in enumerate(series):
        y = _TOP + 2 * (_HEIGHT + _GAP) + 18 * at
        parts.append(f'<rect x="{_LEFT}" y="{y - 8}" width="14" height="4" fill="{_COLOURS[at % len(_COLOURS)]}"/>')
        parts.append(f'<text x="{_LEFT + 22}" y="{y}">{escape(name)}</text>')
    parts.append(f'<text x="{_LEFT + _WIDTH}" y="{_TOP - 8}" text-anchor="end" fill="#666">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(title: str, lines: Sequence[tuple[str, Sequence[tuple[float, float]]]], wall: float, top: int) -> list[str]:
    peak = max((value for _, points in lines for _, value in points), default=0.0) or 1.0
    floor = top + _HEIGHT
    parts = [
        f'<text x="{_LEFT}" y="{top - 8}" font-weight="600">{title}</text>',
        f'<path d="M{_LEFT} {top}V{floor}H{_LEFT + _WIDTH}" fill="none" stroke="#888"/>',
        f'<text x="{_LEFT - 8}" y="{top + 5}" text-anchor="end">{peak:,.0f}</text>',
        f'<text x="{_LEFT - 8}" y="{floor}" text-anchor="end">0</text>',
        f'<text x="{_LEFT + _WIDTH}" y="{floor + 18}" text-anchor="end">{wall:,.1f} s</text>',
    ]
    for at, (_, points) in enumerate(lines):
        time, path = 0.0, []
        for seconds, value in points:
            y = floor - _HEIGHT * value / peak
            path.append(f"{_LEFT + _WIDTH * time / wall:.1f} {y:.1f}")
            time += seconds
            path.append(f"{_LEFT + _WIDTH * time / wall:.1f} {y:.1f}")
        if path:
            colour = _COLOURS[at % len(_COLOURS)]
            parts.append(f'<path d="M{" L".join(path)}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return parts
