"""As much of vLLM as the adapter of its `AsyncLLM` touches: letters at random, one or two at a time, a step for all."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

LONGEST = 300


class Kind(Enum):
    CUMULATIVE = 0
    DELTA = 1


@dataclass(kw_only=True)
class SamplingParams:
    max_tokens: int | None = 16
    temperature: float = 1.0
    seed: int | None = None
    logprobs: int | None = None
    ignore_eos: bool = False
    output_kind: Kind = Kind.CUMULATIVE


@dataclass
class AsyncEngineArgs:
    model: str
    max_num_seqs: int
    dtype: str = "auto"


class Tokenizer:
    """Every character is a token; the first one of a text is preceded by a begin token, where wanted."""

    def __call__(self, text: str, add_special_tokens: bool = True) -> Any:
        return SimpleNamespace(input_ids=[1] * add_special_tokens + [ord(letter) for letter in text])

    def apply_chat_template(self, messages: list[dict[str, str]], **_: object) -> str:
        return "".join(message["content"] for message in messages) + "\n"

    def decode(self, ids: list[int], **_: object) -> str:
        return "".join(chr(id) for id in ids if id > 1)


@dataclass
class Work:
    """One request."""

    params: SamplingParams
    rng: Random
    prompt: int
    tokens: int = 0
    is_aborted: bool = False
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class AsyncLLM:
    def __init__(self, books: Any, room: int) -> None:
        self.books, self.room = books, room
        self.works: dict[str, Work] = {}

    @classmethod
    def from_engine_args(cls, args: AsyncEngineArgs, stat_loggers: list[Any]) -> AsyncLLM:
        return cls(stat_loggers[0](None, 0), args.max_num_seqs)

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer()

    def get_num_unfinished_requests(self) -> int:
        return len(self.works)

    async def abort(self, request_id: str) -> None:
        if request_id in self.works:
            self.works[request_id].is_aborted = True

    def shutdown(self) -> None:
        self.works.clear()

    async def generate(self, prompt: Any, params: SamplingParams, request_id: str) -> AsyncIterator[Any]:
        ids = prompt["prompt_token_ids"]
        if len(ids) > 4000:
            raise ValueError("the prompt is too long")
        work = self.works[request_id] = Work(params, Random(f"{params.seed}/{len(ids)}"), len(ids))
        try:
            finish = None
            while finish is None:
                await asyncio.sleep(0.001)
                yield (output := self._step(work))
                finish = output.outputs[0].finish_reason
        finally:
            self.works.pop(request_id, None)

    def _step(self, work: Work) -> Any:
        most = LONGEST if work.params.max_tokens is None else work.params.max_tokens
        new = 0 if work.is_aborted else min(work.rng.randint(1, 2), most - work.tokens)
        work.tokens += new
        ids = [work.rng.choice(range(97, 123)) for _ in range(new)]
        finish = "abort" if work.is_aborted else "length" if work.tokens == most else None
        self.books.record(
            SimpleNamespace(num_running_reqs=len(self.works), num_waiting_reqs=0),
            SimpleNamespace(num_generation_tokens=new),
        )
        told = {97 + at: SimpleNamespace(logprob=-0.5 - at) for at in range(work.params.logprobs or 0)}
        said = SimpleNamespace(
            text=Tokenizer().decode(ids),
            token_ids=ids,
            finish_reason=finish,
            logprobs=[told] * new if told else None,
        )
        return SimpleNamespace(outputs=[said], num_cached_tokens=work.prompt // 16 * 16)


@contextmanager
def installed() -> Iterator[None]:
    """`import vllm` finds this."""
    package, engines = ModuleType("vllm"), ModuleType("vllm.v1.engine.async_llm")
    package.SamplingParams, package.AsyncEngineArgs = SamplingParams, AsyncEngineArgs  # type: ignore[attr-defined]
    package.sampling_params = SimpleNamespace(RequestOutputKind=Kind)  # type: ignore[attr-defined]
    engines.AsyncLLM = AsyncLLM  # type: ignore[attr-defined]
    fakes = {"vllm": package, "vllm.v1": ModuleType("vllm.v1"), "vllm.v1.engine": ModuleType("vllm.v1.engine")}
    fakes["vllm.v1.engine.async_llm"] = engines
    before = {name: sys.modules.get(name) for name in fakes}
    sys.modules.update(fakes)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
