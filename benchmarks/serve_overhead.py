"""What the proxy costs: a client that talks to the upstream in k streams itself, against one that asks the proxy.

python -m benchmarks.serve_overhead [--k 32] [--problems 1,8,32] [--tokens 400] [--repeats 3] [--requests N]

Upstream, proxy and client are processes of their own on loopback. Upstream is the scripted engine, at full speed or at
--token-ms a token, so that nothing but the cost of serving shows. The direct client is a light one: httpx2 and msgspec,
which reads every chunk and keeps its text. Both get the same tokens: the funnel looks at checkpoints, and keeps all.
With --requests the memory of the proxy is told over so many requests instead, every other batch of them streamed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path

import httpx2
import msgspec

from fot.core.rollout import Rollout
from fot.engines.scripted import Pace, Scripted
from fot.engines.scripted_server import ScriptedServer

PROBLEM = "How many legs do three spiders have?"
TICKS = os.sysconf("SC_CLK_TCK")


class Delta(msgspec.Struct):
    """What is read of a chunk."""

    content: str | None = None


class Choice(msgspec.Struct):
    """One choice of a chunk."""

    delta: Delta | None = None


class Usage(msgspec.Struct):
    """Tokens so far."""

    completion_tokens: int = 0


class Event(msgspec.Struct):
    """One chunk."""

    choices: list[Choice] = []
    usage: Usage | None = None


def recorded(k: int, tokens: int) -> list[Rollout]:
    """Rollouts of so many tokens, four characters each."""
    text = ("so it is " * tokens)[: 4 * tokens - 12] + "\\boxed{24}. "
    ends = list(range(4, 4 * tokens + 1, 4))
    return [
        Rollout(
            model="scripted", benchmark="b", problem_id="p", rollout_id=number, problem=PROBLEM, text=text,
            token_ends=ends, n_tokens=tokens, finish_reason="stop", prompt_tokens=11,
        )
        for number in range(k)
    ]  # fmt: skip


async def upstream(args: argparse.Namespace) -> None:
    """Serve until killed; the URL is the first line."""
    pace = Pace(chunk_tokens=args.chunk_tokens, turns=0, token_s=args.token_ms / 1000)
    async with ScriptedServer(Scripted(recorded(args.k, args.tokens), pace=pace), "vllm") as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


def client() -> httpx2.AsyncClient:
    """Without a bound on connections or on time."""
    limits = httpx2.Limits(max_connections=None)
    return httpx2.AsyncClient(limits=limits, timeout=httpx2.Timeout(None), headers={"accept-encoding": "identity"})


async def one_stream(http: httpx2.AsyncClient, url: str, seed: int) -> int:
    """One rollout, read to its end; gives its tokens."""
    decoder, pieces, tokens = msgspec.json.Decoder(Event), [], 0
    options = {"include_usage": True, "continuous_usage_stats": True}
    messages = [{"role": "user", "content": PROBLEM}]
    body = {"model": "scripted", "stream": True, "stream_options": options, "seed": seed, "messages": messages}
    rest = b""
    async with http.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
        async for data in answer.aiter_raw():
            *frames, rest = (rest + data).split(b"\n\n")
            for frame in frames:
                if frame.startswith(b"data: {"):
                    event = decoder.decode(frame[6:])
                    tokens = event.usage.completion_tokens if event.usage else tokens
                    pieces += [
                        choice.delta.content for choice in event.choices if choice.delta and choice.delta.content
                    ]
    return tokens


async def direct(url: str, problems: int, k: int) -> int:
    """All problems at once, k streams each."""
    async with client() as http:
        return sum(await asyncio.gather(*(one_stream(http, url, 42 + n % k) for n in range(problems * k))))


async def proxied(url: str, problems: int, args: argparse.Namespace, *, stream: bool = False) -> int:
    """All problems at once, one request each."""
    fot = {"k": args.k, "policy": args.policy}
    body = {"model": "scripted", "messages": [{"role": "user", "content": PROBLEM}], "fot": fot, "stream": stream}
    body |= {"stream_options": {"include_usage": True}} if stream else {}

    async def ask(http: httpx2.AsyncClient) -> int:
        said = (await http.post(f"{url}/v1/chat/completions", json=body)).text
        told = json.loads(said.split("data: ")[-2] if stream else said)
        if "error" in told:
            raise RuntimeError(told["error"]["message"])
        return int(told["usage"]["completion_tokens"])

    async with client() as http:
        return sum(await asyncio.gather(*(ask(http) for _ in range(problems))))


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mib(pid: int) -> float:
    """Memory that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def start_upstream(args: argparse.Namespace) -> tuple[subprocess.Popen[str], str]:
    """An upstream in a process of its own, and its URL."""
    names = ("k", "tokens", "token_ms", "chunk_tokens")
    asked = [word for name in names for word in ("--" + name.replace("_", "-"), str(getattr(args, name)))]
    command = [sys.executable, "-m", "benchmarks.serve_overhead", "--upstream", *asked]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def start_proxy(url: str, args: argparse.Namespace) -> tuple[subprocess.Popen[str], str]:
    """The proxy in a process of its own, and its URL."""
    flags = ["--upstream", f"vllm+{url}", "--port", "0", "--slots", "100000", "--queue", "10000", "-k", str(args.k)]
    command = [sys.executable, "-m", "fot", "serve", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    told = process.stderr.readline()
    import threading

    lines = process.stderr
    threading.Thread(target=lambda: [None for _ in lines], daemon=True).start()
    root = told.split("note: ")[1].split("/v1")[0]
    for _ in range(200):
        try:
            if httpx2.get(f"{root}/health").status_code == 200:
                break
        except httpx2.HTTPError:
            pass
        time.sleep(0.1)
    return process, root


def timed(work: Coroutine[None, None, int], pids: list[int]) -> tuple[int, float, list[float]]:
    """Tokens, wall seconds, CPU seconds of this process and of the others."""
    before, own, began = [cpu_s(pid) for pid in pids], time.process_time(), time.perf_counter()
    tokens = asyncio.run(work)
    wall = time.perf_counter() - began
    return tokens, wall, [time.process_time() - own, *(cpu_s(pid) - was for pid, was in zip(pids, before, strict=True))]


def compare(args: argparse.Namespace) -> None:
    """Print a row for each number of problems; of all repeats the fastest counts, on either side."""
    up, url = start_upstream(args)
    proxy, root = start_proxy(url, args)
    try:
        timed(proxied(root, 1, args), [])
        timed(direct(url, 1, args.k), [])
        for problems in map(int, args.problems.split(",")):
            ours, theirs = [], []
            for _ in range(args.repeats):
                theirs.append(timed(direct(url, problems, args.k), [up.pid]))
                ours.append(timed(proxied(root, problems, args), [up.pid, proxy.pid]))
            best, base = min(ours, key=lambda run: run[1]), min(theirs, key=lambda run: run[1])
            assert best[0] == base[0] == problems * args.k * args.tokens, (best[0], base[0])
            print(json.dumps(row(problems, best, base)), flush=True)
    finally:
        for process in (proxy, up):
            process.terminate()
            process.wait()


def row(
    problems: int, ours: tuple[int, float, list[float]], theirs: tuple[int, float, list[float]]
) -> dict[str, object]:
    """One row of figures."""
    tokens = ours[0]
    return {
        "problems": problems,
        "tokens": tokens,
        "direct_tokens_per_s": round(tokens / theirs[1]),
        "proxy_tokens_per_s": round(tokens / ours[1]),
        "share_of_direct": round(theirs[1] / ours[1], 3),
        "added_us_per_token": round((ours[1] - theirs[1]) / tokens * 1e6, 2),
        "direct_client_cpu_us_per_token": round(theirs[2][0] / tokens * 1e6, 2),
        "proxy_and_client_cpu_us_per_token": round((ours[2][0] + ours[2][2]) / tokens * 1e6, 2),
        "upstream_cpu_us_per_token": [round(run[2][1] / tokens * 1e6, 2) for run in (theirs, ours)],
    }


def memory(args: argparse.Namespace) -> None:
    """Print the proxy's memory over many requests."""
    up, url = start_upstream(args)
    proxy, root = start_proxy(url, args)
    at_once = 8
    try:
        for done in range(0, args.requests + 1, at_once):
            if done % (args.requests // 10 // at_once * at_once or at_once) == 0:
                print(json.dumps({"requests": done, "resident_mib": round(resident_mib(proxy.pid), 1)}), flush=True)
            asyncio.run(proxied(root, at_once, args, stream=done % (2 * at_once) == 0))
    finally:
        for process in (proxy, up):
            process.terminate()
            process.wait()


def main() -> None:
    """Read the flags, run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--chunk-tokens", type=int, default=1)
    parser.add_argument("--policy", default="fot:checkpoints=100/200/300,keep=1.0")
    parser.add_argument("--token-ms", type=float, default=0.0)
    parser.add_argument("--problems", default="1,8,32")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.upstream:
        asyncio.run(upstream(args))
    elif args.requests:
        memory(args)
    else:
        compare(args)


if __name__ == "__main__":
    main()
