"""How servers of each kind word what the scripted engine says. The shapes are those that real servers sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from fot.engines.base import Chunk, Counters

__all__ = ["DIALECTS", "Dialect", "Route", "Wording", "books", "error_body"]

Dialect = Literal["openai", "vllm", "llamacpp", "sglang"]
DIALECTS: tuple[Dialect, ...] = ("openai", "vllm", "llamacpp", "sglang")
Route = Literal["chat", "completions", "completion", "generate"]


@dataclass(slots=True)
class Wording:
    """One answer in the making: gives the frames for each chunk."""

    dialect: Dialect
    route: Route
    id: str
    model: str
    is_incremental: bool = False
    counts_tokens: bool = True
    _text: str = ""
    _tokens: int = 0
    _prompt_tokens: int = 0
    _cached_tokens: int = 0

    def frames(self, chunk: Chunk) -> Iterator[bytes]:
        """The events for one chunk; after the last one nothing follows."""
        if chunk.prompt_tokens is not None:
            self._prompt_tokens, self._cached_tokens = chunk.prompt_tokens, chunk.cached_tokens or 0
        new_tokens, self._tokens = chunk.tokens - self._tokens, chunk.tokens
        self._text += chunk.text
        if self.route == "completion":
            yield from self._native(chunk)
        elif self.route == "generate":
            yield from self._generated(chunk, new_tokens)
        else:
            yield from self._openai(chunk, new_tokens)

    def _openai(self, chunk: Chunk, new_tokens: int) -> Iterator[bytes]:
        choice: dict[str, object] = {"index": 0, "logprobs": None, "finish_reason": chunk.finish_reason}
        if self.route == "completions":
            choice["text"] = chunk.text
        else:
            choice["delta"] = {self._field(chunk): chunk.text}
        if self.dialect == "vllm":
            choice["token_ids"] = list(range(new_tokens))
        event: dict[str, object] = {"id": self.id, "model": self.model, "choices": [choice]}
        if self.dialect in ("vllm", "sglang") and self.counts_tokens:
            event["usage"] = self._usage()
        if self.dialect == "llamacpp":
            event["timings"] = self._timings()
        yield _frame(event)
        if chunk.finish_reason is not None:
            if self.counts_tokens:
                yield _frame({"id": self.id, "model": self.model, "choices": [], "usage": self._usage()})
            yield b"data: [DONE]\n\n"

    def _field(self, chunk: Chunk) -> str:
        if chunk.channel == "content":
            return "content"
        return "reasoning" if self.dialect == "vllm" else "reasoning_content"

    def _native(self, chunk: Chunk) -> Iterator[bytes]:
        event: dict[str, object] = {
            "index": 0,
            "content": chunk.text,
            "tokens": [],
            "stop": False,
            "id_slot": -1,
            "tokens_predicted": chunk.tokens,
            "tokens_evaluated": self._prompt_tokens,
            "timings": self._timings(),
        }
        if chunk.confidences:
            event["completion_probabilities"] = [
                {"id": 0, "token": "", "logprob": -c, "top_logprobs": [{"id": 0, "token": "", "logprob": -c}]}
                for c in chunk.confidences
            ]
        yield _frame(event)
        if chunk.finish_reason is not None:
            stop_type = "limit" if chunk.finish_reason == "length" else "eos"
            yield _frame({**event, "content": "", "stop": True, "stop_type": stop_type})

    def _generated(self, chunk: Chunk, new_tokens: int) -> Iterator[bytes]:
        finish = None if chunk.finish_reason is None else {"type": chunk.finish_reason}
        text, ids = (chunk.text, new_tokens) if self.is_incremental else (self._text, self._tokens)
        if chunk.finish_reason == "abort" and self.is_incremental and not new_tokens:
            text, ids = self._text[-1:], 1  # the real one repeats its last token here
        meta = {
            "id": self.id,
            "finish_reason": finish,
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": chunk.tokens,
            "cached_tokens": self._cached_tokens,
        }
        yield _frame({"text": text, "output_ids": list(range(ids)), "meta_info": meta})
        if finish is not None:
            yield b"data: [DONE]\n\n"

    def _usage(self) -> dict[str, object]:
        return {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._tokens,
            "total_tokens": self._prompt_tokens + self._tokens,
            "prompt_tokens_details": {"cached_tokens": self._cached_tokens},
        }

    def _timings(self) -> dict[str, object]:
        return {
            "cache_n": self._cached_tokens,
            "prompt_n": self._prompt_tokens - self._cached_tokens,
            "predicted_n": self._tokens,
        }


def _frame(event: dict[str, object]) -> bytes:
    return b"data: " + msgspec.json.encode(event) + b"\n\n"


def books(dialect: Dialect, counters: Counters) -> str:
    """What `/metrics` says."""
    generated, running, waiting = counters.generated_tokens, counters.running, counters.waiting
    if dialect == "llamacpp":
        return (
            f"# TYPE llamacpp:tokens_predicted_total counter\nllamacpp:tokens_predicted_total {generated}\n"
            f"llamacpp:requests_processing {running}\nllamacpp:requests_deferred {waiting}\n"
        )
    labels = '{engine="0",model_name="scripted"}' if dialect == "vllm" else '{model_name="scripted"}'
    names = {
        "vllm": ("generation_tokens_total", "num_requests_running", "num_requests_waiting"),
        "sglang": ("generation_tokens_total", "num_running_reqs", "num_queue_reqs"),
    }.get(dialect, ())
    values = (float(generated or 0), float(running or 0), float(waiting or 0))
    return "".join(f"{dialect}:{name}{labels} {value}\n" for name, value in zip(names, values, strict=False))


def error_body(status: int, message: str) -> bytes:
    """An error in the shape that all of them use."""
    return msgspec.json.encode({"error": {"message": message, "type": "Error", "code": status}})
