"""Forecast the behaviour profile by sampling the writer of the training chains itself, in seconds.

The forecast is optimistic: a model adds errors of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import re
from itertools import islice

from behaviour import Attempt, profile
from chains import CONTRASTING, write_chain

from fot.tasks.arithmetic import DIFFICULTIES, draw_problems

_TOKEN = re.compile(r"[ ]?[A-Za-z]+|\\|</think>|\d|\s|[^\w\s]")


def forecast(problems: int, rollouts: int, temperature: float, cap: int, difficulty: str) -> dict[str, object]:
    """The profile of `rollouts` chains for each of `problems` problems, cut at `cap` tokens."""
    noise = dataclasses.replace(CONTRASTING, temperature=temperature)
    chosen = list(islice(draw_problems("train", DIFFICULTIES[difficulty], seed=1), problems))
    rng = random.Random(0)
    groups = []
    for problem in chosen:
        group = []
        for _ in range(rollouts):
            text = write_chain(problem, noise, rng)
            ends = [found.end() for found in _TOKEN.finditer(text)]
            kept = text[: ends[cap - 1]] if len(ends) > cap else text
            group.append(Attempt(kept, min(cap, len(ends)), problem.gold))
        groups.append(group)
    return profile(chosen, groups)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--rollouts", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--cap", type=int, default=900)
    parser.add_argument("--difficulty", default="middle")
    options = parser.parse_args()
    print(json.dumps(forecast(**vars(options)), indent=1))
