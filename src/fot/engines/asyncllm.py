"""vLLM in this process (extra `vllm`): its `AsyncLLM`, asked and stopped by name, with every token's id at hand.

The model itself runs in a process of vLLM's own. Prompts go there as token ids, so a rollout resumes through the prefix
cache, and where each token ends in the text is known however many come at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from fot.engines.base import Chunk, Counters, FinishReason, Request, refuse_taken
from fot.engines.batch import Detokeniser
from fot.engines.local import LocalEngine, prompt_ids
from fot.engines.reading import OPENING, Opening, ends_of, finish_reason, remaining_tokens
from fot.engines.wire import confidence
from fot.errors import ConfigError, EngineRefused, EngineUnavailable, MissingExtra

__all__ = ["AsyncLlm", "Books"]

_ACKNOWLEDGE_S = 2.0


class Books:
    """vLLM's own figures, step by step; made and called by vLLM as one of its loggers."""

    def __init__(self) -> None:
        self.generated_tokens = self.running = self.waiting = 0

    def __call__(self, *_: object, **__: object) -> Books:
        return self

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_: object, **__: object) -> None:
        """One step of the engine."""
        if scheduler_stats is not None:
            self.running, self.waiting = scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs
        if iteration_stats is not None:
            self.generated_tokens += iteration_stats.num_generation_tokens

    def log_engine_initialized(self) -> None:
        """Nothing to say."""

    def log(self) -> None:
        """Nothing to say."""

    def record_sleep_state(self, *_: object, **__: object) -> None:
        """It does not sleep."""

    def record_admission_rejection(self, *_: object, **__: object) -> None:
        """Whoever asked is told."""


class _Run:
    """One rollout at work."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.opening = Opening(is_looked_for=not request.prefix)
        self.speller: Detokeniser | None = None
        self.tokens = self.told = 0
        self.pieces: list[str] = []
        self.confidences: list[float] = []
        self.prompt_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.aborted = asyncio.Event()
        self.over = asyncio.Event()


class AsyncLlm(LocalEngine):
    """Runs `model`, a hub id or a folder, with at most `parallel` rollouts at once and `context` tokens for each.

    `settings` go to vLLM's `AsyncEngineArgs` as they stand. Loaded at the first use.
    """

    name = "asyncllm"

    def __init__(
        self,
        model: str | Path,
        *,
        parallel: int = 32,
        context: int | None = None,
        dtype: str = "auto",
        settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(parallel)
        self._name = str(model)
        self._settings = {"max_model_len": context, "dtype": dtype, **(settings or {})}
        self._books = Books()
        self._engine: Any = None
        self._tokenizer: Any = None
        self._library: Any = None
        self._loading = asyncio.Lock()
        self._runs: dict[str, _Run] = {}
        self._opening = ""

    async def model(self) -> str:
        """What records call the model."""
        return Path(self._name).name if Path(self._name).is_dir() else self._name

    # --- the protocol

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        refuse_taken(request, self._runs)
        if remaining_tokens(request) == 0:
            yield Chunk(text="", tokens=0, finish_reason="length")
            return
        run = self._runs[request.id] = _Run(request)
        try:
            async for chunk in self._chunks(run):
                yield chunk
        finally:
            if run.opening.was_seen:
                self._opening = OPENING
            del self._runs[request.id]
            run.over.set()

    async def abort(self, request_id: str) -> None:
        run = self._runs.get(request_id)
        if run is None or self._engine is None:
            return
        if not run.aborted.is_set():
            run.aborted.set()
            await self._engine.abort(request_id)  # vLLM puts its last word in the stream at once

    async def counters(self) -> Counters:
        await self._loaded()
        # With nothing left to do the engine takes no further step, and its last one may be of before an abort.
        is_idle = not self._engine.get_num_unfinished_requests()
        running, waiting = (0, 0) if is_idle else (self._books.running, self._books.waiting)
        return Counters(generated_tokens=self._books.generated_tokens, running=running, waiting=waiting)

    async def close(self) -> None:
        runs = list(self._runs.items())
        for request_id, _ in runs:
            await self.abort(request_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ACKNOWLEDGE_S):  # a stream that nobody reads does not end
                await asyncio.gather(*(run.over.wait() for _, run in runs))
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(engine.shutdown)

    # --- one rollout

    async def _chunks(self, run: _Run) -> AsyncIterator[Chunk]:
        await self._loaded()
        request = run.request
        ids = prompt_ids(self._tokenizer, request, self._opening)
        run.speller = Detokeniser(self._tokenizer, ids)
        if run.aborted.is_set():
            yield self._last(run, "abort")
            return
        outputs = self._engine.generate({"prompt_token_ids": ids}, self._params(request), request.id)
        finish: str | None = None
        try:
            async for output in outputs:
                run.prompt_tokens, run.cached_tokens = len(ids), output.num_cached_tokens
                finish = output.outputs[0].finish_reason
                chunk = self._chunk(run, output.outputs[0])
                if chunk is not None:
                    yield chunk
                if run.aborted.is_set() and finish is None:
                    break  # it was stopped before the engine knew of it
        except Exception as error:  # whatever vLLM raises belongs to whoever reads the stream
            raise self._failure(error, request) from None
        finally:
            await outputs.aclose()
        yield self._last(run, "abort" if finish is None else finish_reason(finish))

    def _chunk(self, run: _Run, told: Any) -> Chunk | None:
        """The chunk of one output; None while its text is held back, and then its tokens belong to the next text."""
        run.tokens += len(told.token_ids)
        if run.speller is not None:
            run.pieces += [run.speller.push(token) for token in told.token_ids]
        run.confidences += _confidences(told.logprobs, run.request.logprobs)
        text = run.opening.take(told.text)
        if not text:
            return None
        new, run.told = run.tokens - run.told, run.tokens
        pieces, run.pieces = run.pieces, []
        confidences, run.confidences = tuple(run.confidences), []
        return Chunk(
            text=text,
            tokens=run.tokens,
            ends=_ends(text, pieces, new),
            confidences=confidences,
            prompt_tokens=run.prompt_tokens,
            cached_tokens=run.cached_tokens,
        )

    def _last(self, run: _Run, reason: FinishReason) -> Chunk:
        return Chunk(
            text=run.opening.rest(),
            tokens=run.tokens,
            finish_reason=reason,
            prompt_tokens=run.prompt_tokens,
            cached_tokens=run.cached_tokens,
        )

    def _params(self, request: Request) -> Any:
        sampling = request.sampling
        asked: dict[str, object] = {
            **sampling.drawn,
            "seed": request.seed,
            "logprobs": request.logprobs or None,
        }
        known = {key: value for key, value in asked.items() if value is not None}
        known["max_tokens"] = remaining_tokens(request)  # none as well: vLLM's own default is 16
        known |= {key: value for key, value in sampling.extra.items() if key != "chat_template_kwargs"}
        try:
            kind = self._library.sampling_params.RequestOutputKind.DELTA
            return self._library.SamplingParams(**known, output_kind=kind)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"vLLM does not take this sampling: {error}") from None

    def _failure(self, error: Exception, request: Request) -> EngineUnavailable | EngineRefused:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if kinds & {"ValueError", "VLLMClientError"}:
            return EngineRefused(f"vLLM refuses the request: {error}", status=400, request_id=request.id)
        return EngineUnavailable(f"vLLM failed: {str(error) or type(error).__name__}", request_id=request.id)

    # --- the model

    async def _loaded(self) -> None:
        async with self._loading:
            if self._engine is not None:
                return
            try:
                self._library = import_module("vllm")
                engines = import_module("vllm.v1.engine.async_llm")
            except ImportError:
                raise MissingExtra("vllm") from None
            given = {key: value for key, value in self._settings.items() if value is not None}
            try:
                args = self._library.AsyncEngineArgs(model=self._name, max_num_seqs=self._parallel, **given)
                # On the event loop: the engine ties itself to the one that it is made in.
                self._engine = engines.AsyncLLM.from_engine_args(args, stat_loggers=[self._books])
            except (OSError, RuntimeError, TypeError, ValueError) as error:
                raise ConfigError(
                    f"vLLM cannot run '{self._name}': {error}", "Name a hub id or a model's folder."
                ) from None
            self._tokenizer = self._engine.get_tokenizer()


def _ends(text: str, pieces: Sequence[str], new_tokens: int) -> tuple[int, ...]:
    """Where the tokens of a chunk end, when that is certain."""
    if len(pieces) != new_tokens or "".join(pieces) != text:
        return ends_of(text, new_tokens)
    ends, at = [], 0
    for piece in pieces:
        at += len(piece)
        ends.append(at)
    return tuple(ends)


def _confidences(logprobs: Any, alternatives: int) -> tuple[float, ...]:
    """The confidence of each token of a chunk."""
    tops = [sorted((told.logprob for told in top.values()), reverse=True) for top in logprobs or ()]
    return tuple(confidence(top[:alternatives]) for top in tops if top)
