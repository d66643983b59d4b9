"""``fot demo``: a live funnel on the model in the box, and what it saved."""

from __future__ import annotations

import asyncio
import sys
from itertools import islice
from typing import TYPE_CHECKING

from fot.cli.output import console, print_json, print_note, print_table

if TYPE_CHECKING:
    from fot.engines.base import Engine
    from fot.online.result import Result

__all__ = ["demo"]


def demo(*, problem: int = 0, k: int = 32, seed: int = 42, json: bool = False) -> None:
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
    json
        Print one JSON object, and draw nothing.
    """
    asyncio.run(_demo(problem, k, seed, json))


async def _demo(number: int, k: int, seed: int, json: bool) -> None:
    from fot.engines.embedded import Embedded
    from fot.reasoner import MODEL_NAME
    from fot.tasks.arithmetic import DIFFICULTIES, draw_problems

    chosen = next(islice(draw_problems("test", DIFFICULTIES["middle"], seed=seed), number, None))
    if not json:
        print_note(f"{MODEL_NAME}, trained by this project for arithmetic alone, thinks {k} times about:")
        console(sys.stderr).print(f"  {chosen.text}\n")
    engine = Embedded(parallel=k)
    try:
        funnel = await _run(engine, chosen.text, None, k, seed, is_drawn=not json)
        if not json:
            print_note("the same seeds once more, all to their end, to see what was saved")
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
    print_note(
        f"saved: {saved.attention:.0%} of the attention, {saved.tokens:.0%} of the tokens, "
        f"{1 - funnel.wall_s / majority.wall_s:.0%} of the time; one problem shows the way it works, not how well"
    )


def _as_json(gold: str, funnel: Result, majority: Result) -> dict[str, object]:
    return {
        "schema": "fot.demo/1",
        "gold": gold,
        "funnel": funnel.as_json(),
        "majority": majority.as_json(),
        "savings": funnel.savings_against([rollout.tokens for rollout in majority.rollouts]),
    }
