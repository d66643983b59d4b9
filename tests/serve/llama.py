"""A real upstream: llama.cpp's own server on loopback, with the model in the box."""

from __future__ import annotations

import asyncio
import json
import re
import time
from typing import Any
from urllib.request import urlopen

import pytest

from fot import reasoner
from fot.engines.embedded import server_params
from tests.serve.house import House

QUESTION = "Start with 632. Step 1: add 764. Step 2: add 102. What is the result modulo 1000?"
NAME = "reasoner"
SLOTS = 8


class Books:
    """What the server says of itself: of what runs, no more than the truth, and sometimes a moment late."""

    def __init__(self, upstream: Llama) -> None:
        self._upstream = upstream

    @property
    def running(self) -> int:
        with urlopen(f"{self._upstream.url}/slots", timeout=30) as answer:
            return sum(slot["is_processing"] for slot in json.load(answer))

    @property
    def generated(self) -> int:
        """Tokens of requests that came to their own end; those of others are not in these books."""
        with urlopen(f"{self._upstream.url}/metrics", timeout=30) as answer:
            return int(re.findall(r"llamacpp:tokens_predicted_total (\d+)", answer.read().decode())[0])


class Llama:
    """`async with` starts and stops it."""

    _dialect = "llamacpp"

    def __init__(self) -> None:
        self.xllamacpp = pytest.importorskip("xllamacpp", reason="the embedded engine is an extra")
        self._tasks: set[Any] = set()
        self._server: Any = None

    @property
    def url(self) -> str:
        return self._server.listening_address

    async def __aenter__(self) -> Llama:
        params = server_params(reasoner.model_path(), SLOTS, reasoner.CONTEXT_TOKENS, threads=1)
        params.model_alias = {NAME}
        self._server = await asyncio.to_thread(self.xllamacpp.Server, params)
        return self

    async def __aexit__(self, *error: object) -> None:
        holder, self._server = [self._server], None
        await asyncio.to_thread(holder.clear)


class RealHouse(House):
    """The house with a real upstream in place of the scripted one."""

    is_real = True
    model = NAME
    messages = ({"role": "user", "content": QUESTION},)

    def __init__(self, **settings: Any) -> None:
        upstream = Llama()
        super().__init__(
            script=Books(upstream),  # type: ignore[arg-type]
            make=lambda *_: upstream,  # type: ignore[arg-type,return-value]
            **{"k": SLOTS, "policy": "fot:checkpoints=60/120/180"} | settings,
        )

    def generated(self) -> int:
        return self.script.generated  # type: ignore[attr-defined]

    def settle(self) -> None:
        """Its books may be a moment behind: quiet is what is quiet twice."""
        for _ in range(2):
            super().settle()
            time.sleep(0.05)
