"""A scripted server in a thread of its own, for commands that run their own event loop; and what it may be given."""

import asyncio
import threading
from contextlib import contextmanager

from fot.core.rollout import Rollout
from fot.engines.scripted import Pace, Scripted
from fot.engines.scripted_server import ScriptedServer


def spelled(problem_id, problem, rollout_id, text, **more):
    """A recorded rollout whose tokens are its characters."""
    return Rollout(
        model="m",
        benchmark="b",
        problem_id=problem_id,
        problem=problem,
        rollout_id=rollout_id,
        text=text,
        n_tokens=len(text),
        token_ends=list(range(1, len(text) + 1)),
        finish_reason="stop",
        **more,
    )


@contextmanager
def serving(rollouts, dialect="vllm", *, pace=None, faults=None, **options):
    """Gives (url, engine); nothing may be running on the engine at the end."""
    engine = Scripted(rollouts, pace=pace or Pace(), faults=faults)
    ready, ending, told = threading.Event(), {}, {}

    async def main():
        stop = ending["stop"] = asyncio.Event()
        ending["loop"] = asyncio.get_running_loop()
        async with ScriptedServer(engine, dialect, **options) as server:
            told["url"] = server.url
            ready.set()
            await stop.wait()
            for _ in range(200):  # a cut connection is seen a moment later
                if not (await engine.counters()).running:
                    break
                await asyncio.sleep(0.01)
            told["left"] = await engine.counters()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert ready.wait(10)
    try:
        yield told["url"], engine
    finally:
        ending["loop"].call_soon_threadsafe(ending["stop"].set)
        thread.join(20)
    assert told["left"].running == 0
