"""``fot pool export``: a pool as rows, or as a log of another harness."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fot.cli.output import ExitCode, print_json, print_note, print_table, progress
from fot.errors import UsageError

if TYPE_CHECKING:
    from fot.pools.exporting import Judgements
    from fot.pools.read import Pool

__all__ = ["export"]


def export(
    pool: Path,
    /,
    *,
    out: Path,
    format: str = "rows",
    commit: str = "boxed",
    grader: str | None = None,
    json: bool = False,
) -> int:
    """Write a pool as rows, or as samples of lm-eval, logs of Inspect or details of lighteval.

    What the other format has no field for goes along under the key fot, so fot pool import gives the same pool again.

    Parameters
    ----------
    pool
        A pool, or directly a file of rows.
    out
        For rows a file, compressed where it ends in .gz or .zst; for a log a folder.
    format
        rows, lm-eval, inspect or lighteval.
    commit
        What a rollout's answer is, where there is a grader: boxed, choice, code or paper.
    grader
        Judge the answers, and put them and their scores into the log.
    json
        Print one JSON object in place of a table.
    """
    from fot.core.registry import unknown_name
    from fot.pools.exporting import export_log, export_rows
    from fot.pools.logs import HARNESSES, ROWS
    from fot.pools.read import Pool

    if format not in (ROWS, *HARNESSES):
        raise unknown_name("format", format, [ROWS, *HARNESSES])
    if format == ROWS and grader:
        raise UsageError("rows have no scores: --grader is for logs", "fot grade POOL --out FILE writes grades")
    with progress("reading", pool.stat().st_size if pool.is_file() else None) as done:
        opened = Pool.open(pool, done)
    judged, version = _judged(opened, commit, grader) if grader else ({}, None)
    with progress("writing", opened.manifest.rollouts, "rollouts") as done:
        written = (
            [export_rows(opened, out, done)]
            if format == ROWS
            else export_log(opened, out, format, judged, version, done)
        )
    if opened.manifest.synthetic:
        print_note(f"these are SYNTHETIC texts ({opened.manifest.synthetic}), and the files do not say so")
    if json:
        about = {"pool": opened.name, "format": format, "rollouts": opened.manifest.rollouts}
        print_json({"schema": "fot.pool.export/1", **about, "files": [str(path) for path in written]})
    else:
        rows = [["rollouts", f"{opened.manifest.rollouts:,}"], *(["file", str(path)] for path in written)]
        print_table([opened.name, ""], rows, text_columns=2)
    return ExitCode.OK


def _judged(pool: Pool, commit: str, name: str) -> tuple[Judgements, str]:
    from fot.grading.base import Judgement, grader
    from fot.replay.graded import grade_pool

    with grader(name) as judge, progress("grading distinct pairs", 1) as done:
        graded = grade_pool(
            pool, commit=commit, grader=judge, progress=lambda judged, wanted: done(judged / max(wanted, 1))
        )
    judged = {
        (row.problem.key, row.rollout_id): (
            row.answer,
            None if row.grade.verdict is Judgement.UNDECIDED else row.grade.verdict is Judgement.CORRECT,
        )
        for row in graded.rows()
    }
    return judged, graded.version
