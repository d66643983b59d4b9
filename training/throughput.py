"""Tokens per second of the embedded engine at several numbers of parallel streams, as `fot` drives it.

On a machine that is busy with other things, look at tokens per second of processor time, of engine and driver together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from itertools import islice

from fot.engines.base import Request
from fot.engines.embedded import Embedded
from fot.tasks.arithmetic import DIFFICULTIES, draw_problems


async def throughput(streams: int, rollouts: int, threads: int | None) -> dict[str, float]:
    """Run `rollouts` rollouts of middle problems over `streams` slots; loading the model is left out."""
    problems = islice(draw_problems("test", DIFFICULTIES["middle"], seed=5), rollouts + 1)
    warm_up, *requests = [
        Request(id=f"r{number:03d}.", messages=[{"role": "user", "content": problem.text}], seed=number)
        for number, problem in enumerate(problems)
    ]
    engine = Embedded(parallel=streams, threads=threads)
    try:
        await _tokens(engine, warm_up)
        began, worked = time.monotonic(), time.process_time()
        tokens = sum(await asyncio.gather(*(_tokens(engine, request) for request in requests)))
        wall, cpu = time.monotonic() - began, time.process_time() - worked
    finally:
        await engine.close()
    return {
        "streams": streams,
        "tokens": tokens,
        "wall_s": round(wall, 2),
        "tokens_per_s": round(tokens / wall),
        "tokens_per_cpu_s": round(tokens / cpu),
    }


async def _tokens(engine: Embedded, request: Request) -> int:
    tokens = 0
    async for chunk in engine.stream(request):
        tokens = chunk.tokens
    return tokens


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--rollouts", type=int, help="in place of two for each stream, and eight at least")
    parser.add_argument("--threads", type=int, help="of the engine, in place of its own choice")
    options = parser.parse_args()
    for count in options.streams:
        figures = throughput(count, options.rollouts or max(8, 2 * count), options.threads)
        print(json.dumps(asyncio.run(figures)), flush=True)
