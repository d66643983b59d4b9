"""``fot demo``: a live funnel on the model in the box, and what it saved."""

from __future__ import annotations

import asyncio
import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fot.cli.output import console, print_json, print_note, print_table
from fot.cli.recorded import print_recorded
from fot.errors import UsageError

if TYPE_CHECKING:
    from fot.engines.base import Engine
    from fot.online.result import Result

__all__ = ["demo"]

_NEXT = """
This model is a demonstration. What holds for real reasoning models was measured on their rollouts ("Measured", in the
documentation).

  fot demo --problem 1         the same with another problem
  fot solve 'Start with 345. Step 1: add 678. Step 2: multiply by 7. What is the result modulo 1000?'
  fot doctor --base-url URL    is the server of a real model fit for this?
  fot --help                   all commands
"""


def demo(
    *,
    problem: int = 0,
    k: Annotated[int, Parameter(name=["-k", "--k"])] = 32,
    seed: int = 42,
    pool: bool = False,
    json: bool = False,
) -> None:
    """Watch a funnel narrow on the tiny model in the box, and what it saves.

    The model is a demonstration: a few million weights, trained for this project's own arithmetic and nothing else.

    Parameters
    ----------
    problem
        Which of the model's unseen problems: 0, 1, 2, ...
    k
        Rollouts.
    seed
        Of the first rollout; the next ones count up. Both methods use the same seeds.
    pool
        Run nothing; print where the model's recorded rollouts are, for `fot simulate` and the like.
    json
        Print one JSON object, and draw nothing.
    """
    if pool:
        from fot.reasoner import sample_pool_path

        sys.stdout.write(f"{sample_pool_path()}\n")
        return
    asyncio.run(_demo(problem, k, seed, json))


async def _demo(number: int, k: int, seed: int, json: bool) -> None:
    from fot.engines.embedded import Embedded
    from fot.reasoner import MODEL_NAME
    from fot.tasks.arithmetic import DIFFICULTIES, draw_problems

    if number < 0 or k < 2:
        raise UsageError(f"--problem {number} --k {k} cannot be shown", "Problems count from 0, and a vote needs two.")
    chosen = next(islice(draw_problems("test", DIFFICULTIES["middle"], seed=seed), number, None))
    screen = console(sys.stderr)
    if not json:
        screen.print(f"{MODEL_NAME}, a tiny model that knows nothing but its arithmetic, thinks {k} times about:\n")
        screen.print(f"  {chosen.text}\n\n{_legend()}\n")
    engine = Embedded(parallel=k)
    try:
        await engine.counters()  # loads the model, so that neither method waits for it
        funnel = await _run(engine, chosen.text, None, k, seed, is_drawn=not json)
        if not json:
            screen.print(_excerpts(funnel))
            screen.print("The same seeds once more, all to their end, to see what was saved ...\n")
        majority = await _run(engine, chosen.text, "sc", k, seed, is_drawn=False)
    finally:
        await engine.close()
    if json:
        print_json(_as_json(chosen.gold, funnel, majority))
    else:
        _print(chosen.gold, funnel, majority)


async def _run(engine: Engine, text: str, policy: str | None, k: int, seed: int, *, is_drawn: bool) -> Result:
    from rich.live import Live

    from fot.cli.lanes import Lanes
    from fot.online.api import Options, Session

    options = Options(engine=engine, k=k, seed=seed)
    if policy is not None:
        options["policy"] = policy
    session = Session(engine, text, options)
    if not is_drawn:
        return await session.run()
    screen = console(sys.stderr)
    lanes = Lanes(k, session.spec.text)
    width = screen.width if screen.is_terminal else 100
    if not screen.is_terminal:
        result = await session.run(lanes.take)
        screen.print(lanes.draw(width))
        return result
    with Live(console=screen, refresh_per_second=8, get_renderable=lambda: lanes.draw(width)):
        return await session.run(lanes.take)


def _legend() -> str:
    from fot.reasoner import CHECKPOINTS

    *early, late = CHECKPOINTS
    return (
        'Each line below is a rollout: its tokens so far, and how many "Wait", "perhaps" and the like it has per 1,000 '
        f"characters. At {', '.join(map(str, early))} and {late} tokens, those that have answered are banked: they "
        "vote, and think no more. Of the others, those that hesitate most are pruned."
    )


def _excerpts(result: Result) -> str:
    """A few lines of the rollout that hesitated least, and of the one that hesitated most."""
    from fot.core.markers import count, density

    def of_text(text: str) -> float:
        return density(count(text), len(text))

    ranked = sorted((rollout for rollout in result.rollouts if rollout.text), key=lambda r: of_text(r.text))
    told = []
    for rollout in dict.fromkeys((ranked[0], ranked[-1])) if ranked else ():
        lines = [line for line in rollout.text.splitlines() if line.strip()]
        densest = max(range(len(lines)), key=lambda at: count(lines[at]))
        first = max(0, min(densest - 1, len(lines) - 3))
        told.append(f"\nRollout {rollout.id} ({rollout.fate.value}), {of_text(rollout.text):.1f} per 1,000 characters:")
        told += [f"  {line}" for line in lines[first : first + 3]]
    return "\n".join([*told, ""])


def _print(gold: str, funnel: Result, majority: Result) -> None:
    rows = [
        [
            name,
            f"{result.answer} ({'right' if result.answer == gold else f'wrong: it is {gold}'})",
            f"{sum(result.votes.values()):g}",
            f"{result.usage.completion_tokens:,}",
            f"{sum(rollout.generated**2 for rollout in result.rollouts) / 1e6:.2f}",
            f"{result.wall_s:.1f}",
        ]
        for name, result in (("self-consistency", majority), (f"funnel ({funnel.policy})", funnel))
    ]
    print_table(("method", "answer", "votes", "tokens", "attention (10⁶ token²)", "seconds"), rows, text_columns=2)
    saved = funnel.savings_against([rollout.tokens for rollout in majority.rollouts])
    time = 1 - funnel.wall_s / majority.wall_s
    print_note(
        f"saved: {saved.attention:.0%} of the attention, {saved.tokens:.0%} of the tokens, "
        + (f"{time:.0%} of the time" if time > 0 else "none of the time (is this machine busy?)")
    )
    print_recorded(funnel.policy)
    console(sys.stderr).print(_NEXT)


def _as_json(gold: str, funnel: Result, majority: Result) -> dict[str, object]:
    return {
        "schema": "fot.demo/1",
        "gold": gold,
        "funnel": funnel.as_json(),
        "majority": majority.as_json(),
        "savings": funnel.savings_against([rollout.tokens for rollout in majority.rollouts]),
    }
