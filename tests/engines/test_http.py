"""Servers that fail, and keys that stay secret."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from fot.core.rollout import Rollout
from fot.engines import connect
from fot.engines.base import Chunk, Engine, Request
from fot.engines.faults import Fault
from fot.engines.http import retry_after
from fot.engines.llamacpp import LlamaCpp
from fot.engines.openai import OpenAICompatible
from fot.engines.scripted import Pace, Scripted
from fot.engines.scripted_server import ScriptedServer
from fot.engines.sglang import Sglang
from fot.engines.vllm import Vllm
from fot.errors import (
    ConfigError,
    EngineError,
    EngineProtocolError,
    EngineRefused,
    EngineTimeout,
    EngineUnavailable,
)

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-4711"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def rollout(number: int = 0, tokens: int = 400) -> Rollout:
    return Rollout(
        model="m", benchmark="b", problem_id="p", rollout_id=number, problem="P?", text="ab" * tokens, n_tokens=tokens
    )


def asked(name: str = "r0.", **more: object) -> Request:
    return Request(id=name, prompt="P?", seed=42, **more)  # type: ignore[arg-type]


async def collect(engine: Engine, request: Request) -> list[Chunk]:
    return [chunk async for chunk in engine.stream(request)]


@asynccontextmanager
async def answering(answer: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """A server that says what it is told to, whatever it is asked."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def saying(*parts: bytes) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    async def answer(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return answer


async def unused_url() -> str:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return f"http://127.0.0.1:{port}/v1"


async def failure(engine: Engine, request: Request | None = None) -> EngineError:
    with pytest.raises(EngineError) as raised:
        await collect(engine, request or asked())
    await engine.close()
    return raised.value


async def test_nobody_answers() -> None:
    error = await failure(OpenAICompatible(await unused_url(), model="m"))
    assert isinstance(error, EngineUnavailable)
    assert error.retryable
    assert "running" in error.hint
    with pytest.raises(EngineUnavailable):
        await connect(await unused_url())


@pytest.mark.parametrize("url", ["no-url", "ftp://host/v1", "http://"])
async def test_what_is_no_url_is_said_to_be_none(url: str) -> None:
    with pytest.raises((ConfigError, EngineUnavailable)) as raised:
        await collect(OpenAICompatible(url, model="m"), asked())
    assert not getattr(raised.value, "retryable", False)


@pytest.mark.parametrize(
    ("kind", "error", "status"),
    [
        ("busy", EngineRefused, 429),
        ("broken", EngineRefused, 503),
        ("refused", EngineUnavailable, None),
        ("dropped", EngineUnavailable, None),
        ("torn", EngineProtocolError, None),
        ("stalled", EngineTimeout, None),
        ("restart", EngineUnavailable, None),
        ("fatal", EngineRefused, 500),
    ],
)
@pytest.mark.parametrize("dialect", ["vllm", "sglang", "llamacpp", "openai"])
async def test_a_fault_of_the_network_shows_as_its_error(
    kind: str, error: type[EngineError], status: int | None, dialect: str
) -> None:
    script = Scripted([rollout()], faults={("p", 0): [Fault(kind, 50, 0.5)]})  # type: ignore[arg-type]
    async with ScriptedServer(script, dialect) as server:  # type: ignore[arg-type]
        engine = await connect(server.url, silence_s=1.0)
        assert engine.name == dialect
        seen = []
        with pytest.raises(error) as raised:
            async for chunk in engine.stream(asked()):
                seen.append(chunk)
        assert raised.value.retryable
        if status is not None:
            assert isinstance(raised.value, EngineRefused)
            assert raised.value.status == status
        if kind == "busy":
            assert raised.value.retry_after_s == 0.5
        if kind in ("dropped", "torn", "stalled", "restart", "fatal"):
            assert seen[-1].finish_reason is None
            assert "".join(chunk.text for chunk in seen) == ("ab" * 50)
        await engine.close()
        assert (await script.counters()).running == 0


async def test_a_stream_that_just_ends_is_broken() -> None:
    async with answering(saying(HEAD, b'data: {"choices": [{"index": 0, "text": "a"}]}\n\n')) as url:
        error = await failure(OpenAICompatible(url, model="m"))
    assert isinstance(error, EngineUnavailable)
    assert error.retryable


async def test_the_closing_mark_may_be_missing() -> None:
    event = b'data: {"choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]}'
    async with answering(saying(HEAD, event)) as url:
        engine = OpenAICompatible(url, model="m")
        chunks = await collect(engine, asked())
        await engine.close()
    assert ("".join(chunk.text for chunk in chunks), chunks[-1].finish_reason) == ("a", "stop")


@pytest.mark.parametrize("kind", [b"text/html", b"application/json"])
async def test_an_answer_that_is_no_stream_is_refused(kind: bytes) -> None:
    body = b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\ncontent-length: 2\r\n\r\n{}"
    async with answering(saying(body)) as url:
        error = await failure(OpenAICompatible(url, model="m"))
    assert isinstance(error, EngineProtocolError)
    assert "does not stream" in str(error)


async def test_keys_reach_neither_errors_nor_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ScriptedServer(Scripted([rollout()]), "openai", api_key="another") as server:  # repeats the key it got
        engine = OpenAICompatible(server.url, model="m", api_key=KEY)
        error = await failure(engine)
        with pytest.raises(EngineRefused):
            await connect(server.url, api_key=KEY)
    assert isinstance(error, EngineRefused)
    assert (error.status, error.retryable) == (401, False)
    assert "wrong key" in str(error)
    assert KEY not in f"{error!r} {error.hint} {engine!r} {vars(error)} {caplog.text}"


async def test_the_key_and_the_url_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer(Scripted([rollout()]), "vllm", api_key=KEY) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1/")
        engine = await connect()
        assert engine.name == "vllm"
        assert (await collect(engine, asked()))[-1].finish_reason == "stop"
        await engine.close()


async def test_no_url_at_all_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ConfigError) as raised:
        await connect()
    assert "OPENAI_BASE_URL" in raised.value.hint


async def test_connect_knows_names_and_guesses_slips() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'sglang'"):
        await connect("sglan")
    with pytest.raises(ConfigError, match="Did you mean 'vllm'"):
        await connect("vlm+http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="no URL"):
        await connect("vllm://127.0.0.1:1")
    with pytest.raises(ConfigError, match="cannot be made"):
        await connect("embedded", modle="x")
    assert (await connect("sglang+http://127.0.0.1:1/v1")).name == "sglang"
    assert isinstance(await connect("vllm+https://host"), Vllm)


async def test_an_abort_reaches_a_request_that_has_heard_nothing_yet() -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with answering(silent) as url:
        engine = OpenAICompatible(url, model="m")
        reading = asyncio.create_task(collect(engine, asked()))
        while not engine._streams or not engine._streams["r0."].is_being_read:
            await asyncio.sleep(0)
        await engine.abort("r0.")
        assert [(chunk.text, chunk.finish_reason) for chunk in await reading] == [("", "abort")]
        await engine.close()


async def test_an_engine_that_does_not_acknowledge_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fot.engines.openai._ACKNOWLEDGE_S", 0.2)

    async def deaf(request_id: str) -> bool:
        return True

    async with ScriptedServer(Scripted([rollout()], pace=Pace(chunk_tokens=1)), "vllm") as server:
        engine = Vllm(server.url)
        monkeypatch.setattr(engine, "_tell_abort", deaf)
        stream = engine.stream(asked(max_tokens=None))
        await anext(stream)
        server.engine.advance("cmpl-r0.-0", 1)  # it hangs from here on
        reading = asyncio.create_task(_rest(stream))
        await asyncio.sleep(0.05)
        await engine.abort("r0.")
        assert (await reading)[-1].finish_reason == "abort"
        await engine.close()


async def _rest(stream: AsyncIterator[Chunk]) -> list[Chunk]:
    return [chunk async for chunk in stream]


@pytest.mark.parametrize("version", ["0.5.17", "0.5.23"])
async def test_sglang_is_told_by_name_before_the_connection_closes(version: str) -> None:
    script = Scripted([rollout(n, 4000) for n in range(12)], pace=Pace(chunk_tokens=1, token_s=0.001))
    async with ScriptedServer(script, "sglang", version=version) as server:
        engine = Sglang(server.url)
        streams = [engine.stream(Request(id=f"r{n}", prompt="P?", seed=42 + n)) for n in (1, 10, 11)]
        for stream in streams:
            await anext(stream)
        reader = asyncio.create_task(_rest(streams[0]))
        await asyncio.sleep(0.02)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        assert server.aborts == ["r1."]
        assert (await script.counters()).running == 2
        await streams[1].aclose()  # type: ignore[attr-defined]
        assert server.aborts == ["r1.", "r10."]
        await engine.close()
        assert (await script.counters()).running == 0
        assert server.aborts == ["r1.", "r10.", "r11."]
        assert server.disconnects == 0


async def test_a_version_of_sglang_that_loses_aborts_is_named() -> None:
    for version, is_named in (("0.5.14", False), ("0.5.15", True), ("0.5.19", True), ("0.5.20", False)):
        async with ScriptedServer(Scripted([rollout()]), "sglang", version=version) as server:
            engine = Sglang(server.url)
            notes = (await engine.capabilities()).notes
            assert any("0.5.20" in note for note in notes) is is_named
            await engine.close()


async def test_counters_are_read_from_the_servers_books() -> None:
    for dialect in ("vllm", "sglang", "llamacpp"):
        script = Scripted([rollout(tokens=60)])
        async with ScriptedServer(script, dialect) as server:
            engine = await connect(server.url)
            before = await engine.counters()
            chunks = await collect(engine, asked())
            after = await engine.counters()
            assert before is not None
            assert after is not None
            assert (before.generated_tokens, after.generated_tokens) == (0, chunks[-1].tokens)
            assert (after.running, after.waiting) == (0, 0)
            await engine.close()


async def test_a_refused_extension_is_asked_for_only_once() -> None:
    async with ScriptedServer(Scripted([rollout(tokens=20)]), "openai", is_strict=True) as server:
        engine = OpenAICompatible(server.url)
        for number in range(2):
            chunks = await collect(engine, asked(f"r{number}."))
            assert (chunks[-1].tokens, chunks[-1].is_estimated) == (20, False)
        assert not engine._asks_for_more
        await engine.close()


async def test_a_chat_that_many_ask_for_at_once_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[str | Exception] = [EngineUnavailable("gone", retryable=True), "rendered"]
    asked_for = []

    async def render(chat: Mapping[str, object]) -> str:
        asked_for.append(chat)
        await asyncio.sleep(0)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    engine = LlamaCpp("http://127.0.0.1:9", model="m")
    monkeypatch.setattr(engine, "_apply_template", render)
    request = Request(id="r0.", messages=[{"role": "user", "content": "?"}])
    lost = await asyncio.gather(*(engine.render(request) for _ in range(3)), return_exceptions=True)
    assert [type(error) for error in lost] == [EngineUnavailable] * 3
    assert await asyncio.gather(*(engine.render(request) for _ in range(3))) == ["rendered"] * 3
    assert await engine.render(request) == "rendered"
    assert len(asked_for) == 2
    await engine.close()


def test_retry_after() -> None:
    assert retry_after(None) is None
    assert retry_after("") is None
    assert retry_after("soon") is None
    assert retry_after("2.5") == 2.5
    assert retry_after("-3") == 0.0
    then = retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True))
    assert then is not None
    assert 90 < then <= 100
    assert retry_after(format_datetime(datetime.now(UTC) - timedelta(seconds=100))) == 0.0
