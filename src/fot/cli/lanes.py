"""A live run drawn in the terminal: a lane for each rollout, the bank and the vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fot.online.events import (
    Banked,
    Cancelled,
    Event,
    Failed,
    Finished,
    Progress,
    Pruned,
    Retried,
    Started,
    Voted,
)

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

__all__ = ["Lanes"]

_BAR = 12
_CELL = 44  # columns of one lane
_HEAD = f"{'':2} {'':{_BAR}}{'tokens':>6} {'dens':4} {'state':9}{'answer':8}"
_STYLES = {
    "waiting": "dim",
    "running": "",
    "retried": "yellow",
    "finished": "cyan",
    "banked": "green",
    "pruned": "red dim",
    "cancelled": "dim",
    "failed": "bold red",
}


@dataclass(slots=True)
class _Lane:
    state: str = "waiting"
    tokens: int = 0
    density: float = 0.0
    answer: str | None = None


class Lanes:
    """Takes events, and draws how things stand."""

    def __init__(self, k: int, title: str) -> None:
        self._title = title
        self._lanes = [_Lane() for _ in range(k)]
        self._votes: dict[str, float] = {}
        self._winner: str | None = None

    def take(self, event: Event) -> None:
        """Take note of what happened."""
        if isinstance(event, Voted):
            self._votes, self._winner = dict(event.votes), event.answer
            return
        lane = self._lanes[event.rollout]
        match event:
            case Started():
                lane.state = "running"
            case Progress():
                lane.state = "running"
                lane.tokens, lane.density, lane.answer = event.tokens, event.density, event.answer
            case Finished():
                lane.state, lane.tokens, lane.answer = "finished", event.tokens, event.answer
            case Banked():
                lane.state, lane.tokens, lane.density, lane.answer = (
                    "banked",
                    event.tokens,
                    event.density,
                    event.answer,
                )
            case Pruned():
                lane.state, lane.tokens, lane.density, lane.answer = "pruned", event.tokens, event.density, None
            case Cancelled():
                lane.state, lane.tokens = "cancelled", event.tokens
            case Retried():
                lane.state = "retried"
            case Failed():
                lane.state = "failed"

    def draw(self, width: int) -> Group:
        """The picture, at most `width` columns wide."""
        from rich.console import Group
        from rich.text import Text

        title = Text(self._title, style="bold", no_wrap=True, overflow="ellipsis")
        return Group(title, self._grid(width), self._vote(width))

    def _grid(self, width: int) -> Table:
        from rich.table import Table
        from rich.text import Text

        across = max(1, min(width // _CELL, 4))
        down = -(-len(self._lanes) // across)
        longest = max((lane.tokens for lane in self._lanes), default=0)
        grid = Table.grid(padding=(0, 2))
        grid.add_row(*[Text(_HEAD, style="dim")] * across)
        cells = [Text(self._cell(at, longest), style=_STYLES[lane.state]) for at, lane in enumerate(self._lanes)]
        cells += [Text("")] * (across * down - len(cells))
        for row in range(down):
            grid.add_row(*(cells[column * down + row] for column in range(across)))
        return grid

    def _cell(self, at: int, longest: int) -> str:
        lane = self._lanes[at]
        filled = round(_BAR * lane.tokens / longest) if longest else 0
        bar = "█" * filled + "·" * (_BAR - filled)
        answer = "" if lane.answer is None else f"→ {lane.answer}"[:8]
        return f"{at:2} {bar}{lane.tokens:6} {lane.density:4.1f} {lane.state:9}{answer:8}"

    def _vote(self, width: int) -> Text:
        from rich.text import Text

        counts = {state: sum(lane.state == state for lane in self._lanes) for state in _STYLES}
        line = Text()
        line.append("  ".join(f"{state} {n}" for state, n in counts.items() if n) + "\n", style="dim")
        line.append("vote  ")
        for answer, votes in sorted(self._votes.items(), key=lambda vote: -vote[1])[:8]:
            line.append(f"{answer[:20]} x{votes:g}  ", style="bold green" if answer == self._winner else "")
        line.truncate(4 * width)
        return line
