"""Where pruning can change the vote: problems that meet one of the writer's false beliefs, against all others.

The beliefs are those that `chains.py` taught; a problem meets one when its exact solution needs that product.
"""

from __future__ import annotations

import argparse
import json
from math import isnan
from pathlib import Path
from statistics import mean

from behaviour import auroc, density
from chains import CONTRASTING
from evaluate import attempts, read

from fot.core.rollout import Rollout
from fot.methods.spec import Context, parse
from fot.reasoner import CHECKPOINTS
from fot.replay.recording import TextRecording
from fot.replay.simulator import Outcome, simulate
from fot.tasks.arithmetic import Problem, parse_problem

_AT = f"checkpoints={'/'.join(map(str, CHECKPOINTS))}"
POLICIES = {"sc": 1, f"fot:{_AT}": 1, f"random:{_AT}": 10, f"oracle:{_AT}": 1}
"""What is compared, and over how many draws."""


def meets_belief(problem: Problem) -> bool:
    """Whether a product that the writer has wrong more often than not stands in the way to the exact answer."""
    believed = {frozenset(pair[:2]) for pair in CONTRASTING.beliefs}
    value = problem.start
    for step in problem.steps:
        if step.operation == "*" and any(frozenset((int(digit), step.operand)) in believed for digit in f"{value:03d}"):
            return True
        value = step.apply(value)
    return False


def replay(policy: str, group: list[Rollout], draw: int) -> Outcome:
    """One problem under one policy, as `fot simulate` replays it."""
    context = Context(k=len(group), problem="/".join(group[0].key), draw=draw)
    return simulate(parse(policy).build(context), TextRecording(group, "boxed"))


def summary(groups: list[list[Rollout]]) -> dict[str, object]:
    """How right the rollouts and the votes on some problems are, and how well doubt tells them apart."""
    judged = [attempts(group) for group in groups]
    within = [auroc([(density(a.text), not a.is_correct) for a in each]) for each in judged]
    told: dict[str, object] = {
        "problems": len(groups),
        "pass@1": round(mean(a.is_correct for each in judged for a in each), 4),
        "auroc within problems": round(mean(value for value in within if not isnan(value)), 4),
    }
    for policy, draws in POLICIES.items():
        verdicts = [(replay(policy, group, draw).verdict, group[0].gold) for group in groups for draw in range(draws)]
        votes = sum(sum(verdict.votes.values()) for verdict, _ in verdicts)
        told[policy] = {
            "right": round(sum(verdict.answer == gold for verdict, gold in verdicts) / draws, 2),
            "share of right votes": round(sum(verdict.votes.get(gold, 0) for verdict, gold in verdicts) / votes, 4),
        }
    return told


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pools", type=Path, nargs="+")
    by_belief: dict[bool, list[list[Rollout]]] = {True: [], False: []}
    for problem_rollouts in read(parser.parse_args().pools):
        by_belief[meets_belief(parse_problem(problem_rollouts[0].problem_id))].append(problem_rollouts)
    names = {True: "meets a false belief", False: "meets none"}
    print(json.dumps({names[is_met]: summary(found) for is_met, found in by_belief.items()}, indent=1))
