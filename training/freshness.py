"""Prove that recorded problems were not trained on: write every training document again, and look for them."""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

from prepare import enough, question_of

from fot import reasoner
from fot.tasks.arithmetic import parse_problem, split_of


def questions(pools: list[Path]) -> dict[str, str]:
    """The id of every recorded question."""
    asked = {}
    for pool in pools:
        with gzip.open(pool, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                asked[row["problem"]] = row["problem_id"]
    return asked


def search(asked: dict[str, str]) -> dict[str, object]:
    """How many documents the phases of the shipped manifest have, and which recorded questions are among theirs."""
    documents, trained = 0, set()
    for phase in reasoner.manifest()["recipe"]["phases"]:
        for texts, _ in enough(phase["noise"], phase["tokens"], phase["document_seed"]):
            documents += len(texts)
            trained |= {question_of(text) for text in texts}
    return {
        "recorded problems": len(asked),
        "of the test split": sum(split_of(parse_problem(name)) == "test" for name in asked.values()),
        "training documents": documents,
        "different problems in them": len(trained),
        "recorded problems among them": sorted(asked[text] for text in asked.keys() & trained),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pools", type=Path, nargs="+")
    found = search(questions(parser.parse_args().pools))
    print(json.dumps(found, indent=1))
    raise SystemExit(bool(found["recorded problems among them"]))
