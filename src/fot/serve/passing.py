"""Requests that go to one upstream untouched, and its answers back, untouched but for addresses and keys."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

from fot.errors import EngineRefused
from fot.serve.protocol import Pass
from fot.serve.upstreams import Upstream

__all__ = ["Passage"]

_KEPT = ("content-type", "retry-after", "x-request-id")
_DENIED = (401, 403)


class Passage:
    """One request on its way. Use it as a context; leaving it closes the connection, which stops the upstream."""

    def __init__(self, upstream: Upstream, asked: Pass) -> None:
        self._upstream = upstream
        self._asked = asked
        self._response: httpx2.Response | None = None
        self.pieces = 0

    async def begin(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the answer. Raises `EngineError`."""
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
                self.pieces += piece.count(b"data: ")
                yield piece
        except httpx2.HTTPError as error:
            raise self._upstream.server.unavailable(error) from None

    async def close(self) -> None:
        """Let go of the connection."""
        if self._response is not None:
            await self._response.aclose()
