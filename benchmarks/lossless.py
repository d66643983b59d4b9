"""Does the lossless stop ever change an answer, on real rollouts?

    python -m benchmarks.lossless POOL:K:COMMIT... [--draws 2]

Runs every method whose vote can be bounded with and without `+decided`, and compares the answers problem by problem.
Prints the answers compared, those that changed (0, or this exits with 1), and the attention that the stop saved.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.methods import name_of, source, study_of
from fot.methods import parse

BOUNDED = (
    *("sc", "first-n:n=8", "fot", "fot:eager=on", "fot:early_voting=off", "fot:keep=0.5", "random", "oracle"),
    *("ac", "ac:mode=cancel", "ac:window=4", "ac+fot", "esc", "esc:window=4,remainder=on", "dsc", "dsc+fot"),
    *("certaindex", "parallel-probe:probe=off", "sc+bayes", "fot+bayes", "waves", "waves+fot"),
    *("adaptive", "adaptive:stop=none", "adaptive:first=1,stop=none,limit=none"),
)


def main() -> int:
    """Compare and print; the exit code is 1 when an answer changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", type=source, nargs="+")
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    changed = 0
    for one in options.pools:
        for sheet in study_of(one, None).sheets:
            for text in BOUNDED:
                alone, stopped = parse(text), parse(f"{text}+decided")
                compared = differing = 0
                before = after = 0.0
                for draw in range(min(options.draws, alone.draws(one.k))):
                    a, b = sheet.run(alone, 0, draw), sheet.run(stopped, 0, draw)
                    compared += len(a.winners)
                    differing += sum(x != y for x, y in zip(a.winners, b.winners, strict=True))
                    before += sum(bill.attention for bill in a.bills)
                    after += sum(bill.attention for bill in b.bills)
                changed += differing
                saved = 1 - after / before
                print(f"{name_of(one):18} {text:40} {compared:5} answers, {differing} changed, {saved:6.1%} saved")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
