"""SGLang: `/generate` for text, `/v1/chat/completions` for chats, and an abort that comes before the close.

A connection that just closes costs two seconds of generation, and in 0.5.15 to 0.5.19 the whole rest of the rollout. So
a stream here is never closed before its request has been aborted by name and the engine has said its last word; and
because it finds requests by the beginning of their names, those end in a mark that no other name goes on from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from fot.engines.base import Capabilities, Chunk, Counters, Request
from fot.engines.http import EventStream
from fot.engines.metrics import metric
from fot.engines.openai import OpenAICompatible
from fot.engines.reading import ChunkReader, finish_reason, remaining_tokens
from fot.engines.wire import confidence, decode, decode_json
from fot.errors import EngineError, EngineRefused

__all__ = ["GenerateReader", "Sglang"]

_LOSES_ABORTS = ((0, 5, 15), (0, 5, 20))


class _Finish(msgspec.Struct, gc=False):
    type: str = "stop"
    message: str | None = None
    status_code: int | None = None


class _Meta(msgspec.Struct, gc=False):
    finish_reason: _Finish | str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    output_top_logprobs: list[list[tuple[float, int, str | None]] | None] | None = None


class _Generated(msgspec.Struct, gc=False):
    text: str = ""
    output_ids: list[int] = []
    meta_info: _Meta | None = None
    error: dict[str, object] | str | None = None


class _ServerInfo(msgspec.Struct):
    version: str = ""
    incremental_streaming_output: bool = False
    max_running_requests: int | None = None
    enable_deterministic_inference: bool = False


_generated = msgspec.json.Decoder(_Generated)


class GenerateReader(ChunkReader):
    """Reads a `/generate` stream, in which each event repeats all the text, or with `is_incremental` none of it."""

    def __init__(self, request: Request, *, is_incremental: bool) -> None:
        super().__init__(request)
        self.is_counted = True
        self._is_incremental = is_incremental
        self._seen = ""
        self._judged = 0

    def feed(self, data: bytes) -> list[Chunk]:
        if data == b"[DONE]":
            self.is_done = True
            return []
        event = decode(data, _generated)
        if event.error is not None:
            raise self._failure(str(event.error))
        meta = event.meta_info or _Meta()
        before = self.tokens
        if meta.completion_tokens is not None:
            self.tokens = meta.completion_tokens
        self._prompt, self._cached = meta.prompt_tokens, meta.cached_tokens
        if meta.finish_reason is not None:
            self._note_finish(meta.finish_reason)
        text = self.opening.take(self._new_text(event, self.tokens - before))
        if not text and self.tokens == before:
            return []
        return [self._grown(text, before, self._confidences(meta))]

    def _new_text(self, event: _Generated, new_tokens: int) -> str:
        if not self._is_incremental:
            text, self._seen = event.text[len(self._seen) :], event.text
            return text
        # The chunk of an abort repeats the last token; the count does not.
        return event.text if new_tokens > 0 or not event.output_ids else ""

    def _note_finish(self, told: _Finish | str) -> None:
        if isinstance(told, _Finish):
            if told.status_code is not None and told.type == "abort":
                raise self._refusal(told.message or "aborted", told.status_code)
            told = told.type
        self.finish = finish_reason(told)

    def _confidences(self, meta: _Meta) -> tuple[float, ...]:
        tops = meta.output_top_logprobs or []
        if not self._is_incremental:
            tops, self._judged = tops[self._judged :], len(tops)
        return tuple(confidence([alternative[0] for alternative in top]) for top in tops if top)


class Sglang(OpenAICompatible):
    """An SGLang server, asked directly: gateways before it may not pass aborts on."""

    name = "sglang"
    _info = _ServerInfo()

    async def _find_out(self) -> Capabilities:
        await self.model()
        self._info = await self._server_info()
        notes = []
        if _LOSES_ABORTS[0] <= _version(self._info.version) < _LOSES_ABORTS[1]:
            notes.append(
                f"SGLang {self._info.version} goes on generating for a client that dies: aborts are sent by name, and "
                "waited for, but 0.5.20 or newer is safer."
            )
        if not self._info.enable_deterministic_inference:
            notes.append("Seeds have no effect unless the server runs with --enable-deterministic-inference.")
        return Capabilities(
            exact_counts=True,
            token_ends=False,
            seeds=self._info.enable_deterministic_inference,
            abort="explicit",
            resume=True,
            logprobs=True,
            max_parallel=self._info.max_running_requests,
            notes=tuple(notes),
        )

    async def _server_info(self) -> _ServerInfo:
        try:
            return decode_json(await self.server.get("/server_info"), _ServerInfo)
        except EngineRefused:  # its name before 0.5.6
            return decode_json(await self.server.get("/get_server_info"), _ServerInfo)

    async def counters(self) -> Counters | None:
        """From `/metrics`, where the server runs with --enable-metrics; else how much runs, from `/v1/loads`."""
        try:
            text = (await self.server.get("/metrics")).decode()
        except EngineError:
            text = ""
        running = metric(text, "sglang:num_running_reqs")
        if running is None:
            return await self._loads()
        return Counters(
            generated_tokens=metric(text, "sglang:generation_tokens_total"),
            running=running,
            waiting=metric(text, "sglang:num_queue_reqs"),
        )

    async def _loads(self) -> Counters | None:
        try:
            loads = decode_json(await self.server.get("/v1/loads"), _Loads).loads
        except EngineError:
            return None
        return Counters(
            generated_tokens=None,
            running=sum(load.num_running_reqs for load in loads),
            waiting=sum(load.num_waiting_reqs for load in loads),
        )

    async def _ask(self, request: Request) -> tuple[str, dict[str, object], dict[str, str]]:
        await self.capabilities()
        if request.prompt is None:
            return await self._ask_chat(request)
        sampling = request.sampling
        params = {
            "max_new_tokens": remaining_tokens(request),
            **sampling.drawn,
            "sampling_seed": request.seed,
        }
        asked: dict[str, object] = {
            "text": self._continued(request.prompt, request),
            "rid": _terminated(request.id),
            "stream": True,
            "sampling_params": {k: v for k, v in params.items() if v is not None} | dict(sampling.extra),
        }
        if request.logprobs:
            asked |= {"return_logprob": True, "top_logprobs_num": request.logprobs}
        return "/generate", asked, {}

    async def _ask_chat(self, request: Request) -> tuple[str, dict[str, object], dict[str, str]]:
        messages = [dict(message) for message in request.messages]
        body: dict[str, object] = {"rid": _terminated(request.id), "separate_reasoning": False}
        if request.prefix:
            # The server puts this behind the generation prompt: its template does not get to strip the thoughts.
            messages.append({"role": "assistant", "content": self._opening + request.prefix})
            body["continue_final_message"] = True
        return "/v1/chat/completions", {**await self._body(request), **body, "messages": messages}, {}

    def _reader(self, request: Request) -> ChunkReader:
        if request.prompt is None:
            return ChunkReader(request)
        return GenerateReader(request, is_incremental=self._info.incremental_streaming_output)

    def _stream(
        self, request_id: str, path: str, body: Mapping[str, object], headers: Mapping[str, str]
    ) -> EventStream:
        return EventStream(self.server, path, body, request_id, headers, outlives_its_reader=True)

    async def _tell_abort(self, request_id: str) -> bool:
        await self.server.post("/abort_request", {"rid": _terminated(request_id), "abort_all": False})
        return True


class _Load(msgspec.Struct):
    num_running_reqs: int = 0
    num_waiting_reqs: int = 0


class _Loads(msgspec.Struct):
    loads: list[_Load] = []


def _terminated(request_id: str) -> str:
    """A name that is not the beginning of another."""
    return request_id if request_id.endswith(".") else request_id + "."


def _version(text: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in found.groups()) if found else ()
