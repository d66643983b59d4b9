"""What would other methods have answered, and paid, on recorded rollouts? python examples/replay.py [POOL [SPEC ...]]

Without a pool: the recorded rollouts of the model in the box.
"""

import sys

import fot
from fot import reasoner

AT = "/".join(map(str, reasoner.CHECKPOINTS))


def main(pool: str = "", *policies: str) -> None:
    """Print a line for each method."""
    specs = policies or ("sc", f"fot:checkpoints={AT}", f"random:checkpoints={AT}", "adaptive", "ac")
    for result in fot.compare([pool or reasoner.sample_pool_path()], specs):
        low, high = result.ci95_pp
        print(
            f"{result.spec.text:34} {result.accuracy:6.1%} correct ({low:+.1f} to {high:+.1f} points against sc), "
            f"{result.savings.attention:4.0%} of the attention and {result.savings.latency:4.0%} of the latency saved"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
