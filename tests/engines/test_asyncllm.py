"""vLLM in-process, over a stand-in: what the contract does not ask of every engine."""

from collections.abc import AsyncIterator

import pytest

from fot.engines import connect
from fot.engines.asyncllm import AsyncLlm
from fot.engines.base import Request, Sampling
from fot.errors import ConfigError, EngineRefused, MissingExtra
from tests.contract import fake_vllm

pytestmark = pytest.mark.anyio


@pytest.fixture
async def engine() -> AsyncIterator[AsyncLlm]:
    with fake_vllm.installed():
        made = await connect("asyncllm", model="somewhere", parallel=4)
        assert isinstance(made, AsyncLlm)
        yield made
        await made.close()


async def read(engine: AsyncLlm, **more: object) -> list:
    request = Request(**{"id": "r1.", "prompt": "count", "seed": 3, "max_tokens": 30, **more})  # type: ignore[arg-type]
    return [chunk async for chunk in engine.stream(request)]


async def test_every_token_has_its_end_and_its_confidence(engine: AsyncLlm) -> None:
    chunks = await read(engine, logprobs=3)
    assert any(len(chunk.ends) == 2 for chunk in chunks)
    ends, confidences, chars = [], [], 0
    for chunk in chunks:
        ends += [chars + end for end in chunk.ends]
        confidences += chunk.confidences
        chars += len(chunk.text)
    assert ends == list(range(1, 31))
    assert confidences == [1.5] * 30


async def test_its_books_are_those_of_the_engine(engine: AsyncLlm) -> None:
    await read(engine)
    counters = await engine.counters()
    assert (counters.generated_tokens, counters.running, counters.waiting) == (30, 0, 0)


async def test_what_vllm_refuses_is_told(engine: AsyncLlm) -> None:
    with pytest.raises(EngineRefused, match="too long"):
        await read(engine, prompt="a" * 5000)
    with pytest.raises(ConfigError, match="unheard_of"):
        await read(engine, sampling=Sampling(extra={"unheard_of": 1}))


async def test_a_chat_is_told_how_to_be_rendered(engine: AsyncLlm) -> None:
    chunks = await read(engine, prompt=None, messages=({"role": "user", "content": "abc"},))
    assert chunks[-1].prompt_tokens == len("abc\n")


async def test_without_vllm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vllm", None)
    with pytest.raises(MissingExtra, match="vllm"):
        await read(AsyncLlm("somewhere"))
