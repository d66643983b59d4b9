"""How hard problems are, as a model ranked them (`fot rank`), and what asking it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fot.core.ledger import Charge
from fot.errors import ConfigError

__all__ = ["Judged", "Ranking", "read_ranking"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One problem's difficulty, higher being harder (None: not known), and its share of the judging."""

    difficulty: float | None = None
    charges: Sequence[Charge] = ()


Ranking = Mapping[tuple[str, str], Judged]
"""By benchmark and problem id: a problem is as hard whoever answers it."""


class _Line(msgspec.Struct):
    benchmark: str
    problem_id: str
    difficulty: float | None
    charges: list[tuple[int, int]] = []


def read_ranking(path: Path) -> Ranking:
    """Read what `fot rank` wrote; `ConfigError` names the line that is none of it."""
    ranking = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error}", "Give a file that `fot rank` wrote.") from None
    for number, line in enumerate(lines, start=1):
        try:
            row = msgspec.json.decode(line, type=_Line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}, line {number}: {error}", "Give a file that `fot rank` wrote.") from None
        charges = [Charge(tokens, start) for tokens, start in row.charges]
        ranking[row.benchmark, row.problem_id] = Judged(row.difficulty, charges)
    return ranking
