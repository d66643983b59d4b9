"""An engine of one's own: whatever streams tokens and stops when told to can run a funnel.

python examples/custom_engine.py
"""

from collections.abc import AsyncIterator
from random import Random

import fot
from fot.engines.base import Capabilities, Chunk, Counters, FinishReason, Request


class Dice:
    """Thinks at random. Each word is a token; the seed of a request decides everything."""

    name = "dice"

    async def capabilities(self) -> Capabilities:
        """Say what it can do."""
        return Capabilities(exact_counts=True, token_ends=True, seeds=True, abort="none", resume=False)

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """Give a word at a time; leaving the loop stops it."""
        dice = Random(request.seed)  # noqa: S311
        words = [dice.choice(("so ", "then ", "Wait, ")) for _ in range(dice.randint(20, 90))]
        words.append(f"\\boxed{{{dice.choice((6, 6, 7))}}}")
        for number, word in enumerate(words, start=1):
            finish: FinishReason | None = "stop" if number == len(words) else None
            yield Chunk(text=word, tokens=number, ends=(len(word),), finish_reason=finish)

    async def abort(self, request_id: str) -> None:
        """Leave it to the closing of the stream."""

    async def counters(self) -> Counters | None:
        """Keep no books."""
        return None

    async def close(self) -> None:
        """Hold nothing."""


if __name__ == "__main__":
    result = fot.solve_sync("Throw a die.", engine=Dice(), k=16, policy="fot:checkpoints=30/60,keep=0.67")
    print(result.answer, result.votes)
    for rollout in result.rollouts:
        print(rollout.id, rollout.fate.value, f"{rollout.tokens} tokens")
