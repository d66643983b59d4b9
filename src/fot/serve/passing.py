"""Requests that go to one upstream untouched, and its answers back, untouched but for addresses and keys."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx2

from fot.errors import EngineRefused
from fot.serve.protocol import Pass
from fot.serve.upstreams import Upstream

__all__ = ["Head", "Passage"]

Head = tuple[int, dict[str, str]]
"""Status and headers of an answer."""

_KEPT = ("content-type", "retry-after", "x-request-id")
_DENIED = (401, 403)
_USED = re.compile(rb'"completion_tokens"\s*:\s*(\d+)')  # in a text its quotes would be escaped
_SEAM = 64
"""Bytes of a piece that are looked at again with the next one."""


class Passage:
    """One request on its way. Use it as a context; leaving it closes the connection, which stops the upstream."""

    def __init__(self, upstream: Upstream, asked: Pass) -> None:
        self._upstream = upstream
        self._asked = asked
        self._response: httpx2.Response | None = None
        self._pieces = 0
        self._told = 0
        self._seam = b""

    @property
    def tokens(self) -> int:
        """Generated so far: what the upstream says, or else a piece of a stream is taken for a token."""
        return self._told or self._pieces

    async def begin(self) -> Head:
        """Raises `EngineError`."""
        server = self._upstream.server
        request = server.client.build_request(
            "POST",
            f"{server.root}/v1/chat/completions",
            content=self._asked.body,
            headers={"content-type": "application/json"},
        )
        try:
            self._response = await server.client.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise server.unavailable(error) from None
        if self._response.status_code in _DENIED:
            raise EngineRefused("the upstream refuses this server's key", status=self._response.status_code)
        kept = {name: self._response.headers[name] for name in _KEPT if name in self._response.headers}
        return self._response.status_code, kept

    async def body(self) -> AsyncIterator[bytes]:
        """What the upstream says, piece by piece. Raises `EngineError`."""
        if self._response is None:
            return
        try:
            async for piece in self._response.aiter_raw():
                self._count(piece)
                yield piece
        except httpx2.HTTPError as error:
            raise self._upstream.server.unavailable(error) from None

    async def whole(self) -> bytes:
        """All that the upstream says. Raises `EngineError`."""
        return b"".join([piece async for piece in self.body()])

    def _count(self, piece: bytes) -> None:
        self._pieces += piece.count(b"data: ")
        seen = self._seam + piece
        self._seam = seen[-_SEAM:]
        for found in _USED.finditer(seen):
            self._told = int(found.group(1))

    async def close(self) -> None:
        """Let go of the connection."""
        if self._response is not None:
            await self._response.aclose()
