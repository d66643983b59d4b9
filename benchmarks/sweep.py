"""How long a sweep takes, and whether it gives what `fot simulate` gives: python -m benchmarks.sweep POOL --k 30 ..."""

from __future__ import annotations

import argparse
import random
import resource
import time
from pathlib import Path

from fot.grading.base import grader
from fot.replay.evaluate import Judge, Study
from fot.replay.grid import grid
from fot.replay.sheet import Sheet
from fot.replay.study import choose
from fot.replay.sweep import sweep

SAMPLE = 30
FIELDS = ("attention", "attention_macro", "tokens", "latency")


def main() -> None:
    """Time every kernel size, then compare a random sample of configurations with single runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", type=Path)
    parser.add_argument("--k", type=int)
    parser.add_argument("--commit", default="boxed")
    parser.add_argument("--grader", default="exact")
    given = parser.parse_args()
    chosen = choose([given.pool], given.k)
    sheets = [Sheet(pool, part.parts, given.commit) for pool, part in zip(chosen.pools, chosen.selections, strict=True)]
    judge = Judge(grader(given.grader))
    configurations = grid(kernels=range(1, 22))
    start = time.perf_counter()
    swept = sweep(sheets, judge, configurations)
    took = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(configurations):,} configurations on {chosen.problems} problems: {took:.1f} s, {memory:,.0f} MiB at most"
    )
    figures, study = swept.figures(), Study(sheets, judge)
    for at in random.Random(0).sample(range(len(configurations)), SAMPLE):
        alone = study.evaluate(configurations[at].spec)
        same = figures.correct[at] == alone.correct and figures.delta[at] == alone.delta
        same &= all(abs(getattr(figures, name)[at] - getattr(alone.savings, name)) < 1e-12 for name in FIELDS)
        if not same:
            raise SystemExit(f"{configurations[at].spec.text} differs from fot simulate")
    print(f"{SAMPLE} of them, at random, are those of fot simulate")


if __name__ == "__main__":
    main()
