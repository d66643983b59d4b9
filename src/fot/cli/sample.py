"""``fot sample``: make a pool of rollouts."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fot.cli.engines import DrawFlags, EngineFlags, on_interrupt
from fot.cli.output import ExitCode, console, print_json, print_note, print_table
from fot.errors import ConfigError

if TYPE_CHECKING:
    from fot.engines.base import Engine
    from fot.online.sampler import Sampler, Tally, Task
    from fot.tasks.load import Loaded

__all__ = ["sample"]

ROW_FILE = ".jsonl"
TOLD_EVERY_S = 30.0


def sample(  # noqa: PLR0913, D417 - each parameter is a flag; groups of them tell themselves
    benchmark: str,
    /,
    *,
    out: Path,
    k: Annotated[int, Parameter(name=["-k", "--k"])] = 32,
    engine: str | None = None,
    base_url: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    model: str | None = None,
    api_key: str | None = None,
    draws: Annotated[DrawFlags, Parameter(name="*")] = DrawFlags(),  # noqa: B008 - frozen
    limit: int | None = None,
    shard: str | None = None,
    parallel: int | None = None,
    retries: int = 8,
    json: bool = False,
) -> int:
    """Make a pool: k rollouts of every problem, all run to their end.

    What is done is on disk at once. After a crash or Ctrl-C the same command goes on where it stopped; nothing is lost
    or doubled, and a file that was made with other settings is refused.

    Parameters
    ----------
    benchmark
        A benchmark (see fot tasks), or a file of rows with `problem` and `gold`.
    out
        A file of rows when it ends in .jsonl, otherwise a pool; its rows are then kept beside it.
    k
        Rollouts of each problem. A larger k later adds to what is there.
    engine
        Name of an engine, or the kind of server behind the base URL.
    base_url
        A server's URL; repeat it for several servers of the same model.
    model
        Name of the model at the server, or of a GGUF file for the embedded engine.
    api_key
        The servers' key. Better kept in OPENAI_API_KEY.
    limit
        Only the first so many problems.
    shard
        RANK/WORLD: this share of the problems only, for one of several clients with servers and rows of its own.
    parallel
        Rollouts at once on each server; default: as many as it has room for, or 32.
    retries
        How often a rollout that was lost is taken up again.
    json
        Print one JSON object in place of a table.
    """
    from fot.cli.problems import load_benchmark

    loaded = load_benchmark(benchmark, limit=limit, seed=0)
    if shard is not None:
        loaded = _share(loaded, shard)
    urls: list[str | None] = [*base_url] if base_url else [None]
    flags = [EngineFlags(engine=engine, base_url=url, model=model, api_key=api_key) for url in urls]
    rows = out if out.suffix == ROW_FILE else out.with_name(f"{out.name}.rows{ROW_FILE}")
    return asyncio.run(_sample(loaded, flags, rows, out, draws, k, parallel, retries, json))


def _share(loaded: Loaded, shard: str) -> Loaded:
    """Every world-th problem; `ConfigError` where none is left."""
    from fot.pools.shard import Shard

    own = Shard.parse(shard)
    items = tuple(item for at, item in enumerate(loaded.items) if own.owns(at))
    if not items:
        raise ConfigError(
            f"shard {shard} of {len(loaded.items)} problems is empty", "Take no more shards than problems."
        )
    return replace(loaded, items=items)


async def _sample(  # noqa: PLR0913, PLR0917
    loaded: Loaded,
    flags: Sequence[EngineFlags],
    rows: Path,
    out: Path,
    draws: DrawFlags,
    k: int,
    parallel: int | None,
    retries: int,
    json: bool,
) -> int:
    from fot.online.api import opened
    from fot.online.journal import Journal
    from fot.online.lane import Limits
    from fot.online.sampler import Sampler, check_settings, settings_of

    async with AsyncExitStack() as stack:
        at_once = parallel or 32
        engines = [await stack.enter_async_context(opened(f.options() | {"k": at_once})) for f in flags]
        name = await _same_model(engines)
        settings = settings_of(name, draws.seed, draws.sampling(), loaded.origin.as_dict())
        check_settings(rows, settings)
        journal = stack.enter_context(Journal(rows))
        sampler = Sampler(engines, journal, sampling=draws.sampling(), seed=draws.seed, limits=Limits(retries=retries))
        rooms = [(await each.capabilities()).max_parallel or at_once for each in engines]
        room = parallel or min(rooms)
        with on_interrupt(sampler.stop), _shown() as told:
            await sampler.run(_tasks(loaded, name, k), room, told)
    return _tell(sampler, rows, out, json)


async def _same_model(engines: Sequence[Engine]) -> str:
    """The model that all engines have."""
    from fot.online.api import model_name

    names = {await model_name(engine) for engine in engines}
    if len(names) > 1:
        raise ConfigError(f"the servers have different models: {', '.join(sorted(names))}", "Name one with --model.")
    return names.pop()


def _tasks(loaded: Loaded, model: str, k: int) -> Iterator[Task]:
    from fot.online.sampler import Task

    for item in loaded.items:
        about = {
            "model": model,
            "benchmark": loaded.benchmark.name,
            "problem_id": item.problem_id,
            "problem": item.problem,
            "gold": item.gold,
        }
        for rollout in range(k):
            yield Task(about, item.prompt, rollout)


@contextmanager
def _shown() -> Iterator[Callable[[Tally], None]]:
    """Show how far it is, how fast it goes and how long it will take: a bar on a terminal, else a line at times."""
    began = time.monotonic()
    if not sys.stderr.isatty():
        last = began

        def note(tally: Tally) -> None:
            nonlocal last
            if time.monotonic() - last > TOLD_EVERY_S:
                last = time.monotonic()
                print_note(_progress_line(tally, last - began))

        yield note
        return
    from rich import progress as bars

    columns = (bars.BarColumn(), bars.TextColumn("{task.description}"))
    with bars.Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("")
        yield lambda tally: bar.update(
            task,
            total=tally.wanted,
            completed=tally.present + tally.added,
            description=_progress_line(tally, time.monotonic() - began),
        )


def _progress_line(tally: Tally, passed_s: float) -> str:
    done, left = tally.present + tally.added, tally.wanted - tally.present - tally.added
    told = f"{done:,} of {tally.wanted:,} rollouts"
    if not tally.added or not passed_s:
        return told
    minutes = left * passed_s / tally.added / 60
    return f"{told}, {tally.tokens / passed_s:,.0f} tokens/s, about {minutes:,.1f} min left"


def _tell(sampler: Sampler, rows: Path, out: Path, json: bool) -> int:
    tally = sampler.tally
    is_complete = tally.present + tally.added == tally.wanted
    if is_complete and rows != out:
        from fot.pools.importing import import_rows

        import_rows([rows], out)
    if json:
        print_json(
            {
                "schema": "fot.sample/1",
                "out": str(out),
                "rows": str(rows),
                "wanted": tally.wanted,
                "present": tally.present,
                "added": tally.added,
                "tokens": tally.tokens,
                "retries": tally.retries,
                "lost": [{"problem_id": p, "rollout_id": r, "reason": why} for p, r, why in tally.lost],
            }
        )
    else:
        figures = {"rollouts wanted": tally.wanted, "were there": tally.present, "added": tally.added}
        figures |= {"tokens added": tally.tokens, "taken up again": tally.retries, "lost": len(tally.lost)}
        print_table([str(out), ""], [[name, f"{figure:,}"] for name, figure in figures.items()])
    for problem, rollout, reason in tally.lost:
        print_note(f"problem {problem}, rollout {rollout} was lost: {reason}")
    if is_complete:
        return ExitCode.OK
    print_note(f"not complete; the same command goes on with {rows}")
    return ExitCode.INTERRUPTED if sampler.is_stopped else ExitCode.PARTIAL
