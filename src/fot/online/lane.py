"""One rollout on an engine: requested, read, held, resumed, retried, stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

from fot.engines.base import BarrierEngine, Capabilities, Chunk, Engine, Request, Sampling
from fot.errors import EngineError, EngineProtocolError, EngineTimeout, EngineUnavailable
from fot.online.text import LiveText

__all__ = ["Lane", "Limits", "Prompt", "Terms", "Track", "Way", "closing", "retry_wait"]

Way = Literal["stream", "pause", "barrier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How patient a run is with its engine."""

    retries: int = 8
    """Times that one rollout is taken up again before it is given up."""
    backoff_s: float = 0.5
    """First wait before a retry; doubles each time, unless the engine says how long to wait."""
    longest_wait_s: float = 60.0
    stall_s: float = 120.0
    """Silence within a stream that counts as a failure."""
    queue_s: float = 1800.0
    """The same before its first chunk: the engine may be busy with others."""
    grace_s: float = 2.0
    """How long a stopped stream may take to end by itself before it is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What all rollouts of one run have in common."""

    messages: tuple[Mapping[str, object], ...] = ()
    text: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    logprobs: int = 0

    def request(
        self,
        id: str,
        *,
        seed: int,
        max_tokens: int | None,
        prefix: str = "",
        prefix_tokens: int = 0,
        hold_at: int | None = None,
    ) -> Request:
        """A request of one rollout, or of the rest of one."""
        return Request(
            id=id,
            messages=self.messages,
            prompt=self.text,
            prefix=prefix,
            prefix_tokens=prefix_tokens,
            max_tokens=max_tokens,
            hold_at=hold_at,
            seed=seed,
            sampling=self.sampling,
            logprobs=self.logprobs,
        )


class Track(Protocol):
    """Whom a lane tells what happens to its rollout."""

    def grew(self, lane: Lane) -> None: ...
    def held(self, lane: Lane) -> None: ...
    def ended(self, lane: Lane) -> None: ...
    def failed(self, lane: Lane) -> None: ...
    def retried(self, lane: Lane, reason: str, wait_s: float) -> None: ...
    def target(self, lane: Lane) -> int | None:
        """The next number of tokens at which the policy wants to see it."""
        ...


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a lane runs."""

    engine: Engine
    can: Capabilities
    prompt: Prompt
    way: Way
    limits: Limits


async def closing(stream: AsyncIterator[Chunk]) -> None:
    """Close what iterates: that stops the generation."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


def retry_wait(error: EngineError, tries: int, limits: Limits) -> float:
    """Seconds to wait before the next try."""
    asked = error.retry_after_s
    wait = asked if asked is not None else limits.backoff_s * 2.0 ** (tries - 1)
    return min(wait, limits.longest_wait_s)


class Lane:
    """Runs one rollout until it ends, fails or is stopped; `text` is what came of it."""

    def __init__(self, rollout: int, name: str, seed: int, text: LiveText, terms: Terms, track: Track) -> None:
        self.rollout = rollout
        self.seed = seed
        self.text = text
        self.finish_reason: str | None = None
        self.failure: EngineError | None = None
        self.generated = 0
        """Tokens of all its requests, as the engine told them; what was lost with a connection is not known."""
        self.is_estimated = False
        """The engine told no count, in one of its requests at least."""
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.is_stopped = False
        self.has_begun = asyncio.Event()
        """Its first chunk has come, or none ever will."""
        self._name = name
        self._terms = terms
        self._track = track
        self._requests = 0
        self._tries = 0
        self._request: Request | None = None
        self._reading: asyncio.Task[str | None] | None = None
        self._hold: int | None = None  # tokens at which the engine holds it
        self._is_held = False
        self._gate = asyncio.Event()  # it may go on, or has been stopped
        self._heard_at = 0.0

    async def run(self) -> None:
        """Returns when nothing of this rollout runs any more."""
        try:
            while not self.is_stopped:
                try:
                    goes_on = await self._ask()
                except EngineError as error:
                    goes_on = await self._retry(error)
                if not goes_on:
                    return
        finally:
            self.has_begun.set()

    async def stop(self) -> None:
        """Stop the generation; returns when the engine has let go of it, or its stream has been cut."""
        self.is_stopped = True
        self._gate.set()
        reading, request, grace_s = self._reading, self._request, self._terms.limits.grace_s
        if reading is None or request is None or reading.done():
            return
        if self._terms.can.abort != "none":
            with suppress(EngineError, TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._terms.engine.abort(request.id)
            await asyncio.wait({reading}, timeout=grace_s)
        reading.cancel()
        await asyncio.wait({reading})

    def release(self) -> None:
        """Go on from where it was held."""
        self._gate.set()
        if self._is_held and self._request is not None and self._reading is not None and not self._reading.done():
            self._is_held = False
            self._hold = self._target()
            self._heard_at = asyncio.get_running_loop().time()
            base = self._request.prefix_tokens
            barrier: BarrierEngine = self._terms.engine  # type: ignore[assignment]
            barrier.advance(self._request.id, None if self._hold is None else self._hold - base)

    # --- one request

    async def _ask(self) -> bool:
        """Make one request and read it to its end; returns whether another one is to follow."""
        text, target, way = self.text, self._target(), self._terms.way
        base, cap = text.tokens, self._terms.prompt.sampling.max_tokens
        until = target if way == "pause" and target is not None else cap
        self._hold = target if way == "barrier" else None
        request = self._terms.prompt.request(
            f"{self._name}s{self._requests:03d}.",
            seed=self.seed,
            prefix=text.text,
            prefix_tokens=base,
            max_tokens=None if until is None else max(until - base, 0),
            hold_at=None if self._hold is None else self._hold - base,
        )
        self._requests += 1
        self._request = request
        finish = await self._read_to_the_end(request)
        self.finish_reason = finish or "abort"
        if self.is_stopped:
            return False
        if finish == "length" and until == target and target is not None:
            if text.tokens >= target:
                return await self._wait_at_checkpoint()
            if not self._terms.can.exact_counts and text.tokens > base:
                return True  # the engine's tokens are shorter than we count them
        text.finish()
        self._track.ended(self)
        return False

    async def _wait_at_checkpoint(self) -> bool:
        self._gate.clear()
        self._track.held(self)
        await self._gate.wait()
        return not self.is_stopped

    def _target(self) -> int | None:
        """Where the policy wants to see it next, when that lies before the cap."""
        target, cap = self._track.target(self), self._terms.prompt.sampling.max_tokens
        return target if target is not None and (cap is None or target < cap) else None

    async def _read_to_the_end(self, request: Request) -> str | None:
        self._heard_at = asyncio.get_running_loop().time()
        self._is_held = False
        reading = self._reading = asyncio.ensure_future(self._read(request))
        try:
            await self._watch_over(reading)
            finish = None if reading.cancelled() else reading.result()
        finally:
            reading.cancel()
            await asyncio.wait({reading})
        if not self.is_stopped and finish is None:
            raise EngineProtocolError("the stream ended without a finish reason", retryable=True, request_id=request.id)
        if not self.is_stopped and finish == "abort":
            raise EngineUnavailable("the engine aborted the rollout", retryable=True, request_id=request.id)
        return finish

    async def _read(self, request: Request) -> str | None:
        text, track, loop = self.text, self._track, asyncio.get_running_loop()
        base, before, finish = request.prefix_tokens, self.generated, None
        prompt, cached, is_estimated = 0, 0, False
        stream = self._terms.engine.stream(request)
        try:
            async for chunk in stream:
                self._heard_at = loop.time()
                self.has_begun.set()
                text.add(chunk, base)
                self.generated, is_estimated = before + chunk.tokens, chunk.is_estimated
                if chunk.prompt_tokens is not None:
                    prompt, cached = chunk.prompt_tokens, chunk.cached_tokens or cached
                finish = chunk.finish_reason or finish
                if not self.is_stopped:
                    self._tell(track, may_be_held=finish is None)
        finally:
            self.is_estimated |= is_estimated
            self.prompt_tokens += prompt
            self.cached_tokens += cached
            await closing(stream)
        return finish

    def _tell(self, track: Track, may_be_held: bool) -> None:
        if may_be_held and self._hold is not None and self.text.tokens >= self._hold:
            if not self._is_held:
                self._is_held = True
                self._gate.clear()
                track.held(self)
        else:
            track.grew(self)

    async def _watch_over(self, reading: asyncio.Task[str | None]) -> None:
        """Wait until the stream has ended; raises `EngineTimeout` when it falls silent."""
        loop, limits, before = asyncio.get_running_loop(), self._terms.limits, self.generated
        while not reading.done():
            patience = limits.stall_s if self.generated > before else limits.queue_s
            left = patience if self._is_held else self._heard_at + patience - loop.time()
            if left <= 0:
                raise EngineTimeout(f"nothing came for {patience:g} s", retryable=True)
            await asyncio.wait({reading}, timeout=min(left, limits.stall_s))  # it may have begun meanwhile

    # --- what goes wrong

    async def _retry(self, error: EngineError) -> bool:
        """Wait for the next try; False when there is none."""
        self._tries += 1
        can, limits = self._terms.can, self._terms.limits
        if self.is_stopped:
            return False
        if not error.retryable or self._tries > limits.retries or (self.text.tokens and not can.resume):
            self.failure = error
            self._track.failed(self)
            return False
        wait_s = retry_wait(error, self._tries, limits)
        self._track.retried(self, str(error), wait_s)
        if self._is_held:
            await self._gate.wait()
        self._gate.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._gate.wait()
        return not self.is_stopped
