"""Record a pool: rollouts of an exported GGUF on unseen problems, one JSON row each, with exact token ends."""

from __future__ import annotations

import argparse
import gzip
import json
from itertools import islice
from pathlib import Path

from sampling import CAP, Sampler

from fot.reasoner import MODEL_NAME, SAMPLING
from fot.tasks.arithmetic import BENCHMARK, DIFFICULTIES, draw_problems

STREAMS = 32


def record(options: argparse.Namespace) -> list[dict[str, object]]:
    """The rows, problem by problem; rollout j of problem i has the engine seed `seed * 10**6 + i * 1000 + j`."""
    seed, difficulty = options.seed, options.difficulty
    chosen = list(
        islice(
            draw_problems("test", DIFFICULTIES[difficulty], seed=seed), options.skip, options.skip + options.problems
        )
    )
    jobs = [
        (problem, number, seed * 10**6 + index * 1000 + number)
        for index, problem in enumerate(chosen, start=options.skip)
        for number in range(options.rollouts)
    ]
    settings = {
        "temperature": options.temperature,
        "top_p": SAMPLING.top_p,
        "top_k": SAMPLING.top_k,
        "min_p": SAMPLING.min_p,
        "n_predict": CAP,
    }
    sampled = Sampler(options.model, STREAMS).sample(
        [job[0].text for job in jobs], [job[2] for job in jobs], **settings
    )
    return [
        {
            "model": MODEL_NAME,
            "benchmark": f"{BENCHMARK}-{difficulty}",
            "problem_id": problem.problem_id,
            "problem": problem.text,
            "gold": problem.gold,
            "rollout_id": number,
            "text": rollout.text,
            "n_tokens": len(rollout.token_ids),
            "finish_reason": rollout.finish_reason,
            "token_ends": list(rollout.token_ends),
            "seed": engine_seed,
            "prompt_tokens": rollout.prompt_tokens,
        }
        for (problem, number, engine_seed), rollout in zip(jobs, sampled, strict=True)
    ]


def write(rows: list[dict[str, object]], out: Path) -> None:
    """Write gzipped JSON lines; equal rows give equal bytes."""
    lines = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    out.write_bytes(gzip.compress(lines.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--problems", type=int, default=64)
    parser.add_argument("--skip", type=int, default=0, help="leave out the first so many problems of the seed")
    parser.add_argument("--rollouts", type=int, default=32)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--difficulty", choices=sorted(DIFFICULTIES), default="middle")
    parser.add_argument("--temperature", type=float, default=SAMPLING.temperature)
    options = parser.parse_args()
    write(record(options), options.out)
