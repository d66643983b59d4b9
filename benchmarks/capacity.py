"""Predicted against measured wall time, on a real server on loopback: calibrate, record a pool, predict, measure.

    python -m benchmarks.capacity --k 8 --slots 16 --problems 8 --concurrency 1 2 4 --repeats 2

Starts llama.cpp's own server (extra `embedded`) in a process of its own with the model in the box, or any GGUF. Times
it (`fot doctor --calibrate`), makes a pool (`fot sample`), predicts each method at each number of problems at once
(`fot plan`), and then runs them live: the same problems, the same seeds, over HTTP. Each round prints its own ratios of
predicted to measured wall time; the last table sums them up. `--serve` is the server's process.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import msgspec

from fot.cli.main import main as fot
from fot.engines import connect
from fot.engines.base import Engine, Sampling
from fot.engines.embedded import server_params
from fot.online.api import Session
from fot.reasoner import CHECKPOINTS, SAMPLING, model_path
from fot.tasks.load import load
from fot.tasks.readers import Item

BENCHMARK = "arithmetic-middle"
Prediction = dict[tuple[str, int], tuple[float, int]]


def serve(model: str, slots: int, context: int, threads: int) -> None:
    """A server until stdin closes; its address is the first line on stdout."""
    xllamacpp = import_module("xllamacpp")
    server = xllamacpp.Server(server_params(model, slots, context, threads))
    print(server.listening_address, flush=True)
    sys.stdin.read()


@contextmanager
def serving(options: argparse.Namespace) -> Iterator[str]:
    """The server's address, while it runs."""
    command = [sys.executable, "-m", "benchmarks.capacity", "--serve", "--model", options.model]
    command += ["--slots", str(options.slots), "--context", str(options.context), "--threads", str(options.threads)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("no pipes")
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(30)


def command(*words: str) -> None:
    """One command of ours, whose table goes to stderr: stdout is for the results."""
    sys.stdout.flush()
    keep, target = os.dup(1), os.dup(2)
    os.dup2(target, 1)
    try:
        if fot(list(words)):
            raise SystemExit(f"fot {' '.join(words)} failed")
    finally:
        sys.stdout.flush()
        os.dup2(keep, 1)
        os.close(keep)
        os.close(target)


def predicted(folder: Path, policies: Sequence[str], options: argparse.Namespace) -> Prediction:
    """Wall time and tokens by policy and concurrency, as `fot plan --json` tells it."""
    words = [sys.executable, "-m", "fot", "plan", str(folder / "pool"), "--timing", str(folder / "timing.json")]
    words += [word for policy in policies for word in ("--policy", policy)]
    words += [word for number in options.concurrency for word in ("--concurrency", str(number))]
    told = subprocess.run([*words, "--json"], check=True, capture_output=True).stdout
    return {
        (plan["spec"], plan["concurrency"]): (plan["wall_s"], plan["tokens"])
        for plan in msgspec.json.decode(told)["plans"]
    }


async def measured(url: str, policy: str, at_once: int, k: int, items: Iterable[Item]) -> tuple[float, int]:
    """Wall time of these problems, `at_once` running together, and the tokens that were generated."""
    waiting = iter(items)
    tokens = 0
    engine = await connect(url)

    async def work() -> None:
        nonlocal tokens
        for item in waiting:
            used = await one(engine, policy, item.prompt, item.problem_id, k)
            tokens += used

    try:
        await engine.capabilities()
        began = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(at_once)))
        return time.perf_counter() - began, tokens
    finally:
        await engine.close()


async def one(engine: Engine, policy: str, prompt: str, name: str, k: int) -> int:
    """One problem; the tokens that it took."""
    sampling = Sampling(**asdict(SAMPLING))
    asked = ({"role": "user", "content": prompt},)
    session = Session(
        engine, asked, {"policy": policy, "k": k, "seed": 42, "sampling": sampling, "about": {"problem_id": name}}
    )
    return (await session.run()).usage.completion_tokens


def record(url: str, folder: Path, options: argparse.Namespace) -> None:
    """The pool on which predictions rest."""
    command(
        *("sample", BENCHMARK, "--out", str(folder / "pool"), "--base-url", url, "--limit", str(options.problems)),
        *("--k", str(options.k), "--max-tokens", str(SAMPLING.max_tokens), "--temperature", str(SAMPLING.temperature)),
        *("--top-p", str(SAMPLING.top_p), "--top-k", str(SAMPLING.top_k), "--min-p", str(SAMPLING.min_p)),
    )


def time_server(url: str, folder: Path, options: argparse.Namespace) -> None:
    """The timing on which they rest."""
    command(
        *("doctor", "--calibrate", "--base-url", url, "--k", str(options.slots)),
        *("--out", str(folder / "timing.json"), "--tokens", str(options.tokens)),
    )


def rounds(url: str, folder: Path, options: argparse.Namespace) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """(predicted, measured) of every method at every concurrency; each round is timed anew before it is run."""
    items = load(BENCHMARK, seed=0, limit=options.problems).items
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for number in range(options.repeats):
        time_server(url, folder, options)
        expected = predicted(folder, options.policy, options)
        for at_once in options.concurrency:
            for policy in options.policy:
                wall_s, tokens = asyncio.run(measured(url, policy, at_once, options.k, items))
                guess_s, guess_tokens = expected[policy, at_once]
                found.setdefault((policy, at_once), []).append((guess_s, wall_s))
                print(
                    f"round {number}  {policy:32} {at_once:3} at once  predicted {guess_s:7.2f} s  "
                    f"measured {wall_s:7.2f} s  ratio {guess_s / wall_s:5.2f}  "
                    f"tokens predicted {guess_tokens:7,} generated {tokens:7,}",
                    flush=True,
                )
    return found


def summary(found: dict[tuple[str, int], list[tuple[float, float]]]) -> None:
    """Medians over rounds, and the error over all."""
    print(f"\n{'method':32} {'at once':>7} {'predicted s':>11} {'measured s':>10} {'ratio':>6}  rounds")
    for (policy, at_once), pairs in found.items():
        guess, wall = (statistics.median(pair[which] for pair in pairs) for which in (0, 1))
        each = " ".join(f"{a / b:.2f}" for a, b in pairs)
        print(f"{policy:32} {at_once:7} {guess:11.2f} {wall:10.2f} {guess / wall:6.2f}  {each}")
    errors = [abs(a / b - 1) for pairs in found.values() for a, b in pairs]
    print(f"error of a prediction: median {statistics.median(errors):.1%}, largest {max(errors):.1%}")
    policies = list(dict.fromkeys(policy for policy, _ in found))
    for policy in policies[1:]:
        for at_once in dict.fromkeys(number for _, number in found):
            ours, mark = found[policy, at_once], found[policies[0], at_once]
            told, seen = (sum(p[w] for p in ours) / sum(p[w] for p in mark) - 1 for w in (0, 1))
            print(f"{policy} against {policies[0]}, {at_once} at once: predicted {told:+.1%}, measured {seen:+.1%}")


def main() -> None:
    """Everything, in order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--problems", type=int, default=8)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--policy", nargs="+", default=["sc", f"fot:checkpoints={'/'.join(map(str, CHECKPOINTS))}"])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=160, help="of each timed rollout")
    parser.add_argument("--threads", type=int, default=1, help="of the server")
    parser.add_argument("--context", type=int, default=1024, help="of each slot")
    parser.add_argument("--model", default=str(model_path()), help="a GGUF file")
    parser.add_argument("--folder", type=Path, help="keeps the pool and the timing; a pool that is there is used")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.model, options.slots, options.context, options.threads)
        return
    with tempfile.TemporaryDirectory() as spare, serving(options) as url:
        folder = options.folder or Path(spare)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "pool").exists():
            record(url, folder, options)
        summary(rounds(url, folder, options))


if __name__ == "__main__":
    main()
