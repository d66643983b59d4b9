"""Who runs the shards of a command: processes here, an array of a Slurm cluster, or Ray Data.

An executor is a function that runs `fot COMMAND --shard RANK/WORLD` for every rank, on machines that see the same
files, and tells which of them failed. What they leave behind needs no more than one run of COMMAND to be
joined, and that run makes what is missing; so no executor has to be reliable.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from fot.core.registry import unknown_name
from fot.errors import ConfigError, MissingExtra

__all__ = ["EXECUTORS", "Executor", "Job", "array_script", "executor"]

_FINE = (0, 4)  # 4: some rows or parts are not there, as they would not be without shards


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command, the number of its shards, and how many run at once (None: as the executor sees fit)."""

    command: tuple[str, ...]
    world: int
    at_once: int | None = None
    sbatch: tuple[str, ...] = ()
    """Further options of a Slurm array."""

    def words(self, shard: str) -> list[str]:
        """What a worker runs."""
        return [sys.executable, "-m", "fot", *self.command, "--shard", shard]


Executor = Callable[[Job], Iterator[tuple[int, str | None]]]
"""Runs a job; for each shard as it ends, its rank and why it failed (None: it did not)."""


def local(job: Job) -> Iterator[tuple[int, str | None]]:
    """Processes on this machine, each on its share of the cores."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    at_once = min(job.at_once or len(cores) or os.cpu_count() or 1, job.world)
    shares: SimpleQueue[Sequence[int]] = SimpleQueue()
    for worker in range(at_once):
        shares.put(cores[worker::at_once] or cores[:1])
    running: set[subprocess.Popen[str]] = set()
    with ThreadPoolExecutor(at_once) as threads:
        try:
            for task in as_completed(
                threads.submit(_confined, job, rank, shares, running) for rank in range(job.world)
            ):
                yield task.result()
        finally:  # all has ended, or we were interrupted
            threads.shutdown(wait=False, cancel_futures=True)
            for process in tuple(running):
                process.terminate()


def _confined(
    job: Job, rank: int, shares: SimpleQueue[Sequence[int]], running: set[subprocess.Popen[str]]
) -> tuple[int, str | None]:
    """Run one shard on the next free share of the cores."""
    share = shares.get()
    words = job.words(f"{rank}/{job.world}")
    try:
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
            running.add(process)
            if share:
                os.sched_setaffinity(process.pid, share)
            said = process.communicate()[1]
            running.discard(process)
            return rank, _failure(process.returncode, said)
    finally:
        shares.put(share)


def _failure(code: int, said: str) -> str | None:
    """Why a worker failed; None when it did not."""
    if code in _FINE:
        return None
    lines = [line for line in said.splitlines() if line.startswith("error: ")] or said.splitlines()
    cause = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"{cause}: {lines[-1]}" if lines else cause


def slurm(job: Job) -> Iterator[tuple[int, str | None]]:
    """One job array, submitted with `sbatch` and waited for; Slurm tells the worst of its exit codes."""
    if shutil.which("sbatch") is None:
        raise ConfigError("there is no sbatch on this machine", "Write the array's script with --script FILE.")
    ran = subprocess.run(
        ["sbatch", "--wait"],  # noqa: S607
        input=array_script(job),
        check=False,
        capture_output=True,
        text=True,
    )
    if "Submitted" not in ran.stdout:
        raise ConfigError(f"sbatch did not take the array: {ran.stderr.strip()}", "See sinfo, and --sbatch OPTION.")
    worst = _failure(ran.returncode, "one task or more; see slurm-*.out")
    yield from ((rank, worst if rank == job.world - 1 else None) for rank in range(job.world))


def array_script(job: Job) -> str:
    """The script of an array: under Slurm, or by hand with SLURM_ARRAY_TASK_ID set."""
    limit = f"%{job.at_once}" if job.at_once else ""
    options = [f"--array=0-{job.world - 1}{limit}", "--job-name=fot", *job.sbatch]
    words = shlex.join(job.words("")[:-1])
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {option}" for option in options),
        f"cd {shlex.quote(str(Path.cwd()))}",
        f'{words} "${{SLURM_ARRAY_TASK_ID:?}}/{job.world}"',
        "code=$?",
        "[ $code -eq 4 ] && exit 0  # complete, but for what others make",
        "exit $code",
    ]
    return "\n".join(lines) + "\n"


def ray(job: Job) -> Iterator[tuple[int, str | None]]:
    """Ray Data: a data set of ranks, mapped over a cluster (`RAY_ADDRESS`) or over this machine."""
    try:
        import ray as engine
        from ray import data
    except ImportError:
        raise MissingExtra("ray") from None
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    engine.init(ignore_reinit_error=True, log_to_driver=False, logging_level=logging.WARNING)
    data.DataContext.get_current().enable_progress_bars = False
    ranks = data.range(job.world, override_num_blocks=job.world)
    for row in ranks.map(partial(_rayed, job), num_cpus=1, concurrency=job.at_once).iter_rows():
        yield int(row["rank"]), row["failure"] or None


def _rayed(job: Job, row: dict[str, int]) -> dict[str, object]:
    """One shard, in a process of its own: its threads and its memory are no concern of Ray's worker."""
    words = job.words(f"{row['id']}/{job.world}")
    ran = subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # noqa: S603
    return {"rank": row["id"], "failure": _failure(ran.returncode, ran.stderr) or ""}


EXECUTORS: Mapping[str, Executor] = {"local": local, "slurm": slurm, "ray": ray}


def executor(name: str) -> Executor:
    """The executor of this name."""
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    return EXECUTORS[name]
