"""One HTTP server: plain questions, and event streams that can be cut from another task.

Keys travel in a header and nowhere else: whatever a server says is cleaned of them before it becomes an error.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.request import getproxies

import httpx2
import msgspec

from fot.engines.plain import PlainTransport
from fot.engines.sse import EventParser
from fot.errors import ConfigError, EngineError, EngineProtocolError, EngineRefused, EngineTimeout, EngineUnavailable

__all__ = ["EventStream", "HttpServer", "retry_after"]

_RETRYABLE = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_SHOWN = 300
_HINTS = {
    401: "Give the server's key with --api-key or OPENAI_API_KEY.",
    403: "The key given with --api-key or OPENAI_API_KEY may not do this.",
    404: "Check the URL and the model's name: GET /v1/models lists what there is.",
    429: "The server is busy: ask for fewer rollouts at once.",
}


class HttpServer:
    """Talks to the server at `url`, with or without the closing `/v1`.

    `silence_s` is how long a stream may say nothing; it has to cover the time that a request waits for its turn.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        connect_s: float = 10.0,
        silence_s: float = 300.0,
    ) -> None:
        self.root = url.rstrip("/").removesuffix("/v1")
        self.silence_s = silence_s
        self._connect_s = connect_s
        self._secrets = [api_key] if api_key else []
        self._headers = {"accept-encoding": "identity", **(headers or {})}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def client(self) -> httpx2.AsyncClient:
        """The connections of the running event loop; those of another loop are of no use here."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # No limit: a stream that waits for a connection would stand outside of the engine's own queue.
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
            timeout = httpx2.Timeout(None, connect=self._connect_s)
            is_plain = self.root.startswith("http:") and not getproxies()
            try:
                self._client = httpx2.AsyncClient(
                    headers=self._headers,
                    limits=limits,
                    timeout=timeout,
                    verify=self.root.startswith("https:"),
                    transport=PlainTransport() if is_plain else None,
                )
            except (UnicodeEncodeError, ValueError):
                raise ConfigError("the API key holds characters that no header may hold") from None
            self._loop = loop
        return self._client

    async def get(self, path: str, *, within_s: float = 10.0) -> bytes:
        """The body of an answer; raises `EngineError` for any other."""
        return await self._ask("GET", path, None, within_s)

    async def post(self, path: str, body: object, *, within_s: float = 10.0) -> bytes:
        """The body of the answer to a JSON body."""
        return await self._ask("POST", path, body, within_s)

    async def _ask(self, method: str, path: str, body: object, within_s: float) -> bytes:
        try:
            async with asyncio.timeout(within_s):
                response = await self.client.send(self.request(method, path, body))
        except TimeoutError:
            raise EngineTimeout(f"no answer from {self.root}{path} within {within_s:g} s", retryable=True) from None
        except httpx2.HTTPError as error:
            raise self.unavailable(error) from None
        if response.status_code != httpx2.codes.OK:
            raise self.refused(response.status_code, response.content, response.headers)
        return response.content

    def request(self, method: str, path: str, body: object, headers: Mapping[str, str] | None = None) -> httpx2.Request:
        """A request that has not been sent."""
        content = None if body is None else msgspec.json.encode(body)
        named = {} if body is None else {"content-type": "application/json"}
        try:
            return self.client.build_request(
                method, f"{self.root}{path}", content=content, headers={**named, **(headers or {})}
            )
        except httpx2.InvalidURL as error:
            raise ConfigError(f"'{self.root}' is no URL: {error}") from None

    def unavailable(self, error: Exception, request_id: str | None = None) -> EngineError:
        """The error for a connection that could not be made, or that broke."""
        if isinstance(error, httpx2.UnsupportedProtocol):
            return EngineUnavailable(f"'{self.root}' is no URL", "It should begin with http:// or https://.")
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            return EngineUnavailable(
                f"nobody answers at {self.root}",
                "Is the server running, and is this its address?",
                retryable=True,
                request_id=request_id,
            )
        said = self.clean(str(error)) or type(error).__name__
        return EngineUnavailable(f"the connection to {self.root} broke: {said}", retryable=True, request_id=request_id)

    def refused(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, request_id: str | None = None
    ) -> EngineRefused:
        """The error for an answer other than 200."""
        return EngineRefused(
            f"{self.root} answered {status}: {self.clean(_message(body))}",
            _HINTS.get(status, ""),
            status=status,
            retryable=status in _RETRYABLE,
            retry_after_s=retry_after((headers or {}).get("retry-after")),
            request_id=request_id,
        )

    def clean(self, text: str) -> str:
        """Text from outside, short and without keys."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = " ".join(text.split())
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

    async def close(self) -> None:
        """Drop all connections."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()


class EventStream:
    """One answer that comes in events. Read it from one task; `cut`, `hang_up` and `expect_end` may be called from any.

    A reader that is cancelled takes the connection with it; a stream that `outlives_its_reader` stays open until it is
    closed, for servers that must be told before.
    """

    def __init__(
        self,
        server: HttpServer,
        path: str,
        body: object,
        request_id: str,
        headers: Mapping[str, str] | None = None,
        *,
        outlives_its_reader: bool = False,
    ) -> None:
        self._server = server
        self._request = server.request("POST", path, body, headers)
        self._id = request_id
        self._response: httpx2.Response | None = None
        self._parser = EventParser()
        self._scope: asyncio.Timeout | None = None
        self._loop = asyncio.get_running_loop()
        self._watch: asyncio.TimerHandle | None = None
        self._heard = 0.0
        self._deadline: float | None = None
        self._outlives_its_reader = outlives_its_reader
        self._pending: asyncio.Task[bytes | None] | None = None
        self._is_over = False
        self.is_cut = False
        """Was it ended from this side?"""
        self.closed = asyncio.Event()

    async def next(self) -> list[bytes] | None:
        """The data of the next events; None at the end, or when the stream has been cut."""
        if self._watch is None:
            self._watch = self._loop.call_later(self._server.silence_s, self._listen)
        while not self._is_over:
            self._heard = self._loop.time()
            try:
                async with asyncio.timeout_at(self._deadline) as self._scope:
                    data = await (self._read_on() if self._outlives_its_reader else self._read())
            except TimeoutError:
                self._is_over = True
                if not self.is_cut:
                    raise self._silence() from None
                break
            except httpx2.HTTPError as error:
                self._is_over = True
                if not self.is_cut:
                    raise self._server.unavailable(error, self._id) from None
                break
            finally:
                self._scope = None
            events = self._end() if data is None else self._parser.feed(data)
            if events:
                return events
        return None

    def _listen(self) -> None:
        """Give up a read that has heard nothing for too long. One clock for all reads: most are over at once."""
        now = self._loop.time()
        due = (self._heard if self._scope is not None else now) + self._server.silence_s
        if now >= due and self._scope is not None and not self._scope.expired():
            self._scope.reschedule(now)
        else:
            self._watch = self._loop.call_at(max(due, now + 0.001), self._listen)

    async def _read(self) -> bytes | None:
        if self._response is None:
            await self._open()
        try:
            return await anext(self._bytes)
        except StopAsyncIteration:
            return None

    async def _read_on(self) -> bytes | None:
        self._pending = self._pending or asyncio.create_task(self._read())
        try:
            data = await asyncio.shield(self._pending)
        finally:
            if self._pending.done():
                self._pending = None
        return data

    async def _open(self) -> None:
        self._response = response = await self._server.client.send(self._request, stream=True)
        self._bytes = response.aiter_raw()
        if response.status_code != httpx2.codes.OK:
            body = await response.aread()
            raise self._server.refused(response.status_code, body, response.headers, self._id)
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):
            raise EngineProtocolError(
                f"{self._server.root} does not stream: it answered with {kind or 'no content type'}",
                "Is this the URL of an API, and does the server support streaming?",
                request_id=self._id,
            )

    def _end(self) -> list[bytes]:
        self._is_over = True
        last = self._parser.finish()
        return [] if last is None else [last]

    def _silence(self) -> EngineTimeout:
        return EngineTimeout(
            f"{self._server.root} has said nothing for {self._server.silence_s:g} s",
            "A busy server may need a longer time-out.",
            retryable=True,
            request_id=self._id,
        )

    def cut(self) -> None:
        """End the stream now: whoever reads it gets None."""
        self.expect_end(0.0)
        self._is_over = True

    def hang_up(self, within_s: float) -> None:
        """Say that nothing more is wanted, by closing this side of the connection alone.

        The server stops as if the whole had been closed, but what it has already said can still be read: the count of
        what was generated depends on it. Cuts the stream when it has not ended within that time.
        """
        network = self._response.extensions.get("network_stream") if self._response is not None else None
        connection = network.get_extra_info("socket") if network is not None else None
        if connection is None:
            self.cut()
            return
        try:
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # it has just been closed from the other side
            self.cut()
            return
        self.expect_end(within_s)

    def expect_end(self, within_s: float) -> None:
        """The stream has been told to end: cut it unless it does so within this time."""
        self.is_cut = True
        self._deadline = self._loop.time() + within_s
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(self._deadline)

    @property
    def is_being_read(self) -> bool:
        """Does a task wait for the next event right now?"""
        return self._scope is not None

    async def close(self) -> None:
        """Close the connection; an answer that is still underway is thereby cancelled."""
        self.is_cut = self._is_over = True
        if self._watch is not None:
            self._watch.cancel()
        try:
            if self._pending is not None:
                self._pending.cancel()
                await asyncio.gather(self._pending, return_exceptions=True)
            if self._response is not None:
                await self._response.aclose()
        finally:
            self.closed.set()


def retry_after(value: str | None) -> float | None:
    """Seconds to wait, from a Retry-After header in either of its forms."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(value)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())


def _message(body: bytes) -> str:
    """What a server says in an error, whichever of the usual shapes it has."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode("utf-8", "replace")
    while isinstance(said, dict):
        said = next((said[key] for key in ("error", "message", "detail", "msg") if key in said), str(said))
    return str(said)
