"""The behaviour profile of recorded rollouts of the reasoner, with intervals; see `record.py` for recording them."""

from __future__ import annotations

import argparse
import gzip
import json
from itertools import groupby
from pathlib import Path

from behaviour import Attempt, profile

from fot.core.rollout import Rollout
from fot.tasks.arithmetic import parse_problem, split_of


def read(pools: list[Path]) -> list[list[Rollout]]:
    """The rollouts of recorded pools, problem by problem; raises `ValueError` at a problem that was trained on."""
    rows = []
    for pool in pools:
        with gzip.open(pool, "rt", encoding="utf-8") as lines:
            rows += [Rollout(**json.loads(line)) for line in lines]
    if any(split_of(parse_problem(row.problem_id)) != "test" for row in rows):
        raise ValueError("a pool holds problems of the train split")
    return [list(group) for _, group in groupby(rows, key=lambda row: row.key)]


def attempts(group: list[Rollout]) -> list[Attempt]:
    """The rollouts of one problem as they are judged."""
    return [Attempt(row.text, row.tokens, row.gold or "") for row in group]


def evaluate(pools: list[Path]) -> dict[str, object]:
    """The profile of all problems of some recorded pools together."""
    groups = read(pools)
    return profile([parse_problem(group[0].problem_id) for group in groups], [attempts(group) for group in groups])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pools", type=Path, nargs="+")
    print(json.dumps(evaluate(parser.parse_args().pools), indent=1))
