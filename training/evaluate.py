"""The behaviour profile of recorded rollouts of the reasoner, with intervals; see `record.py` for recording them."""

from __future__ import annotations

import argparse
import gzip
import json
from itertools import groupby
from pathlib import Path

from behaviour import Attempt, profile

from fot.tasks.arithmetic import Problem, parse_problem, split_of


def evaluate(pool: Path, problems: int | None = None) -> dict[str, object]:
    """The profile of the first `problems` problems of a recorded pool; every one must be of the test split."""
    with gzip.open(pool, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    asked: list[Problem] = []
    groups: list[list[Attempt]] = []
    for _, group in groupby(rows, key=lambda row: row["problem_id"]):
        members = list(group)
        asked.append(parse_problem(members[0]["problem_id"]))
        groups.append([Attempt(row["text"], row["n_tokens"], row["gold"]) for row in members])
    if any(split_of(problem) != "test" for problem in asked):
        raise ValueError(f"{pool} holds problems of the train split")
    return profile(asked[:problems], groups[:problems])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", type=Path)
    parser.add_argument("--problems", type=int)
    print(json.dumps(evaluate(**vars(parser.parse_args())), indent=1))
