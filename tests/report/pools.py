"""Pools of made-up texts whose truth is known."""

import json

import numpy as np

from fot.core.shapes import shape_of
from fot.grading.base import grader
from fot.pools.importing import import_rows
from fot.pools.read import Pool
from fot.replay.study import choose
from fot.report.material import Material

PLAIN = ("so", "the", "value", "follows", "from", "this", "and", "we", "add", "both", "sides", "again")


def planted(
    folder, *, problems=12, k=8, effect=0.25, model="QwQ-32B", benchmark="made", seed=0, marker="perhaps", **fields
):
    """Rollouts of plain words; wrong ones have `marker` in place of a word more often, by `effect`."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    rows = folder / "rows.jsonl"
    with rows.open("w", encoding="utf-8") as out:
        for number in range(problems):
            chance = rng.uniform(0.2, 0.95)
            for at in range(k):
                right = bool(rng.random() < chance)
                rate = 0.08 + (0.0 if right else effect)
                words = [marker if rng.random() < rate else PLAIN[rng.integers(len(PLAIN))] for _ in range(120)]
                answer = "1" if right else str(2 + rng.integers(2))
                text = " ".join(words) + ("" if rng.random() < 0.04 else f" \\boxed{{{answer}}}")
                row = {
                    "model": model,
                    "benchmark": benchmark,
                    "problem_id": f"p{number}",
                    "rollout_id": at,
                    "text": text,
                }
                row |= {"n_tokens": int(rng.integers(3_000, 18_000)), "gold": "1", "problem": "What is it?"}
                out.write(json.dumps(row | fields) + "\n")
    return Pool(import_rows([rows], folder / "pool", synthetic="words drawn at random").pool).path


def material(*paths, k=None, seed=0, **options):
    chosen = choose(list(paths), k)
    return Material(chosen, commit="boxed", grader=grader("exact"), shape=shape_of, seed=seed, **options)
