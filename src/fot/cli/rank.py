"""``fot rank``: how hard problems are, as a model judges."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fot.cli.engines import EngineFlags, on_interrupt
from fot.cli.files import written
from fot.cli.output import ExitCode, print_json, print_note, print_table, progress
from fot.errors import ConfigError

if TYPE_CHECKING:
    from fot.online.ranking import Asked, Ranked
    from fot.pools.read import Pool

__all__ = ["rank"]


def rank(  # noqa: PLR0913, D417 - each parameter is a flag; groups of them tell themselves
    pools: list[Path],
    /,
    *,
    out: Path,
    engine: Annotated[EngineFlags, Parameter(name="*")] = EngineFlags(),  # noqa: B008 - frozen
    batch: int = 8,
    rounds: int = 5,
    max_tokens: int | None = None,
    parallel: int = 8,
    seed: int = 0,
    json: bool = False,
) -> int:
    """Let a model put problems in order of difficulty: random batches, several rounds, mean places.

    That is how Difficulty-Adaptive Self-Consistency begins. Use it with fot simulate --ranking FILE and the policy
    dsc:ranking=given, which charges every token that was spent here. Calls that were made are kept beside the file: the
    same command goes on where it was cut.

    Parameters
    ----------
    pools
        Pools, or files of rows, whose problems have a text.
    out
        The file to write: a JSON line for each problem.
    batch
        Problems that are put in order together.
    rounds
        How often every problem is looked at, in new batches.
    max_tokens
        Cap on each answer.
    parallel
        Calls at once.
    seed
        Seed of the batches, and of the calls.
    json
        Print one JSON object in place of a table.
    """
    from fot.online.ranking import batches
    from fot.pools.read import Pool

    asked = _asked([Pool.open(path) for path in pools])
    made = batches(len(asked), min(batch, len(asked)), rounds, seed)
    calls = out.with_name(f"{out.name}.calls.jsonl")
    found, unread, lost = asyncio.run(_ask(asked, made, engine, calls, max_tokens, parallel, seed))
    if lost:
        print_note(f"{lost} of {len(made)} calls are missing; the same command goes on with {calls}")
        return ExitCode.PARTIAL
    _write(out, asked, found)
    silent = sum(one.difficulty is None for one in found)
    if unread:
        print_note(f"{unread} of {len(made)} answers named not every problem once, and were dropped (but are charged)")
    if silent:
        print_note(f"{silent} problems have no place: dsc cannot use this ranking; ask for more --rounds")
    tokens = sum(charge.tokens for one in found for charge in one.charges)
    figures = {"problems": len(asked), "calls": len(made), "dropped": unread, "unplaced": silent, "tokens": tokens}
    if json:
        print_json({"schema": "fot.rank/1", "out": str(out), **figures})
    else:
        print_table([str(out), ""], [[name, f"{figure:,}"] for name, figure in figures.items()])
    return ExitCode.PARTIAL if silent else ExitCode.OK


def _asked(pools: Sequence[Pool]) -> list[Asked]:
    """The problems of the pools, each once, whoever answered it."""
    from fot.online.ranking import Asked

    problems = {(p.benchmark, p.problem_id): p.problem for pool in pools for p in pool.problems}
    silent = [name for (_, name), text in problems.items() if not text]
    if silent:
        raise ConfigError(
            f"{len(silent)} of {len(problems)} problems have no text, {silent[0]} for one",
            "A model can only rank what it can read; dsc ranks by length without it.",
        )
    if len(problems) < 2:
        raise ConfigError("there is nothing to put in order", "Give at least two problems.")
    return [Asked(benchmark, name, text or "") for (benchmark, name), text in problems.items()]


async def _ask(  # noqa: PLR0917
    asked: Sequence[Asked],
    made: Sequence[Sequence[int]],
    flags: EngineFlags,
    calls: Path,
    max_tokens: int | None,
    parallel: int,
    seed: int,
) -> tuple[list[Ranked], int, int]:
    """Make the calls that are not in the file yet; rankings, unreadable answers, missing calls."""
    from fot.engines.base import Sampling
    from fot.online import ranking
    from fot.online.api import model_name, opened
    from fot.online.journal import Journal
    from fot.online.lane import Limits
    from fot.online.sampler import Sampler, check_settings, settings_of

    sampling = Sampling(temperature=0.0, top_p=0.9, max_tokens=max_tokens)
    async with opened(flags.options() | {"k": parallel}) as engine:
        model = await model_name(engine)
        origin = {"problems": [[one.benchmark, one.problem_id] for one in asked], "batches": made}
        check_settings(calls, settings_of(model, seed, sampling, origin), "fot.rank/1")
        with Journal(calls) as journal, progress("ranking", len(made), "calls") as done:
            sampler = Sampler([engine], journal, sampling=sampling, seed=seed, limits=Limits())
            with on_interrupt(sampler.stop):
                tally = await sampler.run(
                    ranking.calls(asked, made, model), parallel, lambda tally: done(tally.present + tally.added)
                )
            for _, _, reason in tally.lost[:1]:
                print_note(f"a call was lost: {reason}")
            found, unread = ranking.ranked(asked, made, journal.rows())
    return found, unread, tally.wanted - tally.present - tally.added


def _write(out: Path, asked: Sequence[Asked], found: Sequence[Ranked]) -> None:
    import msgspec

    with written(out) as file:
        for problem, one in zip(asked, found, strict=True):
            row = {"benchmark": problem.benchmark, "problem_id": problem.problem_id, "difficulty": one.difficulty}
            file.write(msgspec.json.encode(row | {"charges": one.charges}) + b"\n")
