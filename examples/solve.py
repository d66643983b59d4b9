"""Solve one problem, and watch it: python examples/solve.py ["PROBLEM" [URL]]

Without a URL the model in the box works in this process (pip install 'funnel-of-thoughts[embedded]').
"""

import asyncio
import sys

import fot
from fot.online.events import Banked, Pruned, Voted

PROBLEM = "Start with 345. Step 1: add 678. Step 2: multiply by 4. What is the result modulo 1000?"


async def main(problem: str = PROBLEM, engine: str = "embedded") -> None:
    """Print what happens, then what came of it."""
    async for event in fot.stream(problem, engine=engine, k=32):
        match event:
            case Banked(rollout, tokens, _, answer):
                print(f"rollout {rollout} has answered {answer}, and stops at {tokens} tokens")
            case Pruned(rollout, tokens, density):
                print(f"rollout {rollout} hesitates {density:.1f} times in 1,000 characters, and stops at {tokens}")
            case Voted(answer, votes, is_final=True):
                print(f"the vote: {answer}, of {dict(votes)}")
            case fot.Result(usage=usage):
                print(f"{usage.completion_tokens} tokens, of which {usage.overshoot_tokens} after a decision")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
