"""Writing a made-up pool part by part: on all cores, resumable, and shared by any number of workers.

Parts are made in a hidden folder beside the pool that is named by everything they depend on. A part appears there by
one rename, so whoever comes next (after a kill, or on another machine) makes only what is missing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from fot.errors import PoolError
from fot.pools import phrases, synth, write
from fot.pools.cores import cores
from fot.pools.recipe import code_digest, recipe_of
from fot.pools.schema import Manifest, RowsFile, is_pool, joint_digest, read_manifest, rows_file, write_manifest
from fot.pools.shard import WHOLE, Shard
from fot.pools.staging import check_replaceable, locked, publish
from fot.pools.synth import SYNTHETIC, Maker, Wanted, split
from fot.pools.write import RowsWriter

__all__ = ["PART_PROBLEMS", "Made", "synthesise"]

PART_PROBLEMS = 96


@dataclass(frozen=True, slots=True)
class Made:
    """What there is now. `pool` is None while parts are missing: those of other shards."""

    pool: Path | None
    parts: int
    made: int
    """Parts that this call made; the others were there."""
    rollouts: int
    chars: int


def synthesise(
    wanted: Wanted, out: Path, shard: Shard = WHOLE, progress: Callable[[int], None] = lambda _: None
) -> Made:
    """Make the parts that are this shard's and still missing; the last to finish puts the pool at `out`.

    `progress` is told the problems done. Raises `PoolError` when `out` is something else than a pool.
    """
    out = out.absolute()
    check_replaceable(out)
    spans = split(wanted.problems, PART_PROBLEMS)
    recipe = _digest(wanted)
    there = read_manifest(out) if is_pool(out) else None
    if there is not None and there.recipe == recipe:
        return Made(out, len(spans), 0, there.rollouts, there.chars)
    stage = out.with_name(f".{out.name}.synth-{recipe}")
    try:
        stage.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PoolError(f"cannot write in {out.parent}: {error.strerror or error}") from None
    missing = [number for number in range(len(spans)) if shard.owns(number) and not _part(stage, number)]
    done = 0
    with ProcessPoolExecutor(max(1, min(cores(), len(missing))), get_context("spawn")) as workers:
        tasks = {workers.submit(_make, wanted, number, stage): number for number in missing}
        for task in as_completed(tasks):
            task.result()
            first, last = spans[tasks[task]]
            done += last - first
            progress(done)
    manifest = _finished(stage, out, wanted, recipe)
    if manifest is None:
        return Made(None, len(spans), len(missing), 0, 0)
    return Made(out, len(spans), len(missing), manifest.rollouts, manifest.chars)


def _digest(wanted: Wanted) -> str:
    return recipe_of(code_digest(synth, phrases, write), PART_PROBLEMS, wanted)


def _part(stage: Path, number: int) -> Path | None:
    return next(iter(stage.glob(f"rows-{number:05d}-*.parquet")), None)


def _make(wanted: Wanted, number: int, stage: Path) -> None:
    """Make one part; a worker's whole task."""
    first, last = split(wanted.problems, PART_PROBLEMS)[number]
    folder = Path(tempfile.mkdtemp(prefix=".making-", dir=stage))
    try:
        with RowsWriter(folder) as writer:
            for problem, row in Maker(wanted).rows(first, last):
                writer.add(problem, row)
            (rows,) = writer.finish(lambda _: 0)  # the rows came in order: there is nothing to merge
        with rows.open("rb") as file:
            os.fsync(file.fileno())
        rows.rename(stage / f"rows-{number:05d}-{rows_file(rows).sha256[:16]}.parquet")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _manifest(name: str, wanted: Wanted, recipe: str, paths: list[Path]) -> Manifest:
    parts: list[RowsFile] = [rows_file(path) for path in paths]
    chars = sum(pc.sum(pq.read_table(path, columns=["n_chars"])["n_chars"]).as_py() for path in paths)
    return Manifest(
        name=name,
        parts=tuple(parts),
        sha256=joint_digest(parts),
        rollouts=wanted.problems * wanted.k,
        problems=wanted.problems,
        chars=chars,
        synthetic=SYNTHETIC,
        recipe=recipe,
    )


def _finished(stage: Path, out: Path, wanted: Wanted, recipe: str) -> Manifest | None:
    """Put the pool at `out` once all parts are there, unless another worker has; None while parts are missing."""
    try:
        with locked(stage / ".lock"):
            parts = [_part(stage, number) for number in range(len(split(wanted.problems, PART_PROBLEMS)))]
            paths = [part for part in parts if part]
            if len(paths) == len(parts):
                for left in stage.glob(".making-*"):
                    shutil.rmtree(left, ignore_errors=True)  # of workers that were killed
                manifest = _manifest(out.name, wanted, recipe, paths)
                write_manifest(stage, manifest)
                publish(stage, out, [part.file for part in manifest.parts])
                shutil.rmtree(stage, ignore_errors=True)
                return manifest
    except FileNotFoundError:
        pass  # the stage has gone: another worker was the last
    there = read_manifest(out) if is_pool(out) else None
    return there if there is not None and there.recipe == recipe else None
