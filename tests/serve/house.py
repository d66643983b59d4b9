"""A whole house on loopback: scripted engine, upstream server, and the proxy before it, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import httpx2

from fot.core.rollout import Rollout
from fot.engines.scripted import Pace, Scripted
from fot.engines.scripted_server import ScriptedServer
from fot.serve.server import Server
from fot.serve.settings import Settings

PROBLEM = "How many legs do three spiders have?"
MESSAGES = [{"role": "user", "content": PROBLEM}]
PATIENCE_S = 60.0
ASK = {"model": "scripted", "messages": MESSAGES}
SLOW = Pace(chunk_tokens=2, turns=1, token_s=0.05, abort_tokens=1)


def rollout(
    number: int, length: int = 12, answer: str | None = "24", problem: str = PROBLEM, more: str = ""
) -> Rollout:
    """Four characters a token; the tag is a token of its own; odd ones hesitate."""
    thought = ("Wait, no. " if number % 2 else "So it is. ") * length + more
    text = f"{thought}</think>" + (f"It is \\boxed{{{answer}}}." if answer is not None else "I do not know.")
    ends, at = [], 0
    while at < len(text):
        tag = text.find("</think>", at)
        at = at + 8 if tag == at else min(at + 4, tag if tag > at else len(text))
        ends.append(at)
    return Rollout(
        model="scripted", benchmark="b", problem_id=problem, rollout_id=number, problem=problem, text=text,
        token_ends=ends, n_tokens=len(ends), finish_reason="stop", prompt_tokens=11,
    )  # fmt: skip


def spiders(k: int = 8, length: int = 12) -> list[Rollout]:
    """Most say 24, every fourth 18; the later the longer."""
    return [rollout(number, length + number, "18" if number % 4 == 3 else "24") for number in range(k)]


class House:
    """`with House(...) as house:`; `url` is the proxy's, `script` the engine that knows what truly runs."""

    is_real = False
    model = "scripted"
    messages = tuple(MESSAGES)

    def __init__(
        self,
        rollouts: Sequence[Rollout] | None = None,
        dialect: str = "vllm",
        pace: Pace | None = None,
        script: Scripted | None = None,
        server: dict[str, Any] | None = None,
        make: Callable[..., ScriptedServer] = ScriptedServer,
        **settings: Any,
    ) -> None:
        self.script = script or Scripted(rollouts or spiders(), pace=pace or Pace(chunk_tokens=4, turns=1))
        self.upstream = make(self.script, dialect, **(server or {}))
        self._settings = {
            "port": 0,
            "k": 8,
            "policy": "fot:checkpoints=10/20",
            "health_s": 60.0,
            "drain_s": 0.5,
        } | settings
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), daemon=True)
        self._problem: BaseException | None = None

    async def _live(self) -> None:
        try:
            self.loop = asyncio.get_running_loop()
            async with self.upstream:
                urls = self._settings.pop("upstream", None) or (f"{self.upstream.url}/v1",)
                self.proxy = Server(Settings(upstream=urls, **self._settings))
                serving = asyncio.ensure_future(self.proxy.serve())
                while not self.proxy.started and not serving.done():
                    await asyncio.sleep(0.01)
                self.port = self.proxy.servers[0].sockets[0].getsockname()[1]
                self._is_up.set()
                await serving
                left = [
                    t for t in asyncio.all_tasks() if t is not asyncio.current_task() and t not in self.upstream._tasks
                ]
                self.left = [task.get_coro() for task in left]
        except BaseException as error:
            self._problem = error
            raise
        finally:
            self._is_up.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self, **more: Any) -> dict[str, Any]:
        """A request for a chat on this house's problem."""
        return {"model": self.model, "messages": list(self.messages)} | more

    @property
    def desk(self):
        return self.proxy.desk

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the house's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def generated(self) -> int:
        return self.script._total

    def settle(self) -> None:
        """Wait until nothing runs upstream nor here."""
        until = time.monotonic() + PATIENCE_S
        while self.script.running or self.desk.jobs or self.desk.admission.running:
            assert time.monotonic() < until, (self.script.running, self.desk.jobs)
            time.sleep(0.01)

    def __enter__(self) -> House:
        self._thread.start()
        assert self._is_up.wait(PATIENCE_S)
        assert self._problem is None, self._problem
        return self

    def __exit__(self, *error: object) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.proxy.stop)
            self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def post(house: House, body: object = ASK, key: str | None = None, **more: Any) -> httpx2.Response:
    """Ask for a chat."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return httpx2.post(f"{house.url}/v1/chat/completions", json=body, headers=headers, timeout=30, **more)


def get(house: House, path: str, **headers: str) -> httpx2.Response:
    """Ask for anything else."""
    return httpx2.get(f"{house.url}{path}", headers=headers, timeout=30)
