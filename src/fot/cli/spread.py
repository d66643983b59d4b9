"""``fot spread``: a command's work shared out among many workers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fot.cli.files import written
from fot.cli.output import ExitCode, print_note, progress
from fot.errors import UsageError

__all__ = ["SHARED", "spread"]

SHARED = ("pool synth", "pool index", "grade", "simulate", "sweep")
"""The commands that take --shard."""


def spread(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    executor: str = "local",
    shards: int = 8,
    at_once: int | None = None,
    sbatch: Annotated[list[str] | None, Parameter(consume_multiple=False, allow_leading_hyphen=True)] = None,
    script: Path | None = None,
) -> int:
    """Share a command out among workers, then run it: what they have left is joined, what is missing is made.

        fot spread --shards 64 --executor slurm -- sweep POOL --json

    Every worker runs the command with --shard RANK/WORLD and must see the same files. The result is that of the
    command alone, byte for byte, whatever the number of shards and whatever befell them. Commands: pool synth, pool
    index, grade, simulate, sweep. Share out pool index first: the others need it, and one worker would make it alone.

    Parameters
    ----------
    command
        The command with its flags, behind `--`, without `fot`.
    executor
        local (processes here), slurm (a job array), or ray (Ray Data; RAY_ADDRESS names a cluster).
    shards
        Into how many shards the work is divided; a few for each worker, so that none waits long for the last.
    at_once
        Shards that run at once. Default: one a core (local), or as many as there is room for.
    sbatch
        An option for the Slurm array, such as --sbatch=--time=01:00:00; repeat it for more.
    script
        Write the array's script to this file, and do nothing else.
    """
    from fot.cli.executors import Job, array_script
    from fot.cli.executors import executor as executor_of
    from fot.cli.main import main

    if shards < 1 or (at_once is not None and at_once < 1):
        raise UsageError("--shards and --at-once must be at least 1", "give --shards 8")
    if not any(" ".join(command).startswith(f"{known} ") for known in SHARED):
        raise UsageError(
            f"'{' '.join(command[:2])}' cannot be shared out", f"fot spread -- COMMAND, one of {', '.join(SHARED)}"
        )
    run = executor_of(executor)
    job = Job(command=command, world=shards, at_once=at_once, sbatch=tuple(sbatch or ()))
    if script is not None:
        with written(script) as file:
            file.write(array_script(job).encode())
        print_note(f"submit it with: sbatch --wait {script}; then run the command itself to join what it has left")
        return ExitCode.OK
    with progress(f"{executor}: {command[0]}", shards, "shards") as done:
        for ended, (rank, why) in enumerate(run(job), 1):
            done(ended)
            if why:
                print_note(f"shard {rank} of {shards} failed ({why}); what it left undone is done at the end")
    return main(command)
