"""The recorded rollouts that a command works on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fot.cli.output import print_note, progress

if TYPE_CHECKING:
    from fot.replay.sheet import Sheet
    from fot.replay.study import Chosen

__all__ = ["choose", "note_left_out", "note_without_references"]


def choose(pools: list[Path], k: int | None) -> Chosen:
    """Read them, which shows how far it is; the rest is as `fot.replay.study.choose` says."""
    from fot.replay import study

    with progress("reading", sum(path.stat().st_size for path in pools if path.is_file())) as done:
        return study.choose(pools, k, done)


def note_left_out(chosen: Chosen) -> None:
    """Say which problems are not among them, if any."""
    if chosen.left_out:
        print_note(f"{chosen.left_out} problems have fewer than {chosen.k} usable rollouts and are left out")


def note_without_references(sheets: Sequence[Sheet]) -> None:
    """Say that nothing can be right or wrong, where no problem has a reference answer."""
    if all(part.problem.gold is None for sheet in sheets for part in sheet.parts):
        print_note("the rollouts have no reference answers: nothing can be correct")
