"""``fot pool synth``: a made-up pool of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fot.cli.output import ExitCode, print_json, print_note, print_table, progress

__all__ = ["synth"]


def synth(  # noqa: PLR0913 - each parameter is a flag
    *,
    out: Path,
    scale: float = 1.0,
    problems: int | None = None,
    k: Annotated[int, Parameter(name=["-k", "--k"])] = 32,
    model: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    benchmark: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    seed: int = 0,
    token_ends: bool = False,
    shard: str | None = None,
    json: bool = False,
) -> int:
    """Make up a pool whose statistics follow the paper's published ones: word salad, at any size.

    For scale and for tests of power, never for claims about a model: the pool, every result and every figure say that
    it is synthetic. The default has the paper's shape: 6 models, 600 problems, 32 rollouts each: 115,200 rollouts,
    0.8 billion tokens, 3 GB of text. The same flags give the same bytes; a run that was killed goes on where it was.

    Parameters
    ----------
    out
        The pool to make; a pool that stands there is replaced when the new one is complete.
    scale
        So many times the paper's problems: 0.01 is a hundredth, 100 a hundred times as many.
    problems
        Exactly so many problems of every benchmark, in place of --scale.
    k
        Rollouts of each problem.
    model
        One of the paper's models; repeat it for more. Default: all six.
    benchmark
        AIME24, AIME25, AMC23 or MATH500; repeat it for more. Default: all four.
    seed
        Seed of everything that is drawn.
    token_ends
        Record where every token ends: exact prefixes, and a pool twice as large.
    shard
        RANK/WORLD: make this share of the parts only; whoever makes the last part finishes the pool.
    json
        Print one JSON object in place of a table.
    """
    from fot.errors import ConfigError
    from fot.pools.making import synthesise
    from fot.pools.shard import WHOLE, Shard
    from fot.pools.synth import SYNTHETIC, Wanted
    from fot.report.profile import cells_after_paper

    if k < 1:
        raise ConfigError(f"k is {k}; it must be at least 1", "Give --k 32.")
    cells = cells_after_paper(scale=scale, problems=problems, models=model or (), benchmarks=benchmark or ())
    wanted = Wanted(cells=cells, k=k, seed=seed, token_ends=token_ends)
    with progress("making", wanted.problems, "problems") as done:
        made = synthesise(wanted, out, Shard.parse(shard) if shard else WHOLE, done)
    if json:
        about = {"pool": str(made.pool) if made.pool else None, "problems": wanted.problems, "parts": made.parts}
        about |= {"made": made.made, "rollouts": made.rollouts, "chars": made.chars, "synthetic": SYNTHETIC}
        print_json({"schema": "fot.pool.synth/1", **about})
    elif made.pool:
        rows = [["problems", f"{wanted.problems:,}"], ["rollouts", f"{made.rollouts:,}"]]
        print_table([str(out), ""], [*rows, ["characters", f"{made.chars:,}"], ["synthetic", SYNTHETIC]])
    if made.pool is None:
        print_note(f"made {made.made} of {made.parts} parts; the pool is there when the other shards have made theirs")
        return ExitCode.PARTIAL
    return ExitCode.OK
