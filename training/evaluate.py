"""The behaviour profile of recorded rollouts of the reasoner, with intervals; see `record.py` for recording them."""

from __future__ import annotations

import argparse
import gzip
import json
from itertools import groupby
from pathlib import Path

from behaviour import Attempt, profile

from fot.tasks.arithmetic import Problem, parse_problem, split_of


def evaluate(pools: list[Path]) -> dict[str, object]:
    """The profile of all problems of some recorded pools together; every one must be of the test split."""
    rows = []
    for pool in pools:
        with gzip.open(pool, "rt", encoding="utf-8") as lines:
            rows += [json.loads(line) for line in lines]
    asked: list[Problem] = []
    groups: list[list[Attempt]] = []
    for _, group in groupby(rows, key=lambda row: row["problem_id"]):
        members = list(group)
        asked.append(parse_problem(members[0]["problem_id"]))
        groups.append([Attempt(row["text"], row["n_tokens"], row["gold"]) for row in members])
    if any(split_of(problem) != "test" for problem in asked):
        raise ValueError("a pool holds problems of the train split")
    return profile(asked, groups)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pools", type=Path, nargs="+")
    print(json.dumps(evaluate(parser.parse_args().pools), indent=1))
