"""Is a server fit for a funnel? Tried out, not believed: every finding comes with what to change."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from fot.engines.base import Capabilities, Chunk, Engine, Request, Sampling
from fot.errors import EngineError, EngineRefused
from fot.online.lane import closing

__all__ = ["Examination", "Finding", "examine"]

Verdict = Literal["good", "poor", "bad", "unknown"]
_Stop = Callable[[str], Awaitable[None]]

QUESTION = "Tell me, step by step and at length, how many legs twelve spiders and nine ants have together."
_TOKENS = 48
_STREAMED = 128
_LONG, _LESS = 2000, 700  # a rollout that is to be stopped must not end by itself; less where the context is short
_SLOW_S = 1.0
_LATE = 0.8  # when half of a stream has come, of the time that it takes; 0.5 is an even stream


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that matters: `good`, `poor` (costs something), `bad` (the method loses its point), `unknown`."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""
    figures: dict[str, float | int | str | None] = field(default_factory=dict)


@dataclass(slots=True)
class _Heard:
    text: str = ""
    tokens: int = 0
    chunks: int = 0
    ends: int = 0
    channels: set[str] = field(default_factory=set)
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    began: float = 0.0
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    """Seconds, and tokens by then."""

    def take(self, chunk: Chunk) -> None:
        self.arrivals.append((time.perf_counter() - self.began, chunk.tokens))
        self.text += chunk.text
        self.tokens = chunk.tokens
        self.chunks += 1
        self.ends += len(chunk.ends)
        if chunk.text:
            self.channels.add(chunk.channel)
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self.prompt_tokens = self.prompt_tokens if chunk.prompt_tokens is None else chunk.prompt_tokens
        self.cached_tokens = self.cached_tokens if chunk.cached_tokens is None else chunk.cached_tokens


class Examination:
    """What can be tried, each by itself."""

    def __init__(self, engine: Engine, can: Capabilities, k: int) -> None:
        self.engine = engine
        self.can = can
        self.k = k
        self.name = f"fot-{secrets.token_hex(4)}-d"
        self._number = 0

    def request(self, seed: int = 42, tokens: int = _TOKENS, **more: object) -> Request:
        self._number += 1
        return Request(
            id=f"{self.name}{self._number:05d}.",
            messages=({"role": "user", "content": QUESTION},),
            seed=seed,
            max_tokens=tokens,
            sampling=Sampling(temperature=1.0),
            **more,  # type: ignore[arg-type]
        )

    async def hear(self, request: Request) -> _Heard:
        heard = _Heard(began=time.perf_counter())
        stream = self.engine.stream(request)
        try:
            async for chunk in stream:
                heard.take(chunk)
        finally:
            await closing(stream)
        return heard

    async def running(self) -> int | None:
        counters = await self.engine.counters()
        return None if counters is None or counters.running is None else counters.running + (counters.waiting or 0)

    # --- what is tried

    async def counts(self) -> Finding:
        """Are tokens counted, at every chunk?"""
        heard = await self.hear(self.request())
        figures: dict[str, float | int | str | None] = {"asked": _TOKENS, "told": heard.tokens, "chunks": heard.chunks}
        if not self.can.exact_counts:
            return Finding(
                "token counts",
                "poor",
                "the server does not count tokens while it streams; they are estimated from the text",
                "Use a server that sends usage with every chunk (vLLM, SGLang, llama.cpp).",
                figures,
            )
        if heard.finish_reason == "length" and heard.tokens != _TOKENS:
            found = f"asked for {_TOKENS} tokens, it counts {heard.tokens}"
            return Finding("token counts", "bad", found, "Report this: checkpoints cannot be met exactly.", figures)
        return Finding("token counts", "good", "exact, with every chunk", "", figures)

    async def ends(self) -> Finding:
        """Is it told where in the text a token ends?"""
        heard = await self.hear(self.request())
        if heard.ends or heard.chunks >= heard.tokens:
            return Finding("token ends", "good", "known for every token")
        found = f"{heard.chunks} chunks for {heard.tokens} tokens, without token ids"
        return Finding("token ends", "poor", found, "Ask the server for shorter chunks (--stream-interval 1).")

    async def flow(self) -> Finding:
        """Do tokens come while they are made, or late and together?"""
        first = (await self.hear(self.request(tokens=1))).arrivals
        heard = await self.hear(self.request(tokens=_STREAMED))
        whole_s = heard.arrivals[-1][0]
        half_s = next(at for at, tokens in heard.arrivals if 2 * tokens >= heard.tokens)
        begin_s = first[0][0]
        figures: dict[str, float | int | str | None] = {
            "first_s": round(begin_s, 4),
            "half_s": round(half_s, 4),
            "whole_s": round(whole_s, 4),
        }
        if heard.tokens <= 1 or whole_s <= begin_s:
            return Finding("stream", "unknown", "it was over too soon", "Try again.", figures)
        if half_s - begin_s <= _LATE * (whole_s - begin_s):
            return Finding("stream", "good", "tokens come while they are made", "", figures)
        found = f"half of {heard.tokens} tokens came after {half_s:.2f} s, all after {whole_s:.2f} s"
        advice = (
            "What comes late is stopped late. Turn off the buffering of proxies; leave the server a core to talk with "
            "(vLLM on few cores: --distributed-executor-backend uni); otherwise use --way pause."
        )
        return Finding("stream", "poor", found, advice, figures)

    async def seeds(self) -> Finding:
        """Does a seed repeat a rollout, and do others differ?"""
        first, again, other = [await self.hear(self.request(seed)) for seed in (42, 42, 43)]
        if first.text == other.text:
            return Finding("seeds", "bad", "different seeds give the same text", "Raise the temperature.")
        if first.text == again.text:
            return Finding("seeds", "good", "the same seed gives the same text, others differ")
        advice = "SGLang: --enable-deterministic-inference. Without it nothing is wrong, but no run can be repeated."
        return Finding("seeds", "poor", "the same seed gives another text", advice)

    async def abort(self) -> Finding:
        """Does it stop when told to?"""
        return await self._stopped("abort", self.engine.abort)

    async def close(self) -> Finding:
        """Does it stop when the connection closes?"""

        async def nothing(request_id: str) -> None: ...

        return await self._stopped("closed connection", nothing)

    async def _stopped(self, name: str, stop: _Stop) -> Finding:
        before = await self.running()
        if before is None:
            advice = "Start the server with its metrics on (SGLang --enable-metrics, llama.cpp --metrics --slots)."
            return Finding(name, "unknown", "the server keeps no books that could be read", advice)
        try:
            return await self._stop_one(name, stop, before, _LONG)
        except EngineRefused:  # more than its context holds
            return await self._stop_one(name, stop, before, _LESS)

    async def _stop_one(self, name: str, stop: _Stop, before: int, tokens: int) -> Finding:
        request = self.request(tokens=tokens)
        stream = self.engine.stream(request)
        heard = _Heard()
        try:
            async for chunk in stream:
                heard.take(chunk)
                if heard.tokens >= 3:
                    break
            began = time.perf_counter()
            await stop(request.id)
        finally:
            await closing(stream)
        if heard.finish_reason is not None:
            return Finding(name, "unknown", "the rollout ended before it could be stopped", "Try again.")
        while (left := await self.running()) is not None and left > before:
            if time.perf_counter() - began > 30.0:
                advice = "Talk to the server itself, not through a proxy or router that keeps its connection open."
                return Finding(name, "bad", "the server goes on generating for 30 s and more", advice)
            await asyncio.sleep(0.005)
        took = time.perf_counter() - began
        figures: dict[str, float | int | str | None] = {"seconds": round(took, 3)}
        verdict: Verdict = "good" if took < _SLOW_S else "poor"
        advice = "" if verdict == "good" else "SGLang waits 2 s after a disconnect: let fot abort by request id."
        return Finding(name, verdict, f"stopped, its slot free after {took:.2f} s", advice, figures)

    async def resume(self) -> Finding:
        """Can a rollout go on from its own prefix?"""
        if not self.can.resume:
            advice = "Rollouts that break off are lost, and `--way pause` is not to be had."
            return Finding("resume", "poor", "the server cannot continue a given text", advice)
        first = await self.hear(self.request())
        more = await self.hear(self.request(prefix=first.text, prefix_tokens=first.tokens))
        cached = more.cached_tokens
        figures: dict[str, float | int | str | None] = {"prompt": more.prompt_tokens, "cached": cached}
        if not more.tokens:
            return Finding("resume", "poor", "nothing came after the prefix", "Try again.", figures)
        return Finding("resume", "good", "goes on from a prefix", "", figures)

    async def cache(self) -> Finding:
        """Is a prompt that was seen computed again?"""
        await self.hear(self.request(tokens=1))
        again = await self.hear(self.request(seed=43, tokens=1))
        figures: dict[str, float | int | str | None] = {"prompt": again.prompt_tokens, "cached": again.cached_tokens}
        if again.cached_tokens is None:
            advice = "SGLang: --enable-cache-report; vLLM: --enable-prompt-tokens-details."
            return Finding("prefix cache", "unknown", "the server does not tell what was cached", advice, figures)
        if again.cached_tokens == 0:
            short = "a prompt shorter than a cache block is never cached; "
            advice = f"{short}otherwise turn prefix caching on."
            return Finding("prefix cache", "poor", "a prompt that was just seen is computed again", advice, figures)
        found = f"{again.cached_tokens} of {again.prompt_tokens} prompt tokens came from the cache"
        return Finding("prefix cache", "good", found, "", figures)

    async def reasoning(self) -> Finding:
        """Where does the reasoning stand?"""
        heard = await self.hear(self.request(tokens=2 * _TOKENS))
        if "reasoning" in heard.channels:
            return Finding("reasoning", "good", "told apart by the server, and joined again with </think>")
        if "<think>" in heard.text or "</think>" in heard.text:
            return Finding("reasoning", "good", "inline, with its tags")
        return Finding("reasoning", "good", "none seen: the text is taken whole")

    async def slots(self) -> Finding:
        """Do k rollouts run at once?"""
        most = self.can.max_parallel
        seen = await self._most_running()
        room = min((number for number in (most, seen) if number is not None), default=None)
        figures: dict[str, float | int | str | None] = {"told": most, "seen": seen, "k": self.k}
        if room is None:
            return Finding("slots", "unknown", "the server does not tell how many rollouts run at once", "", figures)
        if room >= self.k:
            return Finding("slots", "good", f"{self.k} rollouts run at once", "", figures)
        advice = (
            f"Give the server room for {self.k} (vLLM --max-num-seqs, SGLang --max-running-requests, llama.cpp -np), "
            "or use a smaller k: those that wait come late to every checkpoint, and the others overshoot."
        )
        return Finding("slots", "poor", f"{room} of {self.k} rollouts run at once", advice, figures)

    async def _most_running(self) -> int | None:
        """Start k, and watch the server's own count."""
        readers = [asyncio.ensure_future(self.hear(self.request(seed, _TOKENS))) for seed in range(42, 42 + self.k)]
        most = None
        try:
            while not all(reader.done() for reader in readers):
                counters = await self.engine.counters()
                if counters is None or counters.running is None:
                    break
                most = max(most or 0, counters.running)
                await asyncio.sleep(0.01)
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.wait(readers)
        # A small model is done with the first before the last has come: then what was seen says little.
        return most if most is not None and self.can.max_parallel is None else None


async def examine(engine: Engine, k: int, told: Callable[[Finding], None]) -> list[Finding]:
    """Try everything, one after the other, on a server that should be idle; raises when nobody answers."""
    can = await engine.capabilities()
    examination = Examination(engine, can, k)
    findings: list[Finding] = []
    tests = {
        "token counts": examination.counts,
        "token ends": examination.ends,
        "stream": examination.flow,
        "seeds": examination.seeds,
        "abort": examination.abort,
        "closed connection": examination.close,
        "resume": examination.resume,
        "prefix cache": examination.cache,
        "reasoning": examination.reasoning,
        "slots": examination.slots,
    }
    for name, test in tests.items():
        try:
            finding = await test()
        except EngineError as error:
            if not findings:
                raise
            finding = Finding(name, "bad", str(error), error.hint)
        findings.append(finding)
        told(finding)
    return findings + [Finding("this server", "poor", note) for note in can.notes]
