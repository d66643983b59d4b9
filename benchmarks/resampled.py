"""How a method does over many pools: k of all unbiased rollouts of each problem, drawn at random, in random order.

    python -m benchmarks.resampled POOL:K:COMMIT... --policy SPEC [--policy SPEC ...] [--pools 16] [--half odd|even]

One arrangement of the rollouts moves a method by several problems, so settings are compared over many. Where a problem
has no more than k, only the order differs: it decides who is started and how ties fall. Prints, for each policy, the
mean and the standard deviation over these pools of the problems gained over `sc` on the same rollouts, in the sum over
all sources, how often that sum is negative, and mean savings. With `--half` on half of the problems.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import fmean, pstdev

import numpy as np

from benchmarks.methods import Source, in_half, source
from fot.grading.base import grader
from fot.methods import parse
from fot.pools.read import Part, Pool
from fot.replay.evaluate import Judge, MethodResult, Study
from fot.replay.sheet import Sheet


def studies(source: Source, half: str | None, pools: int) -> Iterator[Study]:
    """One study for each random choice of rollouts."""
    pool = Pool.open(source.path)
    parts = [part for part in pool.select().parts if len(part.rows) >= source.k and in_half(part, half)]
    with grader("exact") as exact:
        judge = Judge(exact)
        for seed in range(pools):
            chance = np.random.default_rng(seed)
            chosen = [Part(part.problem, chance.permutation(part.rows)[: source.k]) for part in parts]
            yield Study([Sheet(pool, chosen, source.commit)], judge)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=source, nargs="+")
    parser.add_argument("--policy", action="append", required=True)
    parser.add_argument("--pools", type=int, default=16)
    parser.add_argument("--half", choices=("odd", "even"))
    options = parser.parse_args()
    found: dict[str, list[list[MethodResult]]] = {text: [] for text in options.policy}
    for one in options.sources:
        drawn = [[study.evaluate(parse(text)) for text in found] for study in studies(one, options.half, options.pools)]
        for at, text in enumerate(found):
            found[text].append([results[at] for results in drawn])
    print(
        f"{'policy':44} {'gained, by source':>24} {'sum':>12} {'below 0':>8}"
        f" {'attention':>10} {'tokens':>8} {'latency':>8}"
    )
    for text, by_source in found.items():
        sums = [sum(result.delta for result in drawn) for drawn in zip(*by_source, strict=True)]
        gained = " ".join(f"{fmean(result.delta for result in results):+.1f}" for results in by_source)
        saved = [result.savings for results in by_source for result in results]
        print(
            f"{text:44} {gained:>24} {fmean(sums):+5.1f} ± {pstdev(sums):.1f} {sum(s < 0 for s in sums):4}/{len(sums)}"
            f" {100 * fmean(s.attention for s in saved):9.1f}% {100 * fmean(s.tokens for s in saved):7.1f}%"
            f" {100 * fmean(s.latency for s in saved):7.1f}%"
        )


if __name__ == "__main__":
    main()
