"""``fot solve``: one problem, or a file of them, on a running engine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fot.cli.engines import DrawFlags, EngineFlags, on_interrupt
from fot.cli.output import ExitCode, console, print_json, print_note
from fot.cli.standard_input import OR_STANDARD_INPUT
from fot.errors import UsageError

if TYPE_CHECKING:
    from fot.online.api import Options, Session
    from fot.online.events import Event
    from fot.online.result import Result

__all__ = ["solve"]

_ENGINE, _DRAW = EngineFlags(), DrawFlags()


def solve(  # noqa: PLR0913, D417 - each parameter is a flag; groups of them tell themselves
    problem: Annotated[str | None, OR_STANDARD_INPUT] = None,
    /,
    *,
    file: Path | None = None,
    from_engine: Annotated[EngineFlags, Parameter(name="*")] = _ENGINE,
    draws: Annotated[DrawFlags, Parameter(name="*")] = _DRAW,
    k: Annotated[int, Parameter(name=["-k", "--k"])] = 32,
    policy: str | None = None,
    commit: str = "boxed",
    way: Literal["stream", "pause", "barrier"] = "stream",
    instruction: str | None = None,
    retries: int = 8,
    record: Path | None = None,
    json: bool = False,
) -> int:
    """Let rollouts work on a problem, stop those that are not needed, and vote.

    Parameters
    ----------
    problem
        The problem, or @FILE for one in a file, or - for standard input.
    file
        A JSONL file of problems: each line has `problem`, and may have `problem_id` and `gold`.
    k
        Rollouts.
    policy
        The method: NAME or NAME:key=value,key=value. Default: fot, with checkpoints that fit the model in the box
        where that is used.
    commit
        When a rollout has committed to an answer: boxed, choice, code or paper.
    way
        How checkpoints are met: rollouts run on (stream), each request ends there (pause), the engine holds (barrier).
    instruction
        What is added below the problem; default: what --commit needs, nothing for the model in the box.
    retries
        How often a rollout that the engine lost is taken up again.
    record
        Add every rollout to this file of rows, for replay.
    json
        Print one JSON object for each problem, and draw nothing.
    """
    from fot.online.lane import Limits

    options = from_engine.options()
    options |= {"k": k, "commit": commit, "way": way, "seed": draws.seed, "sampling": draws.sampling()}
    options |= {"instruction": instruction, "limits": Limits(retries=retries)}
    if policy is not None:
        options["policy"] = policy
    return asyncio.run(_solve_all(list(_problems(problem, file)), options, record, json))


def _problems(problem: str | None, file: Path | None) -> Iterator[dict[str, object]]:
    if (problem is None) == (file is None):
        raise UsageError("give a problem, or a file of them", "fot solve 'What is 6 times 7?'")
    if file is not None:
        from fot.cli.problems import read_problems

        yield from read_problems(file)
    elif problem == "-":
        yield {"problem": sys.stdin.read()}
    elif problem is not None and problem.startswith("@"):
        yield {"problem": Path(problem[1:]).read_text(encoding="utf-8")}
    else:
        yield {"problem": problem}


async def _solve_all(problems: list[dict[str, object]], options: Options, record: Path | None, json: bool) -> int:
    from fot.online.api import Session, opened
    from fot.online.journal import Journal

    code = ExitCode.OK
    async with opened(options) as engine:
        for row in problems:
            about = {key: value for key, value in row.items() if key != "problem" and value is not None}
            session = Session(engine, str(row["problem"]), options | {"about": about})
            if record is not None:
                session.record = Journal(record)
            result = await _solve_one(session, str(row["problem"]), not json)
            if isinstance(session.record, Journal):
                session.record.close()
            _tell(result, row, json)
            if result.is_interrupted:
                return ExitCode.INTERRUPTED
            code = ExitCode.PARTIAL if result.failures else code
    return code


async def _solve_one(session: Session, problem: str, is_drawn: bool) -> Result:
    with on_interrupt(session.interrupt):
        async with _drawn(session, problem, is_drawn and sys.stderr.isatty()) as take:
            return await session.run(take)


@asynccontextmanager
async def _drawn(session: Session, problem: str, is_drawn: bool) -> AsyncIterator[Callable[[Event], None] | None]:
    """Draw the run on stderr while the block runs."""
    if not is_drawn:
        yield None
        return
    from rich.live import Live

    from fot.cli.lanes import Lanes

    screen = console(sys.stderr)
    lanes = Lanes(session.plan.k, f"{session.spec.text}: {' '.join(problem.split())}")
    with Live(console=screen, refresh_per_second=8, get_renderable=lambda: lanes.draw(screen.width)):
        yield lanes.take


def _tell(result: Result, row: dict[str, object], json: bool) -> None:
    for rollout, reason in result.failures.items():
        print_note(f"rollout {rollout} was lost: {reason}")
    if result.is_interrupted:
        print_note("interrupted: this is the vote so far")
    if json:
        named = {key: row[key] for key in ("problem_id", "gold") if row.get(key) is not None}
        print_json(result.as_json() | named)
        return
    console(sys.stdout).print("no answer" if result.answer is None else result.answer)
    fates = [rollout.fate.value for rollout in result.rollouts]
    told = ", ".join(f"{fates.count(fate)} {fate}" for fate in dict.fromkeys(fates))
    usage = result.usage
    about = "" if result.counts == "exact" else " (estimated)"
    ranked = sorted(result.votes.items(), key=lambda vote: -vote[1])
    votes = ", ".join(f"{answer} x{votes:g}" for answer, votes in ranked)
    print_note(f"votes: {votes or 'none'}; rollouts: {told}")
    print_note(
        f"{usage.completion_tokens} tokens{about}, {usage.overshoot_tokens} of them after a decision; "
        f"{result.wall_s:.1f} s; policy {result.policy}"
    )
    saved, basis = result.savings()
    if saved is not None:
        print_note(f"saved {saved.attention:.0%} of the attention, {saved.tokens:.0%} of the tokens ({basis})")
