"""Measure the behaviour profile of an exported GGUF on fresh problems of the test split."""

from __future__ import annotations

import argparse
import json
import time
from itertools import islice
from pathlib import Path

from behaviour import Attempt, profile
from sampling import CAP, Sampler

from fot.tasks.arithmetic import DIFFICULTIES, draw_problems


def evaluate(options: argparse.Namespace) -> dict[str, object]:
    """The profile, with what was sampled and how."""
    operations = DIFFICULTIES[options.difficulty]
    problems = list(islice(draw_problems(options.split, operations, seed=options.seed), options.problems))
    sampler = Sampler(options.model, options.streams)
    questions = [problem.text for problem in problems for _ in range(options.rollouts)]
    began = time.monotonic()
    settings = {"temperature": options.temperature, "n_predict": options.cap}
    rollouts = sampler.sample(questions, range(1, len(questions) + 1), **settings)
    wall = time.monotonic() - began
    attempts = [
        Attempt(rollout.text, len(rollout.token_ids), problems[index // options.rollouts].gold)
        for index, rollout in enumerate(rollouts)
    ]
    groups = [attempts[first : first + options.rollouts] for first in range(0, len(attempts), options.rollouts)]
    if options.texts:
        options.texts.write_text("\n\n".join(f"# {q}\n{r.text}" for q, r in zip(questions, rollouts, strict=True)))
    return {
        "split": options.split,
        "difficulty": options.difficulty,
        "seed": options.seed,
        "temperature": options.temperature,
        "cap": options.cap,
        "k": options.rollouts,
        "tokens_per_s": round(sum(a.n_tokens for a in attempts) / wall),
        "streams": options.streams,
        **profile(problems, groups),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--split", choices=("train", "test"), default="test")
    parser.add_argument("--difficulty", choices=sorted(DIFFICULTIES), default="middle")
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--rollouts", type=int, default=32)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--cap", type=int, default=CAP)
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--texts", type=Path, help="also write every rollout here")
    print(json.dumps(evaluate(parser.parse_args()), indent=1))
