"""Does every generated token show in our books? Runs with pruning on an idle engine, beside the engine's own counter.

    python benchmarks/accounting.py embedded --runs 200 --k 8
    python benchmarks/accounting.py http://127.0.0.1:8000/v1 --runs 200 --k 8

After each run the growth of the engine's generated-token counter is compared with the sum over our rollouts. A token
that was underway when a rollout was stopped may be in the one and not in the other: one for each rollout.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from itertools import islice

from fot.engines import connect
from fot.engines.base import Engine, Sampling
from fot.online.api import solve
from fot.tasks.arithmetic import draw_problems

SETTLE_S = 10.0


async def generated(engine: Engine) -> int:
    """What the engine says, once it is idle."""
    for _ in range(int(SETTLE_S / 0.02)):
        counters = await engine.counters()
        if counters is None or counters.generated_tokens is None:
            raise SystemExit("this engine keeps no books that could be read")
        if not counters.running:
            return counters.generated_tokens
        await asyncio.sleep(0.02)
    raise SystemExit(f"requests still run {SETTLE_S:g} s after the run: something was left behind")


async def measure(arguments: argparse.Namespace) -> dict[str, object]:
    """All runs, and what they say together."""
    options = {"parallel": arguments.k, "model": arguments.model} if arguments.engine == "embedded" else {}
    engine = await connect(arguments.engine, **options)
    ours, off, worst, stopped = 0, [], 0.0, 0
    sampling = Sampling(temperature=0.7, max_tokens=arguments.max_tokens)
    try:
        began = before = await generated(engine)
        for problem in islice(draw_problems("test", 4, seed=1), arguments.runs):
            result = await solve(
                problem.text,
                engine=engine,
                policy=arguments.policy,
                k=arguments.k,
                way=arguments.way,
                instruction="",
                sampling=sampling,
            )
            after = await generated(engine)
            cut = sum(rollout.finish_reason == "abort" for rollout in result.rollouts)
            difference = (after - before) - result.usage.completion_tokens
            ours, stopped, before = ours + result.usage.completion_tokens, stopped + cut, after
            off.append(difference)
            worst = max(worst, abs(difference) / max(cut, 1))
    finally:
        await engine.close()
    return {
        "engine": engine.name,
        "runs": arguments.runs,
        "rollouts": arguments.runs * arguments.k,
        "stopped": stopped,
        "our_tokens": ours,
        "engine_tokens": before - began,
        "largest_difference_of_a_run": max(map(abs, off)),
        "runs_off_by_more_than_a_token_for_each_rollout": sum(abs(one) > arguments.k for one in off),
        "largest_difference_for_a_stopped_rollout": round(worst, 3),
    }


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", help="a name or a URL, as for fot.connect")
    parser.add_argument("--model", help="of the embedded engine; default: the reasoner in the box")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--policy", default="fot:checkpoints=120/200/300,keep=0.5")
    parser.add_argument("--way", default="stream")
    parser.add_argument("--max-tokens", type=int, default=600)
    print(json.dumps(asyncio.run(measure(parser.parse_args()))))


if __name__ == "__main__":
    main()
