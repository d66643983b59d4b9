"""Does `ac` stop where the published package AdaptiveConsistency stops, and what does each take?

    pip install 'funnel-of-thoughts[peers]'
    python -m benchmarks.adaptive_consistency_peer [--sequences 5000] [--most 40] [--seed 0]

Random answer sequences, from nearly unanimous to nearly flat, are read one answer after the other until a criterion is
met. Prints, for each criterion, the sequences on which both stop after the same answer, and both times in this run.

The package's Dirichlet criterion integrates by chance, over limits that do not describe the leader's region, and fails
under current NumPy where there are three answers or more: it then says so on stdout (swallowed here) and does not stop.
It is tried on a few sequences only, and no equality is expected.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO

from fot.methods.criteria import criterion_of

Stop = Callable[[Sequence[str]], bool]
PEERS = {
    "beta": "BetaStoppingCriteria",
    "entropy": "EntropyStoppingCriteria",
    "majority": "MajorityStoppingCriteria",
    "dirichlet": "DirichletStoppingCriteria",
}
SLOW = {"dirichlet": 250}  # one in so many sequences


def sequences(count: int, most: int, seed: int) -> list[list[str]]:
    """Answers of one problem each: two to six different ones, with shares drawn anew."""
    chance = random.Random(seed)
    drawn = []
    for _ in range(count):
        answers = "ABCDEF"[: chance.randint(2, 6)]
        shares = [chance.gammavariate(chance.choice((0.2, 1, 5)), 1) + 1e-9 for _ in answers]
        drawn.append(chance.choices(answers, shares, k=most))
    return drawn


def stops(should_stop: Stop, answers: Sequence[str]) -> int:
    """After how many answers it stops; all of them if it never would."""
    return next((n for n in range(1, len(answers)) if should_stop(answers[:n])), len(answers))


def ours(name: str) -> Stop:
    """The criterion as `ac` uses it."""
    criterion = criterion_of(name, None)
    return lambda answers: criterion.is_met(tuple(sorted(Counter(answers).values(), reverse=True)))


def theirs(name: str) -> Stop:
    """The package's criterion at its defaults."""
    peer = getattr(import_module("adaptive_consistency.stopping_criterias"), PEERS[name])()

    def should_stop(answers: Sequence[str]) -> bool:
        with redirect_stdout(StringIO()):
            return bool(peer.should_stop(list(answers))["stop"])

    return should_stop


def timed(should_stop: Stop, drawn: Sequence[Sequence[str]]) -> tuple[list[int], float]:
    """Where each sequence stops, and the seconds that takes."""
    start = time.perf_counter()
    found = [stops(should_stop, answers) for answers in drawn]
    return found, time.perf_counter() - start


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=5000)
    parser.add_argument("--most", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    drawn = sequences(options.sequences, options.most, options.seed)
    print(f"{'criterion':10} {'sequences':>9} {'same stop':>9} {'fot s':>8} {'peer s':>8} {'peer/fot':>8}")
    for name in PEERS:
        chosen = drawn[:: SLOW.get(name, 1)]
        here, own = timed(ours(name), chosen)
        there, peer = timed(theirs(name), chosen)
        same = sum(a == b for a, b in zip(here, there, strict=True))
        print(f"{name:10} {len(chosen):9} {same:9} {own:8.2f} {peer:8.2f} {peer / own:8.1f}")


if __name__ == "__main__":
    main()
