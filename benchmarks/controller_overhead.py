"""What the controller costs beside the reading of its streams: CPU time of the client per 1,000 tokens.

    python benchmarks/controller_overhead.py --streams 32 256 1024

A scripted server in a process of its own sends n streams, a token a chunk, over loopback. They are read by a bare
client (httpx2, lines, JSON: nothing else), by our engine adapter alone, and by the controller under `sc` and under a
funnel that decides at three checkpoints and keeps everything, so that all read the same tokens. Runs take turns; the
median of the rounds counts.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import httpx2
import msgspec

from fot.core.rollout import Rollout
from fot.engines import connect
from fot.engines.base import Engine, Request, Sampling
from fot.engines.scripted import Pace, Scripted
from fot.engines.scripted_server import ScriptedServer
from fot.methods import Context, parse
from fot.online.controller import Controller, Plan
from fot.online.lane import Prompt

WORDS = ["so ", "the ", "sum ", "of ", "it ", "is ", "Wait, ", "perhaps ", "then ", "carry ", "1 ", "+ ", "7 ", "= "]
PROBLEM = "How much is it?"
CHUNK_TOKENS = 1


def rollouts(streams: int, tokens: int) -> list[Rollout]:
    """Texts of whole words, one for each token."""
    made = []
    for at in range(streams):
        pieces = [WORDS[(at * 7 + place * (3 + at % 5)) % len(WORDS)] for place in range(tokens)]
        ends, end = [], 0
        for piece in pieces:
            end += len(piece)
            ends.append(end)
        made.append(
            Rollout(
                model="m",
                benchmark="b",
                problem_id="p",
                problem=PROBLEM,
                rollout_id=at,
                text="".join(pieces),
                n_tokens=tokens,
                token_ends=ends,
                finish_reason="stop",
            )
        )
    return made


async def serve(streams: int, tokens: int) -> None:
    """Serve until stdin closes."""
    engine = Scripted(rollouts(streams, tokens), pace=Pace(chunk_tokens=CHUNK_TOKENS, turns=1))
    async with ScriptedServer(engine, "vllm") as server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def bare(url: str, streams: int, tokens: int) -> int:
    """Read the same streams, and count their chunks."""
    limits = httpx2.Limits(max_connections=None)
    body = {"model": "scripted", "stream": True, "temperature": 1.0, "return_token_ids": True}
    body["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}

    async def one(client: httpx2.AsyncClient, seed: int) -> int:
        seen = 0
        asked = body | {"messages": [{"role": "user", "content": PROBLEM}], "seed": seed}
        async with client.stream("POST", f"{url}/v1/chat/completions", json=asked) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    usage = msgspec.json.decode(line[6:]).get("usage")
                    seen = usage["completion_tokens"] if usage else seen
        return seen

    async with httpx2.AsyncClient(limits=limits, timeout=None) as client:
        return sum(await asyncio.gather(*(one(client, 42 + at) for at in range(streams))))


async def adapter(url: str, streams: int, tokens: int) -> int:
    """Our engine alone: the same, as chunks."""
    engine = await connect(f"vllm+{url}")

    async def one(at: int) -> int:
        seen = 0
        prompt = ({"role": "user", "content": PROBLEM},)
        request = Request(id=f"bench-{at:05d}.", messages=prompt, seed=42 + at, sampling=Sampling(temperature=1.0))
        async for chunk in engine.stream(request):
            seen = chunk.tokens
        return seen

    try:
        return sum(await asyncio.gather(*(one(at) for at in range(streams))))
    finally:
        await engine.close()


def controller(policy: str) -> Callable[[str, int, int], Awaitable[int]]:
    """The whole controller."""

    async def run(url: str, streams: int, tokens: int) -> int:
        engine: Engine = await connect(f"vllm+{url}")
        spec = parse(policy.format(*(tokens * share // 8 for share in (2, 4, 6))))
        plan = Plan(k=streams, kernel=spec.kernel, needs=spec.needs, prime="none")
        prompt = Prompt(messages=({"role": "user", "content": PROBLEM},), sampling=Sampling(temperature=1.0))
        told = Controller(engine, spec.build(Context(k=streams)), prompt, plan, lambda event: None)
        try:
            return sum(lane.generated for lane in (await told.run()).lanes)
        finally:
            await engine.close()

    return run


READERS: dict[str, Callable[[str, int, int], Awaitable[int]]] = {
    "bare": bare,
    "adapter": adapter,
    "sc": controller("sc"),
    "fot": controller("fot:checkpoints={}/{}/{},keep=1"),
}


def measure(streams: int, tokens: int, rounds: int) -> dict[str, object]:
    """CPU milliseconds per 1,000 tokens of every reader, and their ratios to the bare one."""
    command = [sys.executable, __file__, "--serve", str(streams), str(tokens)]
    found: dict[str, list[float]] = {name: [] for name in READERS}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        for turn in range(rounds + 1):
            for name, read in READERS.items():
                gc.collect()
                began = time.process_time()
                seen: int = asyncio.run(read(url, streams, tokens))  # type: ignore[arg-type]
                spent = time.process_time() - began
                if seen != streams * tokens:
                    raise SystemExit(f"{name} saw {seen} of {streams * tokens} tokens")
                if turn:  # the first one warms up
                    found[name].append(1e6 * spent / seen)
        assert server.stdin is not None
        server.stdin.close()
    told = {name: round(statistics.median(values), 2) for name, values in found.items()}
    ratios = {name: round(told[name] / told["bare"], 3) for name in told if name != "bare"}
    return {"streams": streams, "tokens": streams * tokens, "cpu_ms_per_1000_tokens": told, "against_bare": ratios}


def main() -> None:
    """Print one JSON object for each number of streams."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[32, 256, 1024])
    parser.add_argument("--tokens", type=int, default=48_000, help="in all, over the streams")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(*arguments.serve))
        return
    for streams in arguments.streams:
        print(json.dumps(measure(streams, max(40, arguments.tokens // streams), arguments.rounds)), flush=True)


if __name__ == "__main__":
    main()
