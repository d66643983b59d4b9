"""Any server that speaks OpenAI's protocol: chat or completions, streamed, stopped by closing the connection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from typing import TypedDict, Unpack

import msgspec

from fot.engines.base import Capabilities, Chunk, Counters, Request, refuse_taken
from fot.engines.http import EventStream, HttpServer
from fot.engines.reading import OPENING, ChunkReader, remaining_tokens
from fot.engines.wire import ModelList, decode_json
from fot.errors import ConfigError, EngineError, EngineRefused, EngineUnavailable

__all__ = ["OpenAICompatible", "ServerOptions"]

_ACKNOWLEDGE_S = 2.0
_HANG_UP_S = 0.5
_BAD_REQUEST = (400, 422)
_REMEMBERED = 1024


class ServerOptions(TypedDict, total=False):
    """How a server is reached; see `OpenAICompatible`."""

    model: str | None
    api_key: str | None
    headers: Mapping[str, str] | None
    connect_s: float
    silence_s: float


class OpenAICompatible:
    """The server at `base_url` (else OPENAI_BASE_URL), asked with `api_key` (else OPENAI_API_KEY).

    `model` is the server's first one where none is named. Knows nothing of the server but the protocol: counts are its
    own where it tells them with every chunk, else estimated until the end; a chat cannot be resumed.
    """

    name = "openai"

    def __init__(self, base_url: str | None = None, **options: Unpack[ServerOptions]) -> None:
        url = base_url or os.environ.get("OPENAI_BASE_URL")
        if not url:
            raise ConfigError("no server was named", "Give its URL, or set OPENAI_BASE_URL.")
        self.server = HttpServer(
            url,
            api_key=options.get("api_key") or os.environ.get("OPENAI_API_KEY"),
            headers=options.get("headers"),
            connect_s=options.get("connect_s", 10.0),
            silence_s=options.get("silence_s", 300.0),
        )
        self._model = options.get("model")
        self._streams: dict[str, EventStream] = {}
        self._closing: set[asyncio.Future[None]] = set()
        self._capabilities: Capabilities | None = None
        self._finding_out = asyncio.Lock()
        self._asks_for_more = True
        self._rendered: dict[bytes, str] = {}
        self._rendering: dict[bytes, asyncio.Task[str]] = {}
        self._opening = ""

    # --- the protocol

    async def capabilities(self) -> Capabilities:
        if self._capabilities is None:
            async with self._finding_out:  # many streams may begin at once
                if self._capabilities is None:
                    self._capabilities = await self._find_out()
        return self._capabilities

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        refuse_taken(request, self._streams)
        if remaining_tokens(request) == 0:
            yield Chunk(text="", tokens=0, finish_reason="length")
            return
        stream, first = await self._begin(request)
        reader = self._reader(request)
        try:
            events = first
            while events is not None:
                for data in events:
                    for chunk in reader.feed(data):
                        yield chunk
                events = None if reader.is_done else await stream.next()
            if reader.finish is None and not reader.is_done and not stream.is_cut:
                raise EngineUnavailable(
                    f"{self.server.root} broke the stream off", retryable=True, request_id=request.id
                )
            is_cut = stream.is_cut
            await self._release(request.id, stream, is_over=True)
            yield reader.last(is_cut=is_cut)
        finally:
            if reader.opening.was_seen:
                self._opening = OPENING
            await self._release(request.id, stream, is_over=reader.finish is not None)

    async def abort(self, request_id: str) -> None:
        stream = self._streams.get(request_id)
        if stream is None or stream.is_cut:
            return
        if await self._tell_abort(request_id):
            stream.expect_end(_ACKNOWLEDGE_S)  # the engine's last word is still to come
        else:
            stream.hang_up(_HANG_UP_S)
        if stream.is_being_read:
            try:
                async with asyncio.timeout(_ACKNOWLEDGE_S):
                    await stream.closed.wait()
            except TimeoutError:
                stream.cut()

    async def counters(self) -> Counters | None:
        return None

    async def close(self) -> None:
        for request_id, stream in list(self._streams.items()):
            if stream.is_being_read:
                await self.abort(request_id)
            else:
                await self._release(request_id, stream, is_over=False)
        await asyncio.gather(*self._closing)
        for rendering in self._rendering.values():
            rendering.cancel()
        await asyncio.gather(*self._rendering.values(), return_exceptions=True)
        await self.server.close()

    # --- what other servers do differently

    async def model(self) -> str:
        """The model's name on this server."""
        if self._model is None:
            listed = decode_json(await self.server.get("/v1/models"), ModelList)
            if not listed.data:
                raise ConfigError(f"{self.server.root} lists no model", "Name one with --model.")
            self._model = listed.data[0].id
        return self._model

    async def _find_out(self) -> Capabilities:
        try:
            await self.model()
        except EngineRefused as error:
            if not error.is_missing:  # one that lists no models serves whoever names one
                raise
        return Capabilities(exact_counts=False, token_ends=False, seeds=True, abort="disconnect", resume=False)

    async def _ask(self, request: Request) -> tuple[str, dict[str, object], dict[str, str]]:
        """Path, body and headers of a request."""
        body = await self._body(request)
        if request.prompt is not None:
            return "/v1/completions", {**body, "prompt": self._continued(request.prompt, request)}, {}
        if request.prefix:
            raise ConfigError(
                "this server cannot go on with a chat where a rollout stopped",
                "Let rollouts run through (--way stream), or give the prompt as text.",
            )
        return "/v1/chat/completions", {**body, "messages": list(request.messages)}, {}

    def _reader(self, request: Request) -> ChunkReader:
        return ChunkReader(request)

    def _stream(
        self, request_id: str, path: str, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> EventStream:
        return EventStream(self.server, path, body, request_id, headers)

    async def _tell_abort(self, request_id: str) -> bool:
        """Stop a request by name, where the server can; False where only the connection can be closed."""
        return False

    def _more(self) -> dict[str, object]:
        """What is asked for although the protocol does not know it; left out once a server refuses it."""
        return {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}

    async def _apply_template(self, chat: Mapping[str, object]) -> str:
        """The prompt that the server's own template makes of a chat."""
        raise NotImplementedError

    # --- requests

    async def render(self, request: Request) -> str:
        """The prompt of a request, as text; the server is asked once for each."""
        if request.prompt is not None:
            return request.prompt
        chat: dict[str, object] = {"messages": list(request.messages)}
        if "chat_template_kwargs" in request.sampling.extra:
            chat["chat_template_kwargs"] = request.sampling.extra["chat_template_kwargs"]
        key = msgspec.json.encode(chat)
        if (known := self._rendered.get(key)) is not None:
            return known
        underway = self._rendering.get(key)
        if underway is None:  # all rollouts of a problem may ask at once
            underway = self._rendering[key] = asyncio.ensure_future(self._apply_template(chat))
            underway.add_done_callback(lambda done: self._remember(key, done))
        return await asyncio.shield(underway)  # it is not this rollout's alone

    def _remember(self, key: bytes, rendered: asyncio.Task[str]) -> None:
        del self._rendering[key]
        if rendered.cancelled() or rendered.exception() is not None:
            return
        if len(self._rendered) >= _REMEMBERED:
            self._rendered.clear()
        self._rendered[key] = rendered.result()

    def _continued(self, prompt: str, request: Request) -> str:
        """The prompt with what this rollout has already generated, the opening tag put back where there was one."""
        return prompt + self._opening + request.prefix if request.prefix else prompt

    async def _body(self, request: Request) -> dict[str, object]:
        sampling = request.sampling
        body: dict[str, object] = {
            "model": sampling.extra.get("model") or await self.model(),
            "stream": True,
            "max_tokens": remaining_tokens(request),
            **sampling.drawn,
            "seed": request.seed,
        }
        if request.logprobs and request.prompt is None:
            body |= {"logprobs": True, "top_logprobs": request.logprobs}
        elif request.logprobs:
            body["logprobs"] = request.logprobs
        body |= self._more() if self._asks_for_more else {"stream_options": {"include_usage": True}}
        return {key: value for key, value in body.items() if value is not None} | dict(sampling.extra)

    async def _begin(self, request: Request) -> tuple[EventStream, list[bytes] | None]:
        """Send a request; once more, in plain words, where the server may not know the extensions."""
        path, body, headers = await self._ask(request)
        try:
            return await self._send(request.id, path, body, headers)
        except EngineRefused as error:
            if error.status not in _BAD_REQUEST or "continuous_usage_stats" not in str(body.get("stream_options")):
                raise
        begun = await self._send(request.id, path, body | {"stream_options": {"include_usage": True}}, headers)
        self._asks_for_more = False
        return begun

    async def _send(
        self, request_id: str, path: str, body: dict[str, object], headers: dict[str, str]
    ) -> tuple[EventStream, list[bytes] | None]:
        stream = self._streams[request_id] = self._stream(request_id, path, body, headers)
        try:
            return stream, await stream.next()
        except EngineRefused:
            await self._release(request_id, stream, is_over=True)
            raise
        except BaseException:
            await self._release(request_id, stream, is_over=False)
            raise

    async def _release(self, request_id: str, stream: EventStream, *, is_over: bool) -> None:
        if self._streams.get(request_id) is not stream:
            return
        del self._streams[request_id]
        # Shielded: whoever stops reading by being cancelled must still leave nothing behind on the server.
        closing = asyncio.ensure_future(self._let_go(request_id, stream, is_over=is_over))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)

    async def _let_go(self, request_id: str, stream: EventStream, *, is_over: bool) -> None:
        try:
            if not is_over and not stream.is_cut and await self._tell_abort(request_id):
                stream.expect_end(_ACKNOWLEDGE_S)
                while await stream.next() is not None:
                    pass
        except EngineError:
            pass  # the stream is closed in any case, and its error has been told to whoever read it
        finally:
            await stream.close()
