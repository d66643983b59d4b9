"""``fot grade`` on a pool: its rollouts judged, counted, and written down."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fot.cli.files import written
from fot.cli.output import ExitCode, print_json, print_note, print_table, progress, synthetic_line

if TYPE_CHECKING:
    from fot.grading.base import Grader
    from fot.pools.read import Pool
    from fot.replay.graded import GradedPool

__all__ = ["grade_rollouts"]


def grade_rollouts(
    path: Path, judge: Grader, *, commit: str, store: Path | None, out: Path | None, shard: str | None, json: bool
) -> ExitCode:
    """Judge every rollout of a pool, or of a file of rows; 4 when some rows could not be read."""
    from fot.pools.read import Pool

    with progress("reading", path.stat().st_size) as done:
        pool = Pool.open(path, done)
    if shard is not None:
        return _grade_share(pool, judge, commit, shard)
    graded = _graded(pool, judge, commit, store)
    if out is not None:
        _write(graded, out)
    _tell(graded, json=json)
    return ExitCode.PARTIAL if pool.manifest.rejected else ExitCode.OK


def _grade_share(pool: Pool, judge: Grader, commit: str, shard: str) -> ExitCode:
    from fot.pools.shard import Shard
    from fot.replay.graded import grade_share

    with progress("grading", 1) as done:
        made = grade_share(
            pool,
            commit=commit,
            grader=judge,
            shard=Shard.parse(shard),
            progress=lambda judged, wanted: done(judged / max(wanted, 1)),
        )
    print_note(f"shard {shard}: {made} pieces made")
    return ExitCode.OK


def _graded(pool: Pool, judge: Grader, commit: str, store: Path | None) -> GradedPool:
    from fot.core.markers import PAPER_KERNEL
    from fot.pools.index import index_of
    from fot.replay.graded import grade_pool

    with progress("finding answers", int(pool.n_chars.sum())) as done:
        index_of(pool, PAPER_KERNEL, commit, done)
    with progress("grading distinct pairs", 1) as done:
        return grade_pool(
            pool,
            commit=commit,
            grader=judge,
            store=store,
            progress=lambda judged, wanted: done(judged / max(wanted, 1)),
        )


def _write(graded: GradedPool, out: Path) -> None:
    import msgspec

    made_by = graded.pool.manifest.synthetic
    label = {"synthetic": made_by} if made_by else {}
    with written(out) as file:
        for row in graded.rows():
            line = {
                **dict(zip(("model", "benchmark", "problem_id"), row.problem.key, strict=True)),
                "rollout_id": row.rollout_id,
                "answer": row.answer,
                "verdict": row.grade.verdict.value,
                "reason": row.grade.reason,
                "grader": graded.version,
            }
            file.write(msgspec.json.encode(line | label) + b"\n")


def _tell(graded: GradedPool, *, json: bool) -> None:
    from fot.grading.base import Judgement

    counts = graded.counts()
    if json:
        groups = [
            {"model": model, "benchmark": benchmark, **{verdict.value: own[verdict] for verdict in Judgement}}
            for (model, benchmark), own in counts.items()
        ]
        about = {
            "pool": graded.pool.name,
            "synthetic": graded.pool.manifest.synthetic,
            "grader": graded.version,
            "commit": graded.commit,
            "rollouts": len(graded.grades),
            "distinct": graded.distinct,
            "left_out": graded.left_out,
            "store": str(graded.store) if graded.store else None,
            "undecided": dict(graded.undecided().most_common()),
        }
        print_json({"schema": "fot.grade/1", **about, "groups": groups})
    else:
        rows = [[*group, *(f"{own[verdict]:,}" for verdict in Judgement)] for group, own in counts.items()]
        headers = ["model", "benchmark", *(verdict.value.replace("_", " ") for verdict in Judgement)]
        title = f"{graded.pool.name}: {len(graded.grades):,} rollouts, --commit {graded.commit}"
        title += synthetic_line(graded.pool.manifest.synthetic)
        print_table(headers, rows, text_columns=2, title=title)
        for reason, count in graded.undecided().most_common(5):
            print_note(f"{count:,} undecided: {reason}")
    kept = f"; grades are kept in {graded.store}" if graded.store else ""
    print_note(f"{graded.distinct:,} distinct pairs of reference and answer by {graded.version}{kept}")
    if graded.left_out:
        print_note(f"{graded.left_out:,} rollouts with unbiased = false are left out")
    if graded.pool.manifest.rejected:
        print_note(f"{graded.pool.manifest.rejected:,} rows of {graded.pool.name} could not be read and are left out")
