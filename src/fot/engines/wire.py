"""What servers that speak OpenAI's protocol send, as far as it is read here; unknown fields are skipped.

The three spellings of reasoning are all seen: `reasoning` (vLLM), `reasoning_content` (SGLang, llama.cpp, DeepSeek) and
inline text up to `</think>` (everything else).
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from fot.errors import EngineProtocolError

__all__ = [
    "Alternative",
    "Choice",
    "ChosenToken",
    "Delta",
    "Event",
    "Failure",
    "Logprobs",
    "ModelList",
    "Timings",
    "Usage",
    "confidence",
    "decode",
    "decode_event",
    "decode_json",
]


class Alternative(msgspec.Struct, gc=False):
    """One token that might have been chosen."""

    logprob: float


class ChosenToken(msgspec.Struct, gc=False):
    """The token that was chosen, and what else might have been."""

    token: str = ""
    logprob: float | None = None
    top_logprobs: list[Alternative] | None = None


class Logprobs(msgspec.Struct, gc=False):
    """Chat gives `content`; completions give lists side by side."""

    content: list[ChosenToken] | None = None
    tokens: list[str] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None


class Delta(msgspec.Struct, gc=False):
    """What a chat chunk adds."""

    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class Choice(msgspec.Struct, gc=False):
    """A chat chunk has `delta`, a completion chunk `text`."""

    index: int = 0
    delta: Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    token_ids: list[int] | None = None


class CachedTokens(msgspec.Struct, gc=False):
    """The part of the prompt that was not computed again."""

    cached_tokens: int | None = None


class Usage(msgspec.Struct, gc=False):
    """Tokens so far, or at the end."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: CachedTokens | None = None

    @property
    def cached_tokens(self) -> int | None:
        details = self.prompt_tokens_details
        return details.cached_tokens if details is not None else None


class Timings(msgspec.Struct, gc=False):
    """llama.cpp's own count, in every chunk when asked for."""

    predicted_n: int | None = None
    prompt_n: int | None = None
    cache_n: int | None = None


class Failure(msgspec.Struct, gc=False):
    """An error inside a stream that began well."""

    message: str = ""
    code: int | str | None = None
    type: str | None = None


class Event(msgspec.Struct, gc=False):
    """One chunk of a stream."""

    choices: list[Choice] = []
    usage: Usage | None = None
    timings: Timings | None = None
    error: Failure | str | None = None


class Model(msgspec.Struct):
    """One model that a server offers."""

    id: str
    owned_by: str | None = None


class ModelList(msgspec.Struct):
    """What `/v1/models` answers."""

    data: list[Model] = []


T = TypeVar("T")

_event = msgspec.json.Decoder(Event)


def decode_event(data: bytes) -> Event:
    """One event's data; raises a retryable `EngineProtocolError` when it is torn."""
    return decode(data, _event)


def decode_json(data: bytes, kind: type[T]) -> T:
    """A whole answer of a known shape."""
    return decode(data, msgspec.json.Decoder(kind))


def decode(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """What these bytes say; raises a retryable `EngineProtocolError` when they are not what they should be."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        shown = data[:80].decode("utf-8", "replace")
        raise EngineProtocolError(
            f"the server sent what cannot be read: {shown!r} ({error})",
            "A proxy may cut the stream, or the URL may not be that of an API.",
            retryable=True,
        ) from None


def confidence(logprobs: list[float]) -> float:
    """Minus the mean log-probability of the alternatives: high where one of them stands out."""
    return -sum(logprobs) / len(logprobs)
