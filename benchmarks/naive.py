"""A sweep beside the naive way: for every configuration the texts cut and every marker counted with `str.count`.

    python -m benchmarks.naive POOL [--k 32] [--problems 128] [--configurations 4]

The naive way is Algorithm 1 as one would write it down, on texts that are in memory already; of the 340 configurations
a few are run, at random, and the mean is taken. The sweep runs all of them, with and without the index being made for
the same problems. Both answer alike, which is checked. Processor seconds of one process each, in one run.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fot.core.answers import answer_key
from fot.core.commit import committed_answer
from fot.core.markers import PAPER_KERNEL
from fot.core.rollout import Rollout
from fot.pools.importing import import_rows
from fot.pools.index import index_of
from fot.pools.read import Pool
from fot.replay.grid import Configuration, grid
from fot.replay.sheet import Sheet
from fot.replay.tree import sweep_sheet


def main() -> None:
    """Measure both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pool", type=Path)
    parser.add_argument("--k", type=int, default=32)
    parser.add_argument("--commit", default="boxed")
    parser.add_argument("--problems", type=int, default=128)
    parser.add_argument("--configurations", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problems, pool = sample(Pool.open(options.pool), options.k, options.problems, Path(folder))
        compare(problems, pool, options.commit, options.configurations)


def sample(pool: Pool, k: int, count: int, folder: Path) -> tuple[list[list[Rollout]], Pool]:
    """Every n-th problem: its rollouts in memory, and a pool of them alone."""
    parts = pool.select(k).parts
    chosen = [parts[at * len(parts) // count] for at in range(min(count, len(parts)))]
    problems = [pool.rollouts(part.rows) for part in chosen]
    rows = folder / "rows.jsonl"
    with rows.open("wb") as out:
        for rollout in (one for problem in problems for one in problem):
            row = msgspec.to_builtins(rollout)
            out.write(msgspec.json.encode({name: row[name] for name in row if name != "extra"}) + b"\n")
    return problems, Pool.open(import_rows([rows], folder / "pool", name="sample").pool)


def compare(problems: Sequence[Sequence[Rollout]], pool: Pool, commit: str, few: int) -> None:
    """Time both ways, and check that they answer alike."""
    everything = grid()
    began = time.process_time()
    index = index_of(pool, PAPER_KERNEL, commit)
    indexed = time.process_time() - began
    sheet = Sheet(pool, pool.select().parts, commit)
    began = time.process_time()
    cells = sweep_sheet(sheet, everything)
    swept = time.process_time() - began
    picked = random.Random(0).sample(range(len(everything)), few)
    began = time.process_time()
    answers = {at: [naive(problem, everything[at], commit) for problem in problems] for at in picked}
    each = (time.process_time() - began) / few
    for at, said in answers.items():
        ours = [index.answers[winner] if winner >= 0 else None for winner in cells.winners[at]]
        if ours != said:
            raise SystemExit(f"{everything[at].spec.text} differs from the naive way")
    total = each * len(everything)
    size = sum(len(problem) for problem in problems)
    print(f"{len(problems)} problems, {size:,} rollouts, {pool.manifest.chars / 1e6:,.0f} MB; answers alike")
    print(f"naive: {each:.2f} s a configuration, {total:,.0f} s for {len(everything)}")
    print(f"index: {indexed:.2f} s; sweep of {len(everything)}: {swept:.3f} s")
    print(f"naive / sweep: {total / swept:,.0f} times; naive / (index + sweep): {total / (indexed + swept):,.0f} times")


def naive(rollouts: Sequence[Rollout], one: Configuration, commit: str) -> str | None:
    """Algorithm 1 on texts; the winning answer's vote key."""
    active, votes = list(rollouts), list[str]()
    for tokens in one.checkpoints:
        if len(active) <= 2:
            break
        prefixes = {rollout.rollout_id: rollout.prefix(tokens) for rollout in active}
        said = {at: committed_answer(text, commit) for at, text in prefixes.items()}
        votes += [answer for rollout in active if (answer := said[rollout.rollout_id]) is not None]
        active = [rollout for rollout in active if said[rollout.rollout_id] is None]
        if len(active) > 2:
            ranked = sorted(active, key=lambda rollout: hesitation(prefixes[rollout.rollout_id]))
            stay = {rollout.rollout_id for rollout in ranked[: max(2, int(len(active) * one.keep))]}
            active = [rollout for rollout in active if rollout.rollout_id in stay]
    votes += [answer for rollout in active if (answer := committed_answer(rollout.text, commit)) is not None]
    counts = Counter(answer_key(answer) for answer in votes)
    return max(counts, key=counts.__getitem__, default=None)


def hesitation(text: str) -> float:
    """Markers per 1,000 characters."""
    return 1000 * sum(text.count(marker) for marker in PAPER_KERNEL.markers) / max(len(text), 1)


if __name__ == "__main__":
    main()
