"""The transport for streams: bodies of every framing, cut anywhere, and servers that do not keep to the protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.engines.plain import PlainTransport, _Chunked

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"


def chunked(pieces: list[bytes]) -> bytes:
    return b"".join(b"%x;a=b\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.lists(st.integers(0, 400), max_size=12))
def test_chunks_that_are_cut_anywhere(pieces: list[bytes], cuts: list[int]) -> None:
    data = chunked(pieces)
    at = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    framing = _Chunked()
    got = b"".join(framing.feed(data[start:end]) for start, end in pairwise(at))
    assert got == b"".join(pieces)
    assert framing.is_over


@pytest.mark.parametrize("size", [b"-1", b"+5", b"0x5", b"1_0", b"", b"5 5", b"f" * 16, b"7" * 2000])
def test_sizes_that_are_none(size: bytes) -> None:
    with pytest.raises(OSError, match="no size"):
        _Chunked().feed(size + (b"" if len(size) > 1000 else b"\r\nabcde\r\n"))


@asynccontextmanager
async def saying(*parts: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that says these parts, one after the other, and hangs up; and what it was asked."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", heard
    finally:
        server.close()
        await server.wait_closed()


async def read(url: str) -> bytes:
    async with httpx2.AsyncClient(transport=PlainTransport()) as client, client.stream("GET", url) as answer:
        assert answer.status_code == 200
        return b"".join([piece async for piece in answer.aiter_raw()])


@pytest.mark.parametrize(
    "parts",
    [
        (HEAD + b"transfer-encoding: chunked\r\n\r\n", chunked([b"ab", b"cde"])),
        (HEAD + b"Content-Length: 5\r\n\r\nabcde and more",),
        (HEAD + b"\r\n", b"ab", b"cde"),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + HEAD, b"\r\nabcde"),
    ],
)
async def test_bodies(parts: tuple[bytes, ...]) -> None:
    async with saying(*parts) as (url, heard):
        assert await read(url) == b"abcde"
    assert heard[0].startswith(b"GET / HTTP/1.1\r\n")
    assert heard[0].lower().count(b"connection: ") == 1


@pytest.mark.parametrize(
    "parts",
    [
        (HEAD + b"transfer-encoding: chunked\r\n\r\n", b"5\r\nabc"),
        (HEAD + b"content-length: 9\r\n\r\nabcde",),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n", b"five\r\nabcde\r\n0\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\ncontent-le",),
        (b"SSH-2.0-OpenSSH\r\n\r\n",),
        (b"HTTP/1.1 20 OK\r\n\r\n",),
        (b"x" * (1 << 19),),
    ],
)
async def test_answers_that_are_torn_or_none(parts: tuple[bytes, ...]) -> None:
    async with saying(*parts) as (url, _):
        with pytest.raises(httpx2.TransportError):
            await read(url)


async def test_nobody_there() -> None:
    with pytest.raises(httpx2.ConnectError):
        await read("http://127.0.0.1:9/")


async def test_no_header_reaches_over_its_line() -> None:
    async with saying(HEAD + b"\r\n") as (url, heard), httpx2.AsyncClient(transport=PlainTransport()) as client:
        with pytest.raises(httpx2.LocalProtocolError):
            await client.get(url, headers={"x-one": "1\r\nx-two: 2"})
    assert not heard
