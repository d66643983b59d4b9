"""llama.cpp's server: its native `/completion`, which counts every token and gives them one by one."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fot.engines.base import Capabilities, Chunk, Counters, Request
from fot.engines.metrics import metric
from fot.engines.openai import OpenAICompatible
from fot.engines.reading import ChunkReader, finish_reason, remaining_tokens
from fot.engines.wire import ChosenToken, Failure, Timings, confidence, decode, decode_json
from fot.errors import EngineError, EngineRefused

__all__ = ["LlamaCpp", "LlamaReader"]


class _Event(msgspec.Struct, gc=False):
    content: str = ""
    stop: bool = False
    stop_type: str = ""
    tokens_predicted: int | None = None
    tokens_evaluated: int | None = None
    timings: Timings | None = None
    completion_probabilities: list[ChosenToken] | None = None
    error: Failure | str | None = None


class _Prompt(msgspec.Struct):
    prompt: str


class _Props(msgspec.Struct):
    total_slots: int | None = None


class _Slot(msgspec.Struct):
    is_processing: bool = False


_event = msgspec.json.Decoder(_Event)


class LlamaReader(ChunkReader):
    """Reads a native stream."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.is_counted = True

    def feed(self, data: bytes) -> list[Chunk]:
        event = decode(data, _event)
        if event.error is not None:
            raise self._failure(event.error)
        before = self.tokens
        if event.tokens_predicted is not None:
            self.tokens = event.tokens_predicted
        if event.timings is not None:
            self._cached = event.timings.cache_n
        if event.tokens_evaluated is not None:
            self._prompt = event.tokens_evaluated
        if event.stop:
            self.finish = finish_reason(event.stop_type)
            self.is_done = True
        text = self.opening.take(event.content)
        if not text and self.tokens == before:
            return []
        chosen = event.completion_probabilities or []
        tops = [[a.logprob for a in token.top_logprobs or ()] for token in chosen]
        return [self._grown(text, before, tuple(confidence(top) for top in tops if top))]


class LlamaCpp(OpenAICompatible):
    """A llama.cpp server, its own or anyone's build of it; a request stops when its connection closes."""

    name = "llamacpp"

    async def _find_out(self) -> Capabilities:
        await self.model()
        props = decode_json(await self.server.get("/props"), _Props)
        return Capabilities(
            exact_counts=True,
            token_ends=True,
            seeds=True,
            abort="disconnect",
            resume=True,
            logprobs=True,
            max_parallel=props.total_slots,
        )

    async def counters(self) -> Counters | None:
        """From `/metrics`, where the tokens of stopped requests are counted too; else from `/slots`, without a sum."""
        try:
            text = (await self.server.get("/metrics")).decode()
        except EngineRefused:
            return await self._slots()
        except EngineError:
            return None
        return Counters(
            generated_tokens=metric(text, "llamacpp:tokens_predicted_total"),
            running=metric(text, "llamacpp:requests_processing"),
            waiting=metric(text, "llamacpp:requests_deferred"),
        )

    async def _slots(self) -> Counters | None:
        try:
            slots = decode_json(await self.server.get("/slots"), list[_Slot])
        except EngineError:
            return None
        return Counters(generated_tokens=None, running=sum(slot.is_processing for slot in slots))

    async def _ask(self, request: Request) -> tuple[str, dict[str, object], dict[str, str]]:
        sampling = request.sampling
        body: dict[str, object] = {
            "model": await self.model(),
            "prompt": self._continued(await self.render(request), request),
            "stream": True,
            "cache_prompt": True,
            "timings_per_token": True,
            "n_predict": remaining_tokens(request),
            **sampling.drawn,
            "seed": request.seed,
            "n_probs": request.logprobs or None,
        }
        asked = {key: value for key, value in body.items() if value is not None}
        return "/completion", asked | dict(sampling.extra), {}

    async def _apply_template(self, chat: Mapping[str, object]) -> str:
        return decode_json(await self.server.post("/apply-template", chat), _Prompt).prompt

    def _reader(self, request: Request) -> ChunkReader:
        return LlamaReader(request)
