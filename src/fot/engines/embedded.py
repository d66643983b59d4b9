"""llama.cpp inside this process (extra `embedded`): any GGUF, and the reasoner in the box where none is named.

The engine's own threads generate; one thread of ours for each rollout waits for its tokens without holding the
interpreter, and hands them to the event loop, which never waits for either.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from fot.engines.base import Chunk, Counters, Request, Sampling, refuse_taken
from fot.engines.llamacpp import LlamaCpp
from fot.engines.local import LocalEngine
from fot.engines.reading import OPENING, ChunkReader, remaining_tokens
from fot.errors import ConfigError, EngineUnavailable, MissingExtra

__all__ = ["Embedded", "server_params"]

_ACKNOWLEDGE_S = 30.0  # a batch of prompts on a busy processor may take long
_CONTEXT = 2048
_SMALL_BYTES = 32_000_000


def server_params(model: str | Path, slots: int, context: int, threads: int | None = None) -> Any:
    """What llama.cpp's server in this process starts with: `context` tokens for each slot, quiet, its books open."""
    params = _xllamacpp().CommonParams()
    params.model.path = str(model)
    params.n_parallel, params.n_ctx, params.kv_unified = slots, slots * context, False
    params.warmup, params.verbosity = False, -1
    params.endpoint_slots = params.endpoint_metrics = True
    if threads is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    return params


def _xllamacpp() -> Any:
    try:
        return import_module("xllamacpp")
    except ImportError:
        raise MissingExtra("embedded") from None


class _Run:
    """One rollout at work. `take` is called by its thread, everything else by the event loop."""

    def __init__(self, engine: Embedded) -> None:
        self._engine = engine
        self.events: deque[bytes] = deque()
        self.ready = asyncio.Event()
        self.is_admitted = self.is_aborted = self.is_over = False
        self.thread: Future[None] | None = None
        self.error: Exception | None = None

    def take(self, event: bytes) -> bool:
        """One event of the engine; true asks it to stop."""
        self.events.append(event)
        return not self._engine.signal(self) or self.is_aborted

    def generate(self, server: Any, body: bytes) -> None:
        """The life of the thread."""
        try:
            server.handle_completions(body, self.take)
        except Exception as error:  # whatever it is, it belongs to whoever reads the stream
            self.error = error
        finally:
            self.is_over = True
            self._engine.signal(self)


class Embedded(LocalEngine):
    """Runs `model` with `parallel` rollouts at once, each with `context` tokens; further ones wait for their turn.

    `model` is a path to a GGUF file, or a hub id `owner/repository[:file]` (extra `hub`); None is the built-in
    reasoner, sampled as its model card says where a request does not say otherwise. Loaded at the first use.
    """

    name = "embedded"

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        parallel: int = 32,
        context: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(parallel)
        self._model = model
        self._context = context
        self._threads = threads
        self._sampling = Sampling()
        self._server: Any = None
        self._http: LlamaCpp | None = None
        self._executor: ThreadPoolExecutor | None = None
        self._loading = asyncio.Lock()
        self._runs: dict[str, _Run] = {}
        self._queue: list[_Run] = []
        self._fresh: deque[_Run] = deque()
        self._is_signalled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = ""

    @property
    def is_reasoner(self) -> bool:
        """Is it the model in the box?"""
        return self._model is None

    async def model(self) -> str:
        """What records call the model."""
        from fot.reasoner import MODEL_NAME

        return MODEL_NAME if self._model is None else Path(str(self._model)).name

    # --- the protocol

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        refuse_taken(request, self._runs)
        run = self._runs[request.id] = _Run(self)
        reader = ChunkReader(request)
        try:
            if remaining_tokens(request) == 0:
                yield Chunk(text="", tokens=0, finish_reason="length")
                return
            body = await self._body(request)
            await self._admit(run)
            if not run.is_aborted:
                self._start(run, body)
            while (event := await _next(run)) is not None:
                for chunk in reader.feed(event):
                    yield chunk
            if run.error is not None:
                raise EngineUnavailable(f"the embedded engine failed: {run.error}", request_id=request.id)
            yield reader.last(is_cut=run.is_aborted)
        finally:
            if reader.opening.was_seen:
                self._opening = OPENING
            await asyncio.shield(asyncio.ensure_future(self._leave(request.id, run)))

    async def abort(self, request_id: str) -> None:
        run = self._runs.get(request_id)
        if run is None or run.is_over:
            return
        run.is_aborted = True
        run.ready.set()
        await _ended(run)

    async def counters(self) -> Counters | None:
        """The engine's own books. The token underway when a rollout is stopped is in them, and in no chunk."""
        return await (await self._loaded()).counters()

    async def close(self) -> None:
        for request_id in list(self._runs):
            await self.abort(request_id)
        http, self._http = self._http, None
        if http is not None:
            await http.close()
        executor, self._executor = self._executor, None
        if executor is not None:
            await asyncio.to_thread(executor.shutdown)
        server, self._server = self._server, None
        if server is not None:
            # Its end waits for its threads; the last reference goes with the one that is handed over here.
            holder = [server]
            del server
            await asyncio.to_thread(holder.clear)

    # --- threads

    def signal(self, run: _Run) -> bool:
        """Tell the event loop, from any thread, that a run has something new; False when nobody listens any more."""
        self._fresh.append(run)
        if self._is_signalled:  # one call wakes the loop for all that has come by then
            return True
        self._is_signalled = True
        try:
            if self._loop is None:
                return False
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:  # the loop was closed without us
            return False
        return True

    def _deliver(self) -> None:
        self._is_signalled = False
        while self._fresh:
            self._fresh.popleft().ready.set()

    def _start(self, run: _Run, body: bytes) -> None:
        if self._executor is None:
            raise EngineUnavailable("the embedded engine has been closed")
        run.thread = self._executor.submit(run.generate, self._server, body)

    async def _admit(self, run: _Run) -> None:
        if self._working() < self._parallel:
            run.is_admitted = True
            return
        self._queue.append(run)
        while not (run.is_admitted or run.is_aborted):
            run.ready.clear()
            await run.ready.wait()

    async def _leave(self, request_id: str, run: _Run) -> None:
        run.is_aborted = True
        await _ended(run)
        self._runs.pop(request_id, None)
        if run in self._queue:
            self._queue.remove(run)
        while self._queue and self._working() < self._parallel:
            following = self._queue.pop(0)
            following.is_admitted = True
            following.ready.set()

    def _working(self) -> int:
        return sum(run.is_admitted for run in self._runs.values())

    # --- requests

    async def _body(self, request: Request) -> bytes:
        http = await self._loaded()
        asked, default = request.sampling, self._sampling
        most = remaining_tokens(request)
        if most is None and default.max_tokens is not None:
            most = max(1, default.max_tokens - request.prefix_tokens)
        body: dict[str, object] = {
            "prompt": await self._prompt(http, request),
            "stream": True,
            "timings_per_token": True,
            "return_progress": True,
            "cache_prompt": True,
            "max_tokens": -1 if most is None else most,
            **(default.drawn | asked.drawn),
            "seed": request.seed,
            "logprobs": request.logprobs or None,
        }
        return msgspec.json.encode({key: value for key, value in body.items() if value is not None} | dict(asked.extra))

    async def _prompt(self, http: LlamaCpp, request: Request) -> str:
        prompt = await http.render(request)
        return prompt + self._opening + request.prefix if request.prefix else prompt

    # --- the model

    async def _loaded(self) -> LlamaCpp:
        """The engine's own small server, which answers what has no call of its own; loads the model at first."""
        async with self._loading:
            self._loop = asyncio.get_running_loop()
            if self._http is None:
                key = secrets.token_hex(16)
                self._server = await asyncio.to_thread(self._load, key)
                self._executor = ThreadPoolExecutor(self._parallel, thread_name_prefix="fot-embedded")
                self._http = LlamaCpp(self._server.listening_address, api_key=key, model="embedded")
            return self._http

    def _load(self, key: str) -> Any:
        library = _xllamacpp()
        path, context = self._weights()
        # Threads of a small model wait for each other more than they work; on a busy machine they do nothing else.
        threads = self._threads or (1 if path.stat().st_size < _SMALL_BYTES else None)
        params = server_params(path, self._parallel, self._context or context, threads)
        params.api_keys = [key]
        try:
            return library.Server(params)
        except Exception as error:  # the binding raises what it likes
            raise EngineUnavailable(f"the model {path.name} cannot be loaded: {error}") from None

    def _weights(self) -> tuple[Path, int]:
        """Where the weights lie, and the context that a rollout gets."""
        if self._model is None:
            from fot import reasoner

            self._sampling = Sampling(**asdict(reasoner.SAMPLING))
            path, context = reasoner.model_path(), reasoner.CONTEXT_TOKENS
        else:
            path, context = _found(str(self._model)), _CONTEXT
        if not path.is_file():
            raise ConfigError(f"there is no model at {path}", "Name a GGUF file, or a hub id owner/repository:file.")
        return path, context


async def _next(run: _Run) -> bytes | None:
    """What the thread hands over next; None at its end. What came before an abort comes all the same."""
    while not run.events:
        is_over = run.is_over or run.thread is None
        if is_over and not run.events:  # the thread's last event comes before its end is told
            return None
        run.ready.clear()
        if not (run.events or run.is_over):
            await run.ready.wait()
    return run.events.popleft()


async def _ended(run: _Run) -> None:
    """Waits, within bounds, until the thread of a run that was told to stop has done so."""
    if run.thread is None:
        return
    await asyncio.wait([asyncio.wrap_future(run.thread)], timeout=_ACKNOWLEDGE_S)


def _found(name: str) -> Path:
    """The file of that path, or of that hub id."""
    path = Path(name).expanduser()
    repository, _, file = name.partition(":")
    is_hub_id = repository.count("/") == 1 and name[0] not in "/.~" and not repository.endswith(".gguf")
    if path.exists() or not is_hub_id:
        return path
    try:
        from huggingface_hub import hf_hub_download, list_repo_files
    except ImportError:
        raise MissingExtra("hub") from None
    files = [file] if file else [f for f in list_repo_files(repository) if f.endswith(".gguf")]
    if len(files) != 1:
        raise ConfigError(f"{repository} holds {len(files)} GGUF files", "Name one of them: owner/repository:file.")
    return Path(hf_hub_download(repository, files[0]))
