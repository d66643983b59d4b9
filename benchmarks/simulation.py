"""How fast is a simulation from the index, beside the plain state machine and beside reading texts anew?

    python -m benchmarks.simulation [POOL] [--k 30] [--commit choice]

Without a pool it makes a synthetic one. Prints simulations a second of the default funnel (every problem of the pool,
one draw) on three paths over the same rollouts, and the ratios; all are measured in this run.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.index_throughput import best, synthetic
from fot.core.markers import PAPER_KERNEL
from fot.methods import parse
from fot.pools.read import Pool
from fot.replay.recording import TextRecording
from fot.replay.sheet import Sheet
from fot.replay.simulator import simulate


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pool", type=Path, nargs="?")
    parser.add_argument("--k", type=int)
    parser.add_argument("--commit", default="boxed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool.open(options.pool) if options.pool else synthetic(Path(folder))
        parts = pool.select(options.k).parts
        sheet = Sheet(pool, parts, options.commit)
        spec = parse("fot")
        loading, _ = best(lambda: sheet.run(spec), 1)
        fast, _ = best(lambda: sheet.run(spec), 20)
        sheet.simulate_plainly(spec)
        plain, _ = best(lambda: sheet.simulate_plainly(spec), 5)
        rollouts = [pool.rollouts(part.rows) for part in parts]

        def from_texts() -> None:
            for at, part in enumerate(rollouts):
                recording = TextRecording(part, options.commit, PAPER_KERNEL)
                simulate(spec.build(sheet.context(at, 0, 0)), recording)

        texts, _ = best(from_texts, 1)
    print(f"{len(parts)} problems, {sum(len(part.rows) for part in parts)} rollouts, the default funnel")
    print(f"loading the index           {1000 * loading:10.1f} ms, once")
    for name, took in (("vectorised", fast), ("state machine on the index", plain), ("state machine on texts", texts)):
        print(f"{name:27} {1000 * took:10.1f} ms  {1 / took:8.1f} simulations/s  {texts / took:8.1f} x texts")


if __name__ == "__main__":
    main()
