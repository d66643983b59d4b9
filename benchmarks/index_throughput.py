"""How fast a pool is indexed, beside what it stands in for: a pass of `str.count` for each marker.

    python benchmarks/index_throughput.py [POOL] [--commit NAME] [--repeats N]

POOL is a pool or a file of rows; without it a seeded synthetic pool is made and thrown away. Every figure is the best
of a few repeats in this process, in megabytes of UTF-8 text per second; beside it the processor time, which says more
than the wall on a machine that is busy with something else:

- index: from an open pool to a usable index, reading, searching, committing, and writing it down included;
- str.count: the kernel's markers counted one after the other in texts that are in memory already;
- read: the text column out of the pool's compressed file, by as many threads as there are cores;
- file read: the same bytes, uncompressed and in the page cache, read from one file.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fot.core.markers import PAPER_KERNEL, count
from fot.pools.importing import import_rows
from fot.pools.index import index_of
from fot.pools.read import Pool
from fot.pools.schema import INDEX

SYNTHETIC_ROLLOUTS = 3000
WORDS = [
    "the",
    "of",
    "so",
    "we",
    "then",
    "that",
    "value",
    "is",
    "equal",
    "to",
    "sum",
    "let",
    "x",
    "=",
    "3",
    "therefore",
    "which",
    "means",
    "energy",
    "Δ",
    "π",
    "≈\n",
]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pool", nargs="?", type=Path)
    parser.add_argument("--commit", default="choice")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool.open(options.pool) if options.pool else synthetic(Path(folder))
        report(pool, options.commit, options.repeats, Path(folder))


def report(pool: Pool, detector: str, repeats: int, folder: Path) -> None:
    """Print a line for each way of going over the texts of `pool`."""
    texts = [text for group in range(pool.row_groups) for text in pool.group(group, "text").to_pylist()]
    raw = folder / "texts"
    raw.write_bytes("".join(texts).encode())
    size = raw.stat().st_size / 1e6
    print(f"{pool.name}: {len(texts):,} texts, {size:,.0f} MB")
    seconds = {
        f"index with {detector}": best(lambda: index_of(pool, PAPER_KERNEL, detector), repeats, lambda: forget(pool)),
        "index, markers alone": best(lambda: index_of(pool), repeats, lambda: forget(pool)),
        f"str.count, {len(PAPER_KERNEL.markers)} passes": best(lambda: sum(map(count, texts)), repeats),
        "read": best(lambda: read(pool), repeats),
        "file read": best(raw.read_bytes, repeats),
    }
    index, _ = seconds[f"index with {detector}"]
    print(f"{'':24} {'MB/s':>8} {'wall s':>8} {'CPU s':>8}  wall, of the index's")
    for name, (wall, processor) in seconds.items():
        print(f"{name:24} {size / wall:8,.0f} {wall:8.3f} {processor:8.3f} {wall / index:8.2f}")
    loading, _ = best(lambda: index_of(pool, PAPER_KERNEL, detector), repeats)
    print(f"{'index, loaded again':24} {'':8} {loading:8.3f}")


def best(work: Callable[[], object], repeats: int, before: Callable[[], object] = lambda: None) -> tuple[float, float]:
    """The shortest of several runs, in seconds of wall and of processor; `before` each, something not timed."""
    walls, processors = [], []
    for _ in range(repeats):
        before()
        wall, processor = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return min(walls), min(processors)


def forget(pool: Pool) -> None:
    """Delete what was derived from the pool."""
    shutil.rmtree(pool.path / INDEX, ignore_errors=True)


def read(pool: Pool) -> None:
    """Read the text column, once."""
    with ThreadPoolExecutor() as executor:
        for _ in executor.map(lambda group: pool.group(group, "text"), range(pool.row_groups)):
            pass


def synthetic(folder: Path) -> Pool:
    """A pool of word salad with markers in it, the same each time."""
    lines = folder / "synthetic.jsonl"
    with lines.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows(random.Random(1)))
    started = time.perf_counter()
    made = import_rows([lines], folder / "synthetic", synthetic="word salad")
    took = time.perf_counter() - started
    print(f"import: {lines.stat().st_size / 1e6 / took:,.0f} MB/s of JSON lines")
    return Pool.open(made.pool)


def rows(source: random.Random) -> Iterator[dict[str, object]]:
    """Rollouts of about 22,000 characters with about seven markers in every thousand."""
    words = [*WORDS * 12, *(f"{marker} " for marker in PAPER_KERNEL.markers[:12])]
    for at in range(SYNTHETIC_ROLLOUTS):
        text = " ".join(source.choices(words, k=5000))
        yield {
            "model": "none",
            "benchmark": "salad",
            "problem_id": str(at // 30),
            "rollout_id": at % 30,
            "text": f"{text}</think> Answer: {source.choice('ABCD')}",
            "n_tokens": 6000,
        }


if __name__ == "__main__":
    main()
