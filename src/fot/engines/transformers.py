"""transformers in this process (extra `transformers`): one batch in which rollouts step together, a true barrier.

A rollout that is stopped leaves the batch at once, and its keys and values with it; one that waits at a checkpoint
stands beside the batch and costs nothing but its memory. One thread of ours does all the computing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from fot.engines.base import Chunk, Counters, Request, refuse_taken
from fot.engines.batch import Batch, Detokeniser, Row
from fot.engines.local import LocalEngine, prompt_ids
from fot.engines.reading import OPENING, Opening, ends_of, remaining_tokens
from fot.errors import ConfigError, EngineError, EngineUnavailable, MissingExtra

__all__ = ["Transformers"]

_ACKNOWLEDGE_S = 60.0


class _Run:
    """One rollout at work. The thread computes; `chunks` and `ready` belong to the event loop."""

    def __init__(self, request: Request, most: int | None) -> None:
        self.request = request
        self.most = most
        self.hold = request.hold_at
        self.row: Row | None = None
        self.speller: Detokeniser | None = None
        self.opening = Opening(is_looked_for=not request.prefix)
        self.told = 0
        self.cached = 0
        self.is_aborted = self.is_over = False
        self.chunks: deque[Chunk | EngineError] = deque()
        self.ready = asyncio.Event()
        self.over = asyncio.Event()

    @property
    def is_held(self) -> bool:
        return self.hold is not None and self.row is not None and self.row.new_tokens >= self.hold


class Transformers(LocalEngine):
    """Runs `model`, a hub id or a folder, with at most `parallel` rollouts in the batch. It is a `BarrierEngine`.

    `device` and `dtype` are torch's names for them; without one, a GPU if torch sees it. `threads` is set for all of
    torch in this process. Loaded at the first use. Stop strings are not known here.
    """

    name = "transformers"
    has_barrier = True

    def __init__(
        self,
        model: str | Path,
        *,
        parallel: int = 32,
        device: str | None = None,
        dtype: str = "auto",
        threads: int | None = None,
    ) -> None:
        super().__init__(parallel)
        self._name, self._device, self._dtype = str(model), device, dtype
        self._threads = threads
        self._tokenizer: Any = None
        self._batch: Batch | None = None
        self._ends: frozenset[int] = frozenset()
        self._context: int | None = None
        self._generated = 0
        self._opening = ""
        self._runs: dict[str, _Run] = {}
        self._waiting: list[_Run] = []
        self._active: list[_Run] = []
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loading = asyncio.Lock()

    # --- the protocol

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        refuse_taken(request, self._runs)
        if request.sampling.stop:
            raise ConfigError("the transformers engine knows no stop strings", "Leave `stop` away.")
        most = remaining_tokens(request)
        if most == 0:
            yield Chunk(text="", tokens=0, finish_reason="length")
            return
        run = self._runs[request.id] = _Run(request, most)
        try:
            await self._loaded()
            self._orders.put(lambda: self._waiting.append(run))
            while (chunk := await _next(run)) is not None:
                if isinstance(chunk, EngineError):
                    raise chunk
                yield chunk
        finally:
            if run.opening.was_seen:
                self._opening = OPENING
            await asyncio.shield(asyncio.ensure_future(self._leave(request.id, run)))

    async def abort(self, request_id: str) -> None:
        run = self._runs.get(request_id)
        if run is not None:
            await self._stop(run)

    def advance(self, request_id: str, hold_at: int | None) -> None:
        run = self._runs.get(request_id)
        if run is not None:
            self._orders.put(lambda: setattr(run, "hold", hold_at))

    async def counters(self) -> Counters:
        waiting = len(self._waiting)
        return Counters(generated_tokens=self._generated, running=len(self._runs) - waiting, waiting=waiting)

    async def close(self) -> None:
        for run in list(self._runs.values()):
            await self._stop(run)
        thread, self._thread = self._thread, None
        if thread is not None:
            self._orders.put(None)
            await asyncio.to_thread(thread.join)
        self._batch = None

    @property
    def batch_rows(self) -> int:
        """Rollouts whose keys and values are in the batch right now."""
        return len(self._batch.rows) if self._batch is not None else 0

    async def _stop(self, run: _Run) -> None:
        if run.is_over or self._thread is None:
            return
        self._orders.put(lambda: setattr(run, "is_aborted", True))
        try:
            async with asyncio.timeout(_ACKNOWLEDGE_S):
                await run.over.wait()
        except TimeoutError:
            return

    async def _leave(self, request_id: str, run: _Run) -> None:
        await self._stop(run)
        self._runs.pop(request_id, None)

    # --- the model

    async def _loaded(self) -> None:
        async with self._loading:
            self._loop = asyncio.get_running_loop()
            if self._thread is not None:
                return
            await asyncio.to_thread(self._load)
            self._thread = Thread(target=self._work, name="fot-transformers", daemon=True)
            self._thread.start()

    def _load(self) -> None:
        try:
            torch, library = import_module("torch"), import_module("transformers")
        except ImportError:
            raise MissingExtra("transformers") from None
        if self._threads is not None:
            torch.set_num_threads(self._threads)
        library.utils.logging.disable_progress_bar()
        try:
            self._tokenizer = library.AutoTokenizer.from_pretrained(self._name)
            model = library.AutoModelForCausalLM.from_pretrained(self._name, dtype=self._dtype)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"'{self._name}' cannot be loaded: {error}", "Name a hub id or a model's folder."
            ) from None
        device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._batch = Batch(model.to(device).eval())
        told = model.generation_config.eos_token_id
        ends = {self._tokenizer.eos_token_id, *(told if isinstance(told, list) else [told])}
        self._ends = frozenset(end for end in ends if end is not None)
        self._context = getattr(model.config, "max_position_embeddings", None)

    def _row(self, request: Request) -> Row:
        ids = prompt_ids(self._tokenizer, request, self._opening)
        generator = import_module("torch").Generator()
        if request.seed is not None:
            # The rest of a rollout is drawn with other numbers than its beginning was.
            generator.manual_seed(request.seed + 1_000_003 * request.prefix_tokens)
        else:
            generator.seed()
        return Row(ids, len(ids), request.sampling, generator, request.logprobs)

    # --- the thread

    def _work(self) -> None:
        batch = self._batch
        if batch is None:
            return
        while True:
            if not self._obey(is_idle=not (batch.rows or self._can_move())):
                return
            try:
                self._move(batch)
                if batch.rows:
                    batch.step()
                    self._generated += len(batch.rows)
                    self._tell_all(batch)
            except Exception as error:  # out of memory, most likely: it belongs to whoever reads the streams
                self._fail(batch, error)

    def _obey(self, *, is_idle: bool) -> bool:
        """Carry out what the event loop has ordered, waiting for it when there is nothing else to do."""
        while is_idle or not self._orders.empty():
            order = self._orders.get()
            if order is None:
                return False
            order()
            is_idle = False
        return True

    def _can_move(self) -> bool:
        return bool(self._waiting) or any(run.is_aborted or not run.is_held for run in self._active)

    def _move(self, batch: Batch) -> None:
        """Let rows leave the batch, stand aside, come back and come in."""
        for run in [*self._waiting, *self._active]:
            if run.is_aborted:
                self._end(batch, run, "abort")
        held = [run.row for run in self._active if run.is_held]
        batch.leave([row for row in batch.rows if row in held], keep=True)
        for run in self._active:
            if run.row is not None and not run.is_held and run.row not in batch.rows:
                batch.join(run.row)
        while self._waiting and len(self._active) < self._parallel:
            self._begin(batch, self._waiting.pop(0))

    def _begin(self, batch: Batch, run: _Run) -> None:
        self._active.append(run)
        run.row = self._row(run.request)
        if self._context is not None:
            room = max(0, self._context - len(run.row.ids))
            run.most = room if run.most is None else min(run.most, room)
            if room == 0:
                self._end(batch, run, "length")
                return
        run.speller = Detokeniser(self._tokenizer, run.row.ids)
        run.cached = batch.prefill(run.row)
        if not run.is_held:
            batch.join(run.row)

    def _tell_all(self, batch: Batch) -> None:
        for run in list(self._active):
            if run.row is None or run.speller is None or run.row not in batch.rows:
                continue
            token = run.row.ids[-1]
            is_end = token in self._ends and not run.request.sampling.extra.get("ignore_eos")
            text = "" if is_end else run.opening.take(run.speller.push(token))
            if text:
                self._send(run, self._chunk(run, text))
            if is_end:
                self._end(batch, run, "stop")
            elif run.row.new_tokens == run.most:
                self._end(batch, run, "length")

    def _chunk(self, run: _Run, text: str) -> Chunk:
        row = run.row
        if row is None:
            raise RuntimeError("a chunk of a rollout that has not begun")
        new, run.told = row.new_tokens - run.told, row.new_tokens
        return Chunk(
            text=text,
            tokens=row.new_tokens,
            ends=ends_of(text, new),
            confidences=() if row.confidence is None else (row.confidence,),
            prompt_tokens=row.prompt_tokens,
            cached_tokens=run.cached,
        )

    def _end(self, batch: Batch, run: _Run, reason: Any) -> None:
        if run in self._waiting:
            self._waiting.remove(run)
        if run in self._active:
            self._active.remove(run)
        row = run.row
        if row is not None and row in batch.rows:
            batch.leave([row], keep=False)
        text = "" if run.speller is None else run.opening.take(run.speller.rest()) + run.opening.rest()
        self._send(
            run,
            Chunk(
                text=text,
                tokens=0 if row is None else row.new_tokens,
                finish_reason=reason,
                prompt_tokens=None if row is None else row.prompt_tokens,
                cached_tokens=run.cached,
            ),
            is_last=True,
        )

    def _fail(self, batch: Batch, error: Exception) -> None:
        batch.leave(list(batch.rows), keep=False)
        for run in [*self._waiting, *self._active]:
            self._send(
                run,
                EngineUnavailable(f"the transformers engine failed: {error}", request_id=run.request.id),
                is_last=True,
            )
        self._waiting.clear()
        self._active.clear()

    def _send(self, run: _Run, chunk: Chunk | EngineError, *, is_last: bool = False) -> None:
        run.chunks.append(chunk)
        run.is_over = run.is_over or is_last
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(_wake, run)
        except RuntimeError:  # the loop was closed without us: nobody listens
            run.is_aborted = True


def _wake(run: _Run) -> None:
    run.ready.set()
    if run.is_over:
        run.over.set()


async def _next(run: _Run) -> Chunk | EngineError | None:
    while not run.chunks:
        if run.is_over:
            return None
        run.ready.clear()
        if not (run.chunks or run.is_over):
            await run.ready.wait()
    return run.chunks.popleft()
