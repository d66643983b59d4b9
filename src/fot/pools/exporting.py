"""`export_rows` and `export_log`: a pool as files that others read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from fot.core.rollout import ProblemKey
from fot.errors import PoolError
from fot.pools.logs import HARNESSES
from fot.pools.logs.entry import Group, Judged, kept
from fot.pools.read import Pool
from fot.pools.schema import MANIFEST

__all__ = ["Judgements", "export_log", "export_rows"]

Judgements = Mapping[tuple[ProblemKey, int], tuple[str | None, bool | None]]
"""By problem and `rollout_id`: the committed answer, and whether it is correct (None: not judged)."""

_CODECS = {".gz": "gzip", ".zst": "zstd"}


def export_rows(pool: Pool, out: Path, progress: Callable[[int], None] = lambda _: None) -> Path:
    """Every rollout as a line of JSON; `.gz` and `.zst` compress. The same pool gives the same bytes."""
    codec = _CODECS.get(out.suffix)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with pa.OSFile(str(out), "wb") as file:
            stream = pa.CompressedOutputStream(file, codec) if codec else file
            for number, rollout in enumerate(pool, start=1):
                stream.write(msgspec.json.encode({**kept(rollout), "text": rollout.text}) + b"\n")
                progress(number)
            stream.close()
    except OSError as error:
        raise PoolError(f"cannot write {out}: {error.strerror or error}") from None
    return out


def export_log(
    pool: Pool,
    out: Path,
    harness: str,
    judged: Judgements,
    grader: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Path]:
    """Each model on each benchmark as a log of `harness` in the folder `out`; `progress` is told rollouts done.

    `judged` puts answers and scores in, `grader` names who gave them. The files are dated by the pool's own.
    """
    created = datetime.fromtimestamp(int((pool.path / MANIFEST).stat().st_mtime), UTC)
    keys = dict.fromkeys((problem.model, problem.benchmark) for problem in pool.problems)
    written, before = [], 0
    try:
        for model, benchmark in keys:
            digest = hashlib.sha256(f"{pool.manifest.sha256} {model} {benchmark}".encode()).hexdigest()
            problems = _problems(pool, (model, benchmark), judged, before, progress)
            group = Group(model, benchmark, problems, created, digest, grader)
            written.append(HARNESSES[harness].write(group, out))
            before += sum(one.count for one in pool.problems if (one.model, one.benchmark) == (model, benchmark))
    except OSError as error:
        raise PoolError(f"cannot write in {out}: {error.strerror or error}") from None
    return written


def _problems(
    pool: Pool, wanted: tuple[str, str], judged: Judgements, before: int, progress: Callable[[int], None]
) -> Iterator[Sequence[Judged]]:
    """The problems of a group, each with all its rollouts."""
    done = before
    own = [one for one in pool.problems if (one.model, one.benchmark) == wanted]
    for problem in own:
        rollouts = pool.rollouts(np.arange(problem.first, problem.first + problem.count))
        done += len(rollouts)
        yield [Judged(one, *judged.get((one.key, one.rollout_id), (None, None))) for one in rollouts]
        progress(done)
