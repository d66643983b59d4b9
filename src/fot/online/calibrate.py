"""How fast is a server? Short runs at several batches and contexts, and the model of its time that fits them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fot.core.timing import Timing
from fot.engines.base import Capabilities, Engine, Request, Sampling
from fot.errors import ConfigError, EngineError, EngineProtocolError
from fot.online.doctor import QUESTION, Examination
from fot.online.fitting import Stretch, fit_line, fit_steps
from fot.online.lane import closing

__all__ = ["Calibration", "Check", "batches_up_to", "calibrate", "stretches_of"]

_STRETCH = 24  # steps
_KNOWS_IGNORE_EOS = ("embedded", "llamacpp", "vllm")
_FILLER = "so we go on with 123 and 456, step by step; "


@dataclass(frozen=True, slots=True)
class Check:
    """One batch at one context: the step that was measured, and what the fit says of it."""

    batch: int
    context: int
    measured_s: float
    fitted_s: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A timing, and how well it fits what it was made from."""

    timing: Timing
    error: float
    """Median of the residuals, as a share, over stretches of some steps."""
    checks: tuple[Check, ...]
    engine: str
    model: str
    made: str
    took_s: float

    def as_json(self) -> dict[str, object]:
        """The file: the timing, and beside it where it comes from."""
        about = {name: getattr(self, name) for name in ("engine", "model", "made", "error", "took_s")}
        rows = [
            {name: getattr(check, name) for name in ("batch", "context", "measured_s", "fitted_s")}
            for check in self.checks
        ]
        return self.timing.as_json() | about | {"checks": rows}


@dataclass(slots=True)
class _Stream:
    sent_s: float
    marks: list[tuple[float, int]] = field(default_factory=list)
    """When it had how many tokens."""
    prompt: int = 0
    cached: int | None = None


class _Runs:
    """Runs of several streams at once, on a server that should do nothing else."""

    def __init__(self, engine: Engine, can: Capabilities, tokens: int) -> None:
        self._engine = engine
        self._tokens = tokens
        self._extra = {"ignore_eos": True} if engine.name in _KNOWS_IGNORE_EOS else {}
        self._number = 0
        self._exam = Examination(engine, can, 1)

    async def run(self, batch: int, filler: int) -> list[_Stream]:
        """One rollout, then `batch` - 1 more of the same prompt; nobody has seen the prompt before."""
        self._number += 1
        text = f"Case {self._number} {time.time_ns()}. " + _FILLER * (filler // len(_FILLER)) + QUESTION
        begun = asyncio.Event()
        first = asyncio.ensure_future(self._read(text, 0, begun))
        first.add_done_callback(lambda _: begun.set())
        await begun.wait()
        others = [self._read(text, number, asyncio.Event()) for number in range(1, batch)]
        return list(await asyncio.gather(first, *others))

    async def _read(self, text: str, number: int, begun: asyncio.Event) -> _Stream:
        request = Request(
            id=f"{self._exam.name}c{self._number:04d}r{number:04d}.",
            messages=({"role": "user", "content": text},),
            seed=42 + number,
            max_tokens=self._tokens,
            sampling=Sampling(temperature=1.0, extra=self._extra),
        )
        heard = _Stream(time.perf_counter())
        stream = self._engine.stream(request)
        try:
            async for chunk in stream:
                heard.marks.append((time.perf_counter(), chunk.tokens))
                heard.prompt = chunk.prompt_tokens or heard.prompt
                heard.cached = chunk.cached_tokens if chunk.cached_tokens is not None else heard.cached
                begun.set()
        finally:
            await closing(stream)
        return heard

    async def stop_s(self) -> float:
        """From stopping a rollout until its slot is free."""
        told = (await self._exam.abort()).figures.get("seconds")
        return float(told) if isinstance(told, int | float) else 0.0

    async def resumed(self) -> float:
        """Share of a prefix that is found in the cache."""
        figures = (await self._exam.resume()).figures
        cached, prompt = figures.get("cached"), figures.get("prompt")
        return float(cached) / float(prompt) if isinstance(cached, int) and isinstance(prompt, int) and prompt else 0.0


def batches_up_to(most: int) -> list[int]:
    """1, 2, 4, 8, ... and `most`, with steps of a half from 8 on: what is not linear shows there."""
    if most < 1:
        raise ConfigError(f"k is {most}", "At least one rollout is needed.")
    doubling = [1 << at for at in range(most.bit_length())]
    return sorted(
        {size for size in (*doubling, *(3 * size // 2 for size in doubling if size >= 8)) if size <= most} | {most}
    )


def stretches_of(streams: Sequence[_Stream]) -> list[Stretch]:
    """The time in which all streams ran, cut into stretches of some steps."""
    begin = max(stream.marks[0][0] for stream in streams)
    end = min(stream.marks[-1][0] for stream in streams)
    arrivals = sorted((at, which, tokens) for which, stream in enumerate(streams) for at, tokens in stream.marks)
    have, found, batch = [0] * len(streams), [], len(streams)
    since, before = begin, None
    for at, which, tokens in arrivals:
        have[which] = tokens
        if at < begin or at > end:
            continue
        total = sum(have)
        if before is None:
            before, since = total, at
        elif total - before >= _STRETCH * batch:
            held = sum(stream.prompt for stream in streams) + (total + before) / 2
            found.append(Stretch(batch, (total - before) / batch, held, at - since))
            before, since = total, at
    return [each for each in found if each.seconds > 0]


async def calibrate(
    engine: Engine, model: str, batches: Sequence[int], told: Callable[[str], None], *, tokens: int, context: int
) -> Calibration:
    """Measure `batches` at short prompts and at such that, with `tokens` more, end near `context`; then fit.

    The server should be idle. `ConfigError` when its streams are too short or too coarse to be timed.
    """
    if tokens < 2 * _STRETCH:
        raise ConfigError(f"{tokens} tokens are too few to be timed", f"Give --tokens {2 * _STRETCH} or more.")
    began = time.perf_counter()
    can = await engine.capabilities()
    runs = _Runs(engine, can, tokens)
    warm = (await runs.run(1, 0))[0]
    chars_a_token = len(QUESTION) / max(warm.prompt, 1)
    fillers = [0]
    long = (context - tokens - warm.prompt) * chars_a_token if warm.prompt else 0
    if long > len(_FILLER):
        fillers.append(int(long))
    heard: list[list[_Stream]] = []
    for batch in sorted(set(batches)):
        for filler in fillers:
            told(f"{batch} at once" + (f", prompts of about {int(filler / chars_a_token)} tokens" if filler else ""))
            heard += await _tried(runs, batch, filler)
    stretches = [stretch for streams in heard for stretch in stretches_of(streams)]
    if not stretches:
        raise ConfigError(
            "the server's rollouts ended, or came in pieces, before they could be timed",
            "Try a larger --tokens, or a server that streams every token.",
        )
    steps = fit_steps(stretches)
    request_s, prefill_s = _prompts(heard, Timing(knots=steps.knots, kv_s=steps.kv_s))
    timing = Timing(
        knots=steps.knots,
        kv_s=steps.kv_s,
        prefill_s=prefill_s,
        request_s=request_s,
        stop_s=await runs.stop_s(),
        shared=_shared(heard),
        resumed=await runs.resumed() if can.resume else 0.0,
        slots=can.max_parallel,
    )
    return Calibration(
        timing=timing,
        error=steps.error,
        checks=tuple(_checks(stretches, timing)),
        engine=engine.name,
        model=model,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(time.perf_counter() - began, 1),
    )


async def _tried(runs: _Runs, batch: int, filler: int) -> list[list[_Stream]]:
    """Nothing where a long prompt is more than the server takes."""
    try:
        streams = await runs.run(batch, filler)
    except EngineError:
        if not filler:
            raise
        return []
    if any(not stream.marks for stream in streams):
        raise EngineProtocolError("a stream ended without a token")
    return [streams]


def _prompts(heard: Sequence[Sequence[_Stream]], decode: Timing) -> tuple[float, float]:
    """Seconds for each request and for each prompt token that was computed, from the times of first tokens.

    The first stream's prompt is computed alone; the others' all before the last of them has its first token.
    """
    points = []
    for streams in heard:
        for group, running in ((streams[:1], streams[:1]), (streams[1:], streams)):
            if group:
                computed = sum(stream.prompt - (stream.cached or 0) for stream in group)
                wait = max(stream.marks[0][0] for stream in group) - min(stream.sent_s for stream in group)
                step = decode.step_s(len(running), sum(stream.prompt for stream in running))
                points.append((float(computed), max(wait - step, 1e-6)))
    return fit_line(points)


def _shared(heard: Sequence[Sequence[_Stream]]) -> float:
    """What share of its prompt a rollout finds that comes after the first."""
    others = [stream for streams in heard for stream in streams[1:] if stream.cached is not None]
    prompts = sum(stream.prompt for stream in others)
    return min(sum(stream.cached or 0 for stream in others) / prompts, 1.0) if prompts else 0.0


def _checks(stretches: Sequence[Stretch], timing: Timing) -> list[Check]:
    """Measured and fitted steps side by side, by batch and by the quarter of the longest context."""
    longest = max(each.held / each.batch for each in stretches)
    groups: dict[tuple[int, int], list[Stretch]] = {}
    for each in stretches:
        groups.setdefault((each.batch, int(4 * each.held / each.batch / longest)), []).append(each)
    checks = []
    for (batch, _), group in sorted(groups.items()):
        steps = sum(each.steps for each in group)
        fitted = sum(each.steps * timing.step_s(batch, each.held) for each in group) / steps
        context = sum(each.steps * each.held for each in group) / steps / batch
        checks.append(Check(batch, round(context), sum(each.seconds for each in group) / steps, fitted))
    return checks
