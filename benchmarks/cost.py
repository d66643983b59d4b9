"""The cost model beside measured runs: tokens and seconds of a server, and the speed that its machine would allow.

    python -m benchmarks.cost --slots 16 --k 16 --problems 4 --times 6

Starts llama.cpp's own server with the model in the box on loopback and times it (`fot doctor --calibrate`). A small
pool is sampled; `fot cost` tells from it what `--times` as many problems take under `sc` and `fot`. These are then run:
other problems of the same benchmark, as many at once as keep the slots taken. Tokens are off by chance (other problems)
and seconds by that, by half-empty batches at the end, and by the model; seconds a token show the last two alone.

Then the bound: the machine's own product of matrices and its own reading of memory, measured here, stand for the data
sheet of an accelerator, and the share of that speed which the server reaches is printed by batch.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.capacity import BENCHMARK, measured, record, serving, time_server
from fot.core.cost import Accelerator
from fot.core.timing import Timing
from fot.reasoner import CHECKPOINTS, model_path
from fot.tasks.load import load

POLICIES = ("sc", f"fot:checkpoints={'/'.join(map(str, CHECKPOINTS))}")


def main() -> None:
    """Everything, in order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=16)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--problems", type=int, default=4, help="of the small pool")
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=160, help="of each timed rollout")
    parser.add_argument("--threads", type=int, default=2, help="of the server")
    parser.add_argument("--context", type=int, default=1024, help="of each slot")
    parser.add_argument("--model", default=str(model_path()), help="a GGUF file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as spare, serving(options) as url:
        folder = Path(spare)
        timing = prepared(url, folder, options)
        foretold = told(folder, options.times)
        print(f"{'method':44} {'tokens':>18} {'ratio':>6} {'seconds':>16} {'ratio':>6}  seconds a token")
        for policy in POLICIES:
            print(beside(foretold[policy], run(url, policy, options), policy), flush=True)
    bounded(timing, Path(options.model).stat().st_size)


def prepared(url: str, folder: Path, options: argparse.Namespace) -> Timing:
    """The timing, and the small pool."""
    time_server(url, folder, options)
    record(url, folder, options)
    return Timing.from_json(msgspec.json.decode((folder / "timing.json").read_bytes()))


def told(folder: Path, times: int) -> dict[str, tuple[float, float]]:
    """Tokens and seconds of so many times the pool, by policy."""
    words = [sys.executable, "-m", "fot", "cost", str(folder / "pool"), "--timing", str(folder / "timing.json")]
    words += ["--times", str(times), *(word for policy in POLICIES for word in ("--policy", policy)), "--json"]
    costs = msgspec.json.decode(subprocess.run(words, check=True, capture_output=True).stdout)["costs"]
    return {each["policy"]: (each["tokens"], each["server_s"]) for each in costs}


def run(url: str, policy: str, options: argparse.Namespace) -> tuple[float, float]:
    """Tokens and seconds of the problems behind those of the small pool, all slots being taken."""
    most = options.problems * (options.times + 1)
    items = load(BENCHMARK, seed=0, limit=most).items[options.problems :]
    seconds, tokens = asyncio.run(measured(url, policy, max(2, 2 * options.slots // options.k), options.k, items))
    return tokens, seconds


def beside(foretold: Sequence[float], found: Sequence[float], policy: str) -> str:
    """One method's line: told / measured."""
    (tokens, seconds), (used, took) = foretold, found
    pairs = f"{tokens:8,.0f} / {used:7,.0f} {tokens / used:6.2f} {seconds:7.1f} / {took:6.1f} {seconds / took:6.2f}"
    return f"{policy:44} {pairs}  {seconds / tokens / (took / used):.2f}"


def bounded(timing: Timing, file_bytes: float) -> None:
    """The share of this machine's own speed that decoding reaches, by batch; of weights in half precision alone."""
    machine = this_machine()
    print(
        f"this machine: {machine.flops / 1e9:,.0f} GFLOP/s in products, {machine.bandwidth / 1e9:,.1f} GB/s from memory"
    )
    weights = file_bytes / 2
    for knot in timing.knots:
        bound_s = max(knot.batch * 2 * weights / machine.flops, file_bytes / machine.bandwidth)
        steps = f"{1000 * knot.step_s:6.2f} ms, by the weights at least {1000 * bound_s:6.3f} ms"
        print(f"a step of {knot.batch:3}: {steps}: {bound_s / knot.step_s:.0%} of the speed")


def this_machine() -> Accelerator:
    """Products of matrices in single precision, and copying, on all cores that numpy takes: the best of a few."""
    side = 2048
    left = np.random.default_rng(0).random((side, side), np.float32)
    flops = 2 * side**3 / fastest(lambda: left @ left)
    stretch = np.ones(1 << 28, np.uint8)
    return Accelerator(flops=flops, bandwidth=len(stretch) / fastest(lambda: stretch.view(np.uint64).max()), memory=1e9)


def fastest(work: Callable[[], object]) -> float:
    """Seconds of the shortest of five runs."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


if __name__ == "__main__":
    main()
