"""HTTP/1.1 in the clear, for streams: a transport of httpx2 that takes a body as it comes instead of chunk by chunk.

A server's every token is a chunk of its own, and a general parser makes an event of each; here all that one read brings
is handed over at once, at a fraction of the cost. A connection carries one request and is then closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

import httpx2

__all__ = ["PlainTransport"]

_AT_ONCE = 1 << 18
_LONGEST_HEAD = 1 << 16
_LONGEST_SIZE = 1024
_BODILESS = (204, 304)
_HEX = frozenset(b"0123456789abcdefABCDEF")


class PlainTransport(httpx2.AsyncBaseTransport):
    """For URLs that begin with http://."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        head = _head(request)
        body = await request.aread()
        reader, writer = await _connect(request)
        try:
            writer.write(head + body)
            await writer.drain()
            status, headers = await _read_head(reader)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            writer.transport.abort()
            raise _broken(error, request) from None
        except BaseException:
            writer.transport.abort()
            raise
        stream = _Body(reader, writer, _framing(request, status, headers), request)
        return httpx2.Response(status, headers=headers, stream=stream, extensions={"network_stream": writer})


async def _connect(request: httpx2.Request) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = request.url.host, request.url.port or 80
    if not host:
        raise httpx2.UnsupportedProtocol("the URL names no host", request=request)
    try:
        async with asyncio.timeout(request.extensions.get("timeout", {}).get("connect")):
            return await asyncio.open_connection(host, port, limit=_AT_ONCE)
    except TimeoutError:
        raise httpx2.ConnectTimeout("no connection in time", request=request) from None
    except (OSError, OverflowError, UnicodeError) as error:
        raise httpx2.ConnectError(str(error), request=request) from None


def _head(request: httpx2.Request) -> bytes:
    headers = [pair for pair in request.headers.raw if pair[0].lower() != b"connection"]
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path), b"connection: close"]
    lines += [b"%b: %b" % pair for pair in headers]
    if any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines):
        raise httpx2.LocalProtocolError("a header holds a line break", request=request)
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, list[tuple[bytes, bytes]]]:
    """Status and headers; answers that only announce another one are skipped."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        if len(head) > _LONGEST_HEAD:
            raise asyncio.LimitOverrunError("the head of the answer does not end", len(head))
        first, *lines = head[:-4].split(b"\r\n")
        version, _, told = first.partition(b" ")
        status = told[:3]
        if not version.startswith(b"HTTP/1.") or not status.isdigit() or not 100 <= int(status) <= 999:
            raise OSError(f"no answer in HTTP: {first[:40].decode('latin-1')!r}")
        if int(status) >= 200:
            pairs = (line.partition(b":") for line in lines)
            return int(status), [(name.strip(), value.strip()) for name, _, value in pairs]


def _framing(request: httpx2.Request, status: int, headers: list[tuple[bytes, bytes]]) -> _Framing:
    told = {name.lower(): value for name, value in headers}
    if request.method == "HEAD" or status in _BODILESS:
        return _Counted(0)
    if told.get(b"transfer-encoding", b"").lower().endswith(b"chunked"):
        return _Chunked()
    length = told.get(b"content-length")
    return _Counted(None if length is None or not length.isdigit() else int(length))


def _broken(error: Exception, request: httpx2.Request) -> httpx2.TransportError:
    if isinstance(error, asyncio.IncompleteReadError):
        return httpx2.RemoteProtocolError("the server hung up without an answer", request=request)
    return httpx2.ReadError(str(error) or type(error).__name__, request=request)


class _Framing(Protocol):
    """Finds a body in what comes behind the head."""

    is_over: bool
    can_end: bool
    """May the connection end here?"""

    def feed(self, data: bytes) -> bytes: ...


class _Counted:
    """A body of so many bytes; None: all that comes."""

    def __init__(self, length: int | None) -> None:
        self._left = length
        self.is_over = length == 0
        self.can_end = length is None

    def feed(self, data: bytes) -> bytes:
        if self._left is None:
            return data
        taken = data[: self._left]
        self._left -= len(taken)
        self.is_over = self._left == 0
        return taken


class _Chunked:
    """A body in chunks, each after its size; the last one is empty, and what may follow it is left unread."""

    can_end = False

    def __init__(self) -> None:
        self.is_over = False
        self._rest = b""
        self._left = 0  # of the chunk that has begun, with the line break behind it

    def feed(self, data: bytes) -> bytes:
        window = self._rest + data if self._rest else data
        at, end, left = 0, len(window), self._left
        pieces = []
        while at < end:
            if left:
                if left > 2:
                    pieces.append(window[at : min(at + left - 2, end)])
                step = min(left, end - at)
                at, left = at + step, left - step
                continue
            stop = window.find(b"\r\n", at)
            if stop < 0:
                break
            size = _size(window[at:stop])
            at = stop + 2
            if not size:
                self.is_over = True
                break
            left = size + 2
        self._left, self._rest = left, window[at:]
        if len(self._rest) > _LONGEST_SIZE and not self.is_over:
            raise OSError("a chunk of the answer has no size")
        return b"".join(pieces)


def _size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 15 or not _HEX.issuperset(digits):
        raise OSError(f"a chunk of the answer has no size: {digits[:20].decode('latin-1')!r}")
    return int(digits, 16)


class _Body(httpx2.AsyncByteStream):
    """What comes, as it comes."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        framing: _Framing,
        request: httpx2.Request,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._framing = framing
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        framing, read = self._framing, self._reader.read
        try:
            while not framing.is_over:
                data = await read(_AT_ONCE)
                if not data:
                    if framing.can_end:
                        return
                    raise httpx2.RemoteProtocolError("the server hung up amid its answer", request=self._request)
                piece = framing.feed(data)
                if piece:
                    yield piece
        except OSError as error:
            raise httpx2.ReadError(str(error) or type(error).__name__, request=self._request) from None

    async def aclose(self) -> None:
        self._writer.transport.abort()
