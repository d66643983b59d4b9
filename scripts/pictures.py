"""Take the documentation's pictures of the live view, of runs of the model in the box: `make pictures`.

FOT_LIVE_SERVER is the URL of a server that has the reasoner (scripts/with_llamacpp.py starts one), FOT_BROWSER_MODULES
and FOT_BROWSER_CHROMIUM are what `make browser` uses. The folder is the one argument.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from itertools import islice
from pathlib import Path

import httpx2

from fot.reasoner import CHECKPOINTS, MODEL_NAME
from fot.serve.server import Server, listen
from fot.serve.settings import Settings
from fot.tasks.arithmetic import DIFFICULTIES, draw_problems

SCRIPT = Path(__file__).with_suffix(".mjs")
PROBLEMS = 6
SHOWN = 1
"""A problem on which the rollouts do not agree."""


async def ask_all(url: str) -> list[str]:
    """Ask one problem after the other; their runs."""
    async with httpx2.AsyncClient(timeout=600) as client:
        runs = []
        for problem in islice(draw_problems("test", DIFFICULTIES["hard"], seed=42), PROBLEMS):
            messages = [{"role": "user", "content": problem.text}]
            body = {"model": MODEL_NAME, "messages": messages, "temperature": 0.8}
            answer = await client.post(f"{url}/v1/chat/completions", json=body)
            runs.append(answer.json()["fot"]["id"])
        return runs


async def take(folder: Path) -> int:
    """Serve, ask, and let the browser look; its exit status."""
    policy = f"fot:checkpoints={'/'.join(map(str, CHECKPOINTS))}"
    settings = Settings(upstream=(os.environ["FOT_LIVE_SERVER"],), port=0, policy=policy)
    chromium = os.environ.get("FOT_BROWSER_CHROMIUM") or shutil.which("chromium") or ""
    with listen(settings) as socket:
        server = Server(settings)
        serving = asyncio.ensure_future(server.serve(sockets=[socket]))
        while not (server.started or serving.done()):
            await asyncio.sleep(0.01)
        url = f"http://127.0.0.1:{socket.getsockname()[1]}"
        runs = await ask_all(url)
        browser = await asyncio.create_subprocess_exec(
            "node", str(SCRIPT), f"{url}/#{runs[SHOWN]}", str(folder),
            env=os.environ | {"FOT_BROWSER_CHROMIUM": chromium},
        )  # fmt: skip
        status = await browser.wait()
        server.stop()
        await serving
    return status


if __name__ == "__main__":
    sys.exit(asyncio.run(take(Path(sys.argv[1]))))
