"""The scripted engine behind HTTP on loopback, speaking as one of four kinds of server does.

For tests and measurements: it computes nothing, so a client's own cost shows. Faults come as they would over the
network: a refused request, a reset connection, half an event, silence.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple

import msgspec

from fot.engines.base import Chunk, Request
from fot.engines.dialects import Dialect, Route, Wording, books, error_body
from fot.engines.scripted import Scripted
from fot.errors import EngineError, EngineProtocolError, EngineRefused, EngineTimeout

__all__ = ["ScriptedServer"]

_TEMPLATE_END = "<|assistant|>"
_ROUTES: Mapping[str, Route] = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/completion": "completion",
    "/generate": "generate",
}
_OWNERS = {"openai": "somebody", "vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp"}


class _Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, object]


class ScriptedServer:
    """Serves `engine` on a port of its own choosing; `async with` starts and stops it.

    Of SGLang, `version` decides how a closed connection is treated: 0.5.15 to 0.5.19 never notice, others do.
    `is_strict` refuses what the protocol does not know; `has_abort` offers vLLM's abort of development mode.
    """

    def __init__(
        self,
        engine: Scripted,
        dialect: Dialect = "vllm",
        *,
        model: str = "scripted",
        api_key: str | None = None,
        version: str = "0.5.23",
        is_incremental: bool = False,
        is_strict: bool = False,
        has_abort: bool = False,
    ) -> None:
        self.engine = engine
        self._dialect: Dialect = dialect
        self._model = model
        self._api_key = api_key
        self._version = version
        self._is_incremental = is_incremental
        self._is_strict = is_strict
        self._has_abort = has_abort or dialect == "sglang"
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self.aborts: list[str] = []
        self.disconnects = 0

    @property
    def url(self) -> str:
        """Where it answers."""
        if self._server is None:
            raise RuntimeError("the server has not been started")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> ScriptedServer:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=4096, limit=1 << 24)
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            while (asked := await _read_request(reader)) is not None:
                if not await self._answer(asked, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, asked: _Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; tells whether the connection may be used again."""
        if self._api_key is not None and asked.headers.get("authorization") != f"Bearer {self._api_key}":
            _plain(writer, 401, error_body(401, f"wrong key: {asked.headers.get('authorization')}"))
            return True
        route = _ROUTES.get(asked.path)
        if route is None:
            status, body = await self._plain_answer(asked)
            _plain(writer, status, body)
            return True
        if self._is_strict and "continuous_usage_stats" in str(asked.body.get("stream_options")):
            _plain(writer, 400, error_body(400, "Unknown parameter: stream_options.continuous_usage_stats"))
            return True
        await self._stream(route, asked, reader, writer)
        return False

    async def _plain_answer(self, asked: _Asked) -> tuple[int, bytes]:
        answers: dict[str, Callable[[_Asked], Awaitable[object]]] = {
            "/v1/models": self._models,
            "/health": self._models,
        }
        if self._dialect != "openai":
            answers["/metrics"] = self._metrics
        if self._dialect == "vllm":
            answers |= {"/version": self._server_info, "/tokenize": self._tokenize, "/detokenize": self._detokenize}
        if self._dialect == "llamacpp":
            answers |= {"/props": self._props, "/slots": self._slots, "/apply-template": self._apply_template}
        if self._dialect == "sglang":
            answers |= {"/server_info": self._server_info, "/v1/loads": self._loads, "/abort_request": self._abort}
        elif self._has_abort:
            answers["/abort_requests"] = self._abort
        if asked.path not in answers:
            return 404, error_body(404, "Not Found")
        said = await answers[asked.path](asked)
        return 200, said if isinstance(said, bytes) else msgspec.json.encode(said)

    async def _models(self, asked: _Asked) -> object:
        return {"object": "list", "data": [{"id": self._model, "owned_by": _OWNERS[self._dialect]}]}

    async def _server_info(self, asked: _Asked) -> object:
        return {"version": self._version, "incremental_streaming_output": self._is_incremental}

    async def _metrics(self, asked: _Asked) -> object:
        return books(self._dialect, await self.engine.counters()).encode()

    async def _loads(self, asked: _Asked) -> object:
        counters = await self.engine.counters()
        return {"loads": [{"num_running_reqs": counters.running, "num_waiting_reqs": counters.waiting}]}

    async def _props(self, asked: _Asked) -> object:
        return {"total_slots": (await self.engine.capabilities()).max_parallel or 4096}

    async def _slots(self, asked: _Asked) -> object:
        return [{"id": number, "is_processing": True} for number in range((await self.engine.counters()).running or 0)]

    async def _tokenize(self, asked: _Asked) -> object:
        return {"tokens": [ord(character) for character in _render(asked.body)]}

    async def _detokenize(self, asked: _Asked) -> object:
        tokens = asked.body["tokens"]
        return {"prompt": "".join(chr(token) for token in tokens) if isinstance(tokens, list) else ""}

    async def _apply_template(self, asked: _Asked) -> object:
        return {"prompt": _render(asked.body)}

    async def _abort(self, asked: _Asked) -> object:
        wanted = asked.body.get("request_ids") or [asked.body.get("rid")]
        for name in wanted if isinstance(wanted, list) else []:
            self.aborts.append(str(name))
            for running in self.engine.running:
                # As the real one does: whatever begins with the name is meant.
                if running == name or (self._dialect == "sglang" and running.startswith(str(name))):
                    await self.engine.abort(running)
        return {}

    # --- streams

    async def _stream(
        self, route: Route, asked: _Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        request = self._request(route, asked)
        playing = asyncio.ensure_future(self._play(route, request, writer, asked.body))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((playing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not playing.done():
                self.disconnects += 1
                if self._notices_disconnects:
                    playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)
        finally:
            for task in (playing, leaving):
                task.cancel()
            await asyncio.gather(playing, leaving, return_exceptions=True)

    @property
    def _notices_disconnects(self) -> bool:
        return self._dialect != "sglang" or self._version not in {f"0.5.{minor}" for minor in range(15, 20)}

    def _request(self, route: Route, asked: _Asked) -> Request:
        """The scripted engine's request: what follows the problem, or the template, is this rollout's prefix."""
        body = asked.body
        params = body.get("sampling_params")
        params = params if isinstance(params, dict) else body
        prompt = _render(body) if route == "chat" else str(body.get("prompt", body.get("text", "")))
        _, mark, prefix = prompt.rpartition(_TEMPLATE_END)
        self._number += 1
        named = body.get("rid") or asked.headers.get("x-request-id") or f"request-{self._number}"
        most = next((params[key] for key in ("max_tokens", "n_predict", "max_new_tokens") if key in params), None)
        seed = params.get("sampling_seed", params.get("seed"))
        return Request(
            id=f"cmpl-{named}-0" if self._dialect == "vllm" and route == "completions" else str(named),
            prompt=prompt,
            prefix=prefix if mark else self.engine.prefix_in(prompt, seed if isinstance(seed, int) else None),
            max_tokens=most if isinstance(most, int) else None,
            seed=seed if isinstance(seed, int) else None,
            logprobs=1 if "n_probs" in body else 0,
        )

    async def _play(
        self, route: Route, request: Request, writer: asyncio.StreamWriter, body: Mapping[str, object]
    ) -> None:
        options = body.get("stream_options")
        wording = Wording(
            self._dialect,
            route,
            request.id,
            self._model,
            is_incremental=self._is_incremental,
            counts_tokens=route in ("completion", "generate") or bool(options),
        )
        stream = self.engine.stream(request)
        has_begun = False
        try:
            async for chunk in stream:
                if not has_begun:
                    writer.write(_STREAM_HEAD)
                    has_begun = True
                for frame in self._frames(wording, chunk):
                    writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        except EngineError as error:
            await self._fail(error, writer, has_begun=has_begun)
        finally:
            await _close(stream)

    def _frames(self, wording: Wording, chunk: Chunk) -> list[bytes]:
        return list(wording.frames(chunk))

    async def _fail(self, error: EngineError, writer: asyncio.StreamWriter, *, has_begun: bool) -> None:
        """Let a fault happen to this connection."""
        if isinstance(error, EngineTimeout):
            if not has_begun:
                writer.write(_STREAM_HEAD)
            await asyncio.Event().wait()
        if isinstance(error, EngineRefused):
            said = error_body(error.status, str(error))
            if has_begun:
                frame = b"data: " + said + b"\n\n"
                writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(frame), frame))
            else:
                wait = () if error.retry_after_s is None else (f"retry-after: {error.retry_after_s:g}",)
                _plain(writer, error.status, said, wait)
            await writer.drain()
            return
        if isinstance(error, EngineProtocolError) and error.retryable:
            frame = b'data: {"id": "torn", "choi\n\n'
            writer.write((b"" if has_begun else _STREAM_HEAD) + b"%x\r\n%b\r\n" % (len(frame), frame))
            await writer.drain()
        elif isinstance(error, EngineProtocolError):
            _plain(writer, 400, error_body(400, str(error)))
            return
        writer.transport.abort()


_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
)


async def _close(stream: AsyncIterator[Chunk]) -> None:
    with contextlib.suppress(AttributeError):
        await stream.aclose()  # type: ignore[attr-defined]


def _plain(writer: asyncio.StreamWriter, status: int, body: bytes, headers: tuple[str, ...] = ()) -> None:
    head = [f"HTTP/1.1 {status} -", "content-type: application/json", f"content-length: {len(body)}", *headers]
    writer.write(("\r\n".join(head) + "\r\n\r\n").encode() + body)


async def _read_request(reader: asyncio.StreamReader) -> _Asked | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    body = msgspec.json.decode(raw) if raw else {}
    return _Asked(method, path, headers, body if isinstance(body, dict) else {})


def _render(body: Mapping[str, object]) -> str:
    """The chat template of this server: a final message of the assistant is gone on with."""
    if "messages" not in body:
        return str(body.get("prompt", ""))
    messages = body["messages"]
    text, last = "", ""
    for message in messages if isinstance(messages, list) else []:
        if message["role"] == "assistant" and body.get("continue_final_message"):
            last = message["content"]
        else:
            text += f"<|{message['role']}|>{message['content']}"
    return text + _TEMPLATE_END + last
