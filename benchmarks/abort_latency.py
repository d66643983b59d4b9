"""How long an engine takes to let go of a rollout: from the decision to the freed slot.

    python benchmarks/abort_latency.py embedded
    python benchmarks/abort_latency.py http://127.0.0.1:8000/v1 --rollouts 32 --rounds 20

In each round `--rollouts` rollouts run, and one of them is stopped amid its tokens; the clock runs from the call of
`abort` until the engine itself says that one request fewer is running. The others must go on, all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator

from fot.engines import connect
from fot.engines.base import Chunk, Engine, Request, Sampling

PROMPT = "Count upwards from one, slowly, and do not stop: 1, 2, 3,"
GIVE_UP_S = 60.0


async def read(stream: AsyncIterator[Chunk], started: asyncio.Event) -> Chunk:
    """Read to the end; returns the last chunk."""
    last = None
    async for last in stream:
        if last.tokens >= 3:
            started.set()
    started.set()
    if last is None:
        raise RuntimeError("the engine said nothing at all")
    return last


async def running(engine: Engine) -> int:
    """How many requests the engine says are running."""
    counters = await engine.counters()
    if counters is None or counters.running is None:
        raise SystemExit("this engine keeps no books that could be read: start the server with its metrics on")
    return counters.running


async def one_round(engine: Engine, rollouts: int, number: int, tokens: int) -> dict[str, float]:
    """Start, stop one, time it, look after the others, stop them."""
    # What no server but one knows is skipped by the others: every rollout must still run when one is stopped.
    sampling = Sampling(temperature=1.0, extra={"ignore_eos": True})
    names = [f"fot-bench{number:03d}-r{rollout:03d}." for rollout in range(rollouts)]
    readers, events = [], []
    for rollout, name in enumerate(names):
        request = Request(id=name, prompt=PROMPT, seed=42 + rollout, max_tokens=tokens, sampling=sampling)
        events.append(asyncio.Event())
        readers.append(asyncio.create_task(read(engine.stream(request), events[-1])))
    await asyncio.gather(*(event.wait() for event in events))
    before = await running(engine)
    stopped = rollouts // 2
    begin = time.perf_counter()
    await engine.abort(names[stopped])
    told = time.perf_counter() - begin
    while await running(engine) >= before:
        if time.perf_counter() - begin > GIVE_UP_S:
            raise SystemExit("the engine went on generating: an abort has no effect here")
        await asyncio.sleep(0.001)
    freed = time.perf_counter() - begin
    survivors = sum(not reader.done() for reader in readers)
    await asyncio.gather(*(engine.abort(name) for name in names))
    await asyncio.gather(*readers)
    while await running(engine):
        await asyncio.sleep(0.01)
    return {"before": before, "survivors": survivors, "told_s": told, "freed_s": freed}


async def measure(arguments: argparse.Namespace) -> dict[str, object]:
    """All rounds, and what they say together."""
    options = {"parallel": arguments.rollouts, "model": arguments.model} if arguments.engine == "embedded" else {}
    engine = await connect(arguments.engine, **options)
    rounds = []
    try:
        for number in range(arguments.rounds):
            rounds.append(await one_round(engine, arguments.rollouts, number, arguments.tokens))
    finally:
        await engine.close()
    freed = [done["freed_s"] for done in rounds]
    return {
        "engine": engine.name,
        "rollouts": arguments.rollouts,
        "rounds": len(rounds),
        "median_s": round(statistics.median(freed), 4),
        "worst_s": round(max(freed), 4),
        "acknowledged_median_s": round(statistics.median(done["told_s"] for done in rounds), 4),
        "all_others_went_on": all(done["survivors"] == arguments.rollouts - 1 for done in rounds),
    }


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", help="a name or a URL, as for fot.engines.connect")
    parser.add_argument("--model", help="of the embedded engine; default: the built-in reasoner")
    parser.add_argument("--rollouts", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=900, help="cap of a rollout")
    print(json.dumps(asyncio.run(measure(parser.parse_args()))))


if __name__ == "__main__":
    main()
