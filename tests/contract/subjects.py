"""The engines under contract, each brought up around a test and taken down after it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fot.core.rollout import Rollout
from fot.engines import connect
from fot.engines.asyncllm import AsyncLlm
from fot.engines.base import Chunk, Engine, Request, Sampling
from fot.engines.dialects import Dialect
from fot.engines.embedded import Embedded, server_params
from fot.engines.llamacpp import LlamaCpp
from fot.engines.openai import OpenAICompatible
from fot.engines.scripted import Pace, Scripted
from fot.engines.scripted_server import ScriptedServer
from fot.engines.sglang import Sglang
from fot.engines.tape import TAG
from fot.engines.transformers import Transformers
from fot.engines.vllm import Vllm
from fot.reasoner import model_path
from tests.contract import fake_vllm

PROBLEM = "How many legs do three spiders have?"
ENGINES: dict[Dialect, type[OpenAICompatible]] = {
    "openai": OpenAICompatible,
    "vllm": Vllm,
    "sglang": Sglang,
    "llamacpp": LlamaCpp,
}


@dataclass
class Subject:
    """An engine and how to ask it. `texts` are what rollouts must say, where that is known beforehand."""

    engine: Engine
    prompt: str | None = None
    texts: Sequence[str] = ()
    ask: dict[str, object] = field(default_factory=dict)
    script: Scripted | None = None
    """The scripted engine behind it all, if any: it knows what is truly underway."""
    server: ScriptedServer | None = None

    def request(self, number: int = 0, name: str | None = None, **more: object) -> Request:
        """Rollout `number` of the problem."""
        told = (
            {"prompt": self.prompt} if self.prompt is not None else {"messages": [{"role": "user", "content": PROBLEM}]}
        )
        return Request(id=name or f"r{number:03d}.", seed=42 + number, **{**told, **self.ask, **more})  # type: ignore[arg-type]

    async def running(self) -> int:
        """How many requests the engine itself says are underway."""
        counters = await (self.script or self.engine).counters()
        assert counters is not None
        return (counters.running or 0) + (counters.waiting or 0)


Make = Callable[[], AbstractAsyncContextManager[Subject]]


STOPPED = (1, 4)
"""Rollouts that tests stop: long enough to be still underway by then on a busy machine."""


def recorded(number: int) -> Rollout:
    """A rollout whose tag is a token of its own; the numbers make the texts differ."""
    thought = f"Wait, a spider has eight legs, says rollout {number}. " * (40 if number in STOPPED else 3 + number % 5)
    text = f"{thought}{TAG}So it is \\boxed{{24}}. Ünï…{number}"
    ends, at = [], 0
    while at < len(text):
        tag = text.find(TAG, at)
        at = at + len(TAG) if tag == at else min(at + 4, tag if tag > at else len(text))
        ends.append(at)
    return Rollout(
        model="m",
        benchmark="b",
        problem_id="spiders",
        rollout_id=number,
        problem=PROBLEM,
        text=text,
        token_ends=ends,
        n_tokens=len(ends),
        finish_reason="stop",
        prompt_tokens=11,
    )


ROLLOUTS = [recorded(number) for number in range(40)]
PACE = Pace(chunk_tokens=3, turns=2)
PACE_OVER_HTTP = Pace(chunk_tokens=3, turns=2, token_s=0.002)


def joined(chunks: Sequence[Chunk], before: str = "") -> str:
    """The text as `Chunk` says that it is put together, going on from `before`."""
    text, is_thinking = before, bool(before) and TAG not in before
    for chunk in chunks:
        if chunk.channel == "content" and is_thinking and any(c.channel == "reasoning" for c in chunks):
            text += TAG
        is_thinking = chunk.channel == "reasoning"
        text += chunk.text
    return text.removeprefix(before)


def scripted(*, is_split: bool = False) -> Make:
    @asynccontextmanager
    async def make() -> AsyncIterator[Subject]:
        engine = Scripted(ROLLOUTS, pace=PACE, is_split=is_split)
        yield Subject(engine, PROBLEM, [r.text for r in ROLLOUTS], script=engine)
        await engine.close()

    return make


def over_http(dialect: Dialect, *, as_chat: bool, is_split: bool = False, **options: object) -> Make:
    @asynccontextmanager
    async def make() -> AsyncIterator[Subject]:
        script = Scripted(ROLLOUTS, pace=PACE_OVER_HTTP, is_split=is_split)
        async with ScriptedServer(script, dialect, **options) as server:  # type: ignore[arg-type]
            engine = ENGINES[dialect](server.url, silence_s=60.0)
            prompt = None if as_chat else PROBLEM
            yield Subject(engine, prompt, [r.text for r in ROLLOUTS], script=script, server=server)
            await engine.close()

    return make


IGNORE_EOS = Sampling(extra={"ignore_eos": True})
"""Real models stop when they like; a rollout that a test stops must still be underway."""


def weights() -> str:
    """Some small model: the one in FOT_TEST_GGUF, else the reasoner in the box."""
    path = os.environ.get("FOT_TEST_GGUF") or str(model_path())
    if not Path(path).exists():
        pytest.skip(f"no model at {path}")
    return path


def embedded() -> Make:
    @asynccontextmanager
    async def make() -> AsyncIterator[Subject]:
        pytest.importorskip("xllamacpp")
        engine = Embedded(weights(), parallel=8, context=1024, threads=1)
        yield Subject(engine, ask={"sampling": IGNORE_EOS})
        await engine.close()

    return make


def llama_server() -> Make:
    """A llama.cpp server on loopback, started for the test."""

    @asynccontextmanager
    async def make() -> AsyncIterator[Subject]:
        xllamacpp = pytest.importorskip("xllamacpp")
        server = await asyncio.to_thread(xllamacpp.Server, server_params(weights(), 8, 1024, threads=1))
        engine = await connect(server.listening_address)
        assert engine.name == "llamacpp"
        yield Subject(engine, ask={"sampling": IGNORE_EOS})
        await engine.close()

    return make


def random_llama(folder: Path) -> Path:
    """A model of no sense at all, with a tokenizer that knows ASCII and cuts at every character."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    torch.set_num_threads(1)
    spelt = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    alphabet = ["Ġ", "Ċ", *sorted(letter for letter in spelt if letter.isascii())]  # blank, newline, the rest
    vocabulary = {token: number for number, token in enumerate(["<s>", "</s>", TAG, *alphabet])}
    spelling = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    spelling.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    spelling.decoder = tokenizers.decoders.ByteLevel()
    spelling.add_special_tokens(["<s>", "</s>"])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=spelling, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}\n"
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=1024,
        bos_token_id=0,
        eos_token_id=1,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def in_transformers() -> Make:
    @asynccontextmanager
    async def make() -> AsyncIterator[Subject]:
        with tempfile.TemporaryDirectory() as folder:
            model = await asyncio.to_thread(random_llama, Path(folder))
            engine = Transformers(model, parallel=8, threads=1)
            yield Subject(engine, ask={"sampling": IGNORE_EOS})
            await engine.close()

    return make


def in_asyncllm() -> Make:
    """The adapter over a stand-in; `tests/live` has it over vLLM itself."""

    @asynccontextmanager
    async def make() -> AsyncIterator[Subject]:
        with fake_vllm.installed():
            engine = AsyncLlm("somewhere", parallel=8)
            yield Subject(engine, ask={"sampling": IGNORE_EOS})
            await engine.close()

    return make


def live(url: str) -> Make:
    """A server that somebody runs, named in FOT_LIVE_SERVER; nobody else may use it meanwhile."""

    @asynccontextmanager
    async def make() -> AsyncIterator[Subject]:
        engine = await connect(url)
        yield Subject(engine, ask={"sampling": IGNORE_EOS})
        await engine.close()

    return make


SUBJECTS: dict[str, Make] = {
    "asyncllm": in_asyncllm(),
    "scripted": scripted(),
    "scripted-split": scripted(is_split=True),
    "openai-chat": over_http("openai", as_chat=True),
    "openai-chat-split": over_http("openai", as_chat=True, is_split=True),
    "openai-text": over_http("openai", as_chat=False),
    "openai-strict": over_http("openai", as_chat=False, is_strict=True),
    "vllm-chat": over_http("vllm", as_chat=True),
    "vllm-text": over_http("vllm", as_chat=False),
    "vllm-development": over_http("vllm", as_chat=True, has_abort=True),
    "sglang-chat": over_http("sglang", as_chat=True),
    "sglang-text": over_http("sglang", as_chat=False),
    "sglang-incremental": over_http("sglang", as_chat=False, is_incremental=True),
    "sglang-0.5.17": over_http("sglang", as_chat=False, version="0.5.17"),
    "llamacpp-chat": over_http("llamacpp", as_chat=True),
    "llamacpp-text": over_http("llamacpp", as_chat=False),
    "llamacpp-real": llama_server(),
    "embedded": embedded(),
    "transformers": in_transformers(),
}
if "FOT_LIVE_SERVER" in os.environ:
    SUBJECTS["live"] = live(os.environ["FOT_LIVE_SERVER"])
