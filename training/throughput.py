"""Tokens per second of the embedded engine at several numbers of parallel streams."""

from __future__ import annotations

import argparse
import json
import time
from itertools import islice
from pathlib import Path

from sampling import Sampler

from fot.tasks.arithmetic import DIFFICULTIES, draw_problems


def throughput(model: Path, streams: int, rollouts: int) -> dict[str, float]:
    """Sample `rollouts` rollouts of middle problems over `streams` slots, start-up left out."""
    problems = islice(draw_problems("test", DIFFICULTIES["middle"], seed=5), rollouts)
    sampler = Sampler(model, streams)
    began = time.monotonic()
    sampled = sampler.sample([problem.text for problem in problems], range(rollouts))
    wall = time.monotonic() - began
    tokens = sum(len(rollout.token_ids) for rollout in sampled)
    return {"streams": streams, "tokens": tokens, "wall_s": round(wall, 2), "tokens_per_s": round(tokens / wall)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 32, 64])
    options = parser.parse_args()
    for count in options.streams:
        print(json.dumps(throughput(options.model, count, max(8, 2 * count))))
