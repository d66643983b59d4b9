"""What an engine is: something that streams tokens, says how many, and stops when told to.

A rollout's text is its reasoning, then `</think>`, then its answer. An engine that splits the two tells the channel of
every chunk and leaves the tag out; whoever joins the channels puts the tag where `content` begins.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import msgspec

from fot.errors import EngineRefused

__all__ = [
    "AbortKind",
    "BarrierEngine",
    "Capabilities",
    "Channel",
    "Chunk",
    "Counters",
    "Engine",
    "FinishReason",
    "Request",
    "Sampling",
    "refuse_taken",
]

AbortKind = Literal["explicit", "disconnect", "none"]
Channel = Literal["reasoning", "content"]
FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn; None leaves the engine's own default in force."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = None
    """Cap on a whole rollout, its prefix included."""
    stop: Sequence[str] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    """Passed to the engine as it stands; wins over everything else."""

    @property
    def drawn(self) -> dict[str, object]:
        """What is said of how tokens are drawn and when that stops, by the names that all engines use."""
        said = {"temperature": self.temperature, "top_p": self.top_p, "top_k": self.top_k, "min_p": self.min_p}
        known: dict[str, object] = {name: value for name, value in said.items() if value is not None}
        return known | ({"stop": list(self.stop)} if self.stop else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One rollout, or the rest of one: give `messages` or `prompt`, not both.

    `id` is unique within the engine and no id is the prefix of another. With `prefix` the engine goes on from that text
    (in the joined form, tag included), which it counts as prompt; chunks then hold what is new only.
    """

    id: str
    messages: Sequence[Mapping[str, object]] = ()
    prompt: str | None = None
    prefix: str = ""
    prefix_tokens: int = 0
    """Tokens of `prefix` as the engine counted them when it generated it."""
    max_tokens: int | None = None
    """Cap on this request's new tokens; None: the model's context."""
    hold_at: int | None = None
    """Only for a `BarrierEngine`: wait after this many new tokens, in place, until `advance` lets it go on."""
    seed: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    logprobs: int = 0
    """How many alternatives the confidences are taken over; 0 asks for none."""


def refuse_taken(request: Request, running: Container[str]) -> None:
    """Raises `EngineRefused` where the request's id is that of one that runs."""
    if request.id in running:
        raise EngineRefused(f"request id '{request.id}' is taken", status=409, request_id=request.id)


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """What came next. The last chunk of a stream, and only that one, has a `finish_reason`."""

    text: str
    tokens: int
    """New tokens of this request up to the end of this chunk, as the engine counts them (else estimated)."""
    ends: tuple[int, ...] = ()
    """Where each of the chunk's tokens ends, in characters from the chunk's start; empty when the engine does not
    tell. On the first chunk of `content` the left-out tag lies before the start: its tokens end at 0 or below."""
    channel: Channel = "content"
    finish_reason: FinishReason | None = None
    confidences: tuple[float, ...] = ()
    """One for each of the chunk's tokens: minus the mean log-probability of the alternatives asked for."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens that the engine did not compute again."""
    is_estimated: bool = False
    """`tokens` is not the engine's count: it did not tell one so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can do for a controller, as far as it is known without trying."""

    exact_counts: bool
    """`Chunk.tokens` is the engine's own count at every chunk."""
    token_ends: bool
    """`Chunk.ends` is told."""
    seeds: bool
    """The same request with the same seed gives the same text."""
    abort: AbortKind
    resume: bool
    """`Request.prefix` is honoured."""
    barrier: bool = False
    """The engine is a `BarrierEngine`: it holds a rollout at a checkpoint without giving up its state."""
    logprobs: bool = False
    max_parallel: int | None = None
    """Rollouts that run at once; further ones wait. None: not known."""
    notes: tuple[str, ...] = ()
    """What a user should know of this engine, one sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The engine's own books, over everything it has done since it started."""

    generated_tokens: int | None
    running: int | None
    waiting: int | None = None


class Engine(Protocol):
    """Streams rollouts. All methods may be called from many tasks of one event loop at once."""

    @property
    def name(self) -> str: ...

    async def capabilities(self) -> Capabilities:
        """Asks the engine once, then remembers. Raises `EngineUnavailable` when nobody answers."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """Generate. Closing the iterator, or cancelling whoever reads it, stops the generation.

        Raises `EngineError`; where `retryable` is true the rollout may be resumed from what has come.
        """
        ...

    async def abort(self, request_id: str) -> None:
        """Stop a request; its stream then ends with what was still underway and `finish_reason` "abort".

        Returns when the engine has acknowledged, or after a bounded wait. Stopping what does not run is no error.
        """
        ...

    async def counters(self) -> Counters | None:
        """The engine's books now; None when it keeps none that can be read."""
        ...

    async def close(self) -> None:
        """Stop everything that still runs here and let go of it. May be called again."""
        ...


class BarrierEngine(Engine, Protocol):
    """An engine that can hold rollouts exactly where they are, at no cost but their memory."""

    def advance(self, request_id: str, hold_at: int | None) -> None:
        """Let a request go on until it has `hold_at` new tokens (None: to its end). Does not wait."""
        ...
