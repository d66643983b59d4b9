"""Does the live view stutter? Frame times of the page in a real browser while many runs grow at once.

python -m benchmarks.live_view [--runs 50] [--k 64] [--seconds 15]

Nothing is generated: the board is fed with events of made-up rollouts, every one of which grows four times a second, so
that the page alone is measured. `make browser` brings what it needs (FOT_BROWSER_MODULES, FOT_BROWSER_CHROMIUM).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
from pathlib import Path

from fot.online.events import Banked, Progress, Pruned, Started, Voted
from fot.serve.live import Board, RunView
from fot.serve.protocol import Asked, read
from fot.serve.server import Server, listen
from fot.serve.settings import Settings

SCRIPT = Path(__file__).with_suffix(".mjs")
STEP_S = 0.25
CHECKPOINTS = (6000, 10000, 14000)


def grow(view: RunView, chance: random.Random) -> None:
    """One step of one run: some answer, and at a checkpoint the hesitant ones are pruned."""
    for number, lane in enumerate(view.lanes):
        if lane.state == "waiting":
            view.note(Started(number, number))
        elif lane.state == "running":
            tokens = lane.tokens + chance.randrange(40, 120)
            density = max(0.0, lane.density + chance.gauss(0, 0.6))
            view.note(Progress(number, tokens, density, None))
            if chance.random() < 0.003:
                view.note(Banked(number, tokens, density, chance.choice(["24", "18", "31"])))
            elif density > 7 and any(lane.tokens - 120 < mark <= lane.tokens for mark in CHECKPOINTS):
                view.note(Pruned(number, tokens, density))
    answers = [lane.answer for lane in view.lanes if lane.answer is not None]
    votes = {answer: float(answers.count(answer)) for answer in sorted(set(answers))}
    view.note(Voted(max(votes, key=votes.__getitem__, default=None), votes, is_final=False))


async def feed(board: Board, asked: Asked, runs: int) -> None:
    """All runs begin at once and never end."""
    chance = random.Random(7)
    views = [RunView(f"{number:016x}", asked, has_texts=True) for number in range(runs)]
    for view in views:
        view.begin()
        board.add(view)
    while True:
        for view in views:
            grow(view, chance)
        await asyncio.sleep(STEP_S)


async def measure(args: argparse.Namespace) -> None:
    """Serve, feed, and let the browser look."""
    settings = Settings(upstream=("http://127.0.0.1:9",), port=0, max_k=args.k)
    body = b'{"messages": [{"role": "user", "content": "How many legs do three spiders have?"}], "fot": {"k": %d}}'
    asked = read(body % args.k, settings)
    assert isinstance(asked, Asked)
    with listen(settings) as socket:
        server = Server(settings)
        serving = asyncio.ensure_future(server.serve(sockets=[socket]))
        feeding = asyncio.ensure_future(feed(server.desk.board, asked, args.runs))
        chromium = os.environ.get("FOT_BROWSER_CHROMIUM") or shutil.which("chromium") or ""
        browser = await asyncio.create_subprocess_exec(
            "node", str(SCRIPT), f"http://127.0.0.1:{socket.getsockname()[1]}/", str(args.seconds),
            env=os.environ | {"FOT_BROWSER_CHROMIUM": chromium},
        )  # fmt: skip
        await browser.wait()
        feeding.cancel()
        server.stop()
        await serving


def main() -> None:
    """Read the flags, run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--k", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=15.0)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
