"""A controller over a scripted engine, as tests of the live path use it."""

import asyncio
from dataclasses import dataclass, field

from fot.core.markers import PAPER_KERNEL
from fot.engines.base import Sampling
from fot.engines.scripted import Pace, Scripted
from fot.online.controller import Controller, Plan
from fot.online.lane import Limits, Prompt

PATIENT = Limits(backoff_s=0.0, stall_s=30.0, queue_s=30.0, grace_s=5.0)


@dataclass
class Lived:
    """What a run gave, and what the engine says about it."""

    run: object
    events: list = field(default_factory=list)
    engine: object = None
    left: object = None


def live(policy, rollouts, *, pace=None, engine=None, needs=frozenset(), max_tokens=None, **plan):
    return asyncio.run(lived(policy, rollouts, pace=pace, engine=engine, needs=needs, max_tokens=max_tokens, **plan))


async def lived(policy, rollouts, *, pace=None, engine=None, needs=frozenset(), max_tokens=None, patience_s=20, **plan):
    engine = engine or Scripted(rollouts, pace=pace or Pace())
    settings = {"k": len(rollouts), "limits": PATIENT, "kernel": PAPER_KERNEL, "progress_s": 0} | plan
    events = []
    prompt = Prompt(text=rollouts[0].problem or "?", sampling=Sampling(max_tokens=max_tokens))
    controller = Controller(engine, policy, prompt, Plan(needs=frozenset(needs), **settings), events.append)
    async with asyncio.timeout(patience_s):
        run = await controller.run()
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, left
    counters = await engine.counters()
    assert counters.running == 0
    assert counters.waiting == 0
    return Lived(run, events, engine, counters)
