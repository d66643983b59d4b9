"""What the live commands share: how an engine is named, how tokens are drawn, and how Ctrl-C is met."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cyclopts import Parameter

from fot.errors import UsageError

if TYPE_CHECKING:
    from fot.engines.base import Engine, Sampling
    from fot.online.api import Options

__all__ = ["DrawFlags", "EngineFlags", "on_interrupt"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EngineFlags:
    """Where rollouts come from.

    Parameters
    ----------
    engine
        Name of an engine: embedded, transformers or asyncllm (vLLM) run a model here; llamacpp, vllm, sglang and
        openai are kinds of server behind the base URL; scripted plays a pool.
    base_url
        A server's URL. Without it, and without an engine, the model in the box is used.
    model
        Name of the model at the server; for embedded a GGUF file, for transformers and asyncllm a folder, or a hub id;
        for scripted the pool.
    api_key
        The server's key. Better kept in OPENAI_API_KEY.
    """

    engine: str | None = None
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None

    @property
    def name(self) -> str:
        """What `fot.connect` is to be given."""
        if self.base_url is None:
            return self.engine or "embedded"
        if self.engine in (None, "auto"):
            return self.base_url
        if self.engine in ("asyncllm", "embedded", "transformers", "scripted"):
            raise UsageError(f"engine '{self.engine}' runs here and has no --base-url", "Give one or the other.")
        return f"{self.engine}+{self.base_url}"

    def options(self) -> Options:
        """As options of `fot.solve`."""
        chosen: Options = {"engine": self.name}
        if self.name == "scripted":
            return {"engine": _scripted(self.model)}
        if self.model is not None:
            chosen["model"] = self.model
        if self.api_key is not None:
            chosen["api_key"] = self.api_key
        return chosen


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DrawFlags:
    """How tokens are drawn. What is not given is the engine's own default.

    Parameters
    ----------
    temperature
        Sampling temperature.
    top_p
        Nucleus sampling.
    top_k
        The most likely tokens only.
    min_p
        Tokens at least this likely beside the likeliest.
    max_tokens
        Cap on each rollout.
    seed
        Seed of rollout 0; the next ones count up.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = None
    seed: int = 42

    def sampling(self) -> Sampling:
        """As the engines take it."""
        from fot.engines.base import Sampling

        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            max_tokens=self.max_tokens,
        )


def _scripted(pool: str | None) -> Engine:
    """A pool as a live engine; rollouts in their order, whatever their seeds were."""
    from fot.engines.scripted import Scripted
    from fot.pools.read import Pool

    if pool is None:
        raise UsageError("engine 'scripted' plays a pool", "Name it with --model POOL.")
    return Scripted(Pool.open(pool))


@contextmanager
def on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first Ctrl-C (or SIGTERM) within the block; a second Ctrl-C interrupts as ever."""
    loop = asyncio.get_running_loop()

    def met() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        stop()

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, met)
    except (NotImplementedError, RuntimeError, ValueError):  # no signals here: not the main thread, or Windows
        yield
        return
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
