"""The batch: rows come and go, wait and come back, and none of it changes what the others say."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fot.engines.base import Chunk, Request, Sampling
from fot.engines.batch import Batch, Row
from fot.engines.transformers import Transformers
from fot.errors import ConfigError
from tests.contract.subjects import random_llama

pytestmark = pytest.mark.anyio

GREEDY = Sampling(temperature=0.0, extra={"ignore_eos": True})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_llama(tmp_path_factory.mktemp("model"))


@pytest.fixture
async def engine(folder: Path) -> AsyncIterator[Transformers]:
    made = Transformers(folder, parallel=4, threads=1)
    yield made
    await made.close()


def asked(number: int, **more: object) -> Request:
    """Prompts of different lengths, so that rows need padding."""
    return Request(**{"id": f"r{number}.", "prompt": "ab" * (number + 2), "sampling": GREEDY, **more})  # type: ignore[arg-type]


async def read(engine: Transformers, request: Request) -> list[Chunk]:
    return [chunk async for chunk in engine.stream(request)]


def text(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


async def test_the_batch_says_what_the_model_says_alone(engine: Transformers, folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    together = await asyncio.gather(*(read(engine, asked(n, max_tokens=20 + 5 * n)) for n in range(6)))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for number, chunks in enumerate(together):
        ids = tokenizer(asked(number).prompt, return_tensors="pt").input_ids
        most = 20 + 5 * number
        out = model.generate(ids, do_sample=False, max_new_tokens=most, min_new_tokens=most, eos_token_id=None)
        assert text(chunks) == tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=False)
        assert chunks[-1].tokens == most


async def test_who_waits_leaves_the_batch_and_comes_back_where_it_was(engine: Transformers) -> None:
    alone = [await read(engine, asked(n, max_tokens=30)) for n in range(3)]
    readers = [asyncio.create_task(read(engine, asked(n, max_tokens=30, hold_at=7 + n))) for n in range(3)]
    for _ in range(2):
        while (await engine.counters()).generated_tokens != 90 + 7 + 8 + 9 or engine.batch_rows:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)  # nothing moves while all wait
    engine.advance("r1.", 20)
    while (await engine.counters()).generated_tokens != 90 + 7 + 20 + 9 or engine.batch_rows:
        await asyncio.sleep(0.01)
    for n in range(3):
        engine.advance(f"r{n}.", None)
    assert [text(await reader) for reader in readers] == [text(chunks) for chunks in alone]


async def test_who_is_stopped_leaves_at_once_and_takes_its_memory_along(engine: Transformers) -> None:
    readers = [asyncio.create_task(read(engine, asked(n, hold_at=5))) for n in range(4)]
    while (await engine.counters()).generated_tokens != 20:
        await asyncio.sleep(0.01)
    for n in (0, 2):
        await engine.abort(f"r{n}.")
    for n in (1, 3):
        engine.advance(f"r{n}.", 400)
    while engine.batch_rows != 2:
        await asyncio.sleep(0.01)
    await engine.abort("r3.")
    assert engine.batch_rows == 1
    await engine.abort("r1.")
    ends = [(await reader)[-1] for reader in readers]
    assert [end.finish_reason for end in ends] == ["abort"] * 4
    assert [ends[0].tokens, ends[2].tokens] == [5, 5]
    assert sum(end.tokens for end in ends) == (await engine.counters()).generated_tokens


async def test_a_prompt_is_computed_once(engine: Transformers) -> None:
    prompt = "spiders " * 10
    for number in range(3):
        last = (await read(engine, asked(number, prompt=prompt, max_tokens=3)))[-1]
        assert last.prompt_tokens == len(prompt)
        assert last.cached_tokens == (len(prompt) if number else 0)
    rest = (await read(engine, asked(9, prompt=prompt, prefix="and so", prefix_tokens=6, max_tokens=3)))[-1]
    assert (rest.prompt_tokens, rest.cached_tokens) == (len(prompt) + 6, len(prompt))


async def test_the_rest_of_a_rollout_is_what_it_would_have_been(engine: Transformers) -> None:
    whole = await read(engine, asked(3, prompt="xyz", max_tokens=24))
    begun = await read(engine, asked(4, prompt="xyz", max_tokens=10))
    rest = await read(engine, asked(5, prompt="xyz", prefix=text(begun), prefix_tokens=10, max_tokens=14))
    assert text(begun) + text(rest) == text(whole)


async def test_stop_strings_are_refused(engine: Transformers) -> None:
    with pytest.raises(ConfigError, match="stop strings"):
        await read(engine, asked(0, sampling=Sampling(stop=["x"])))


async def test_a_model_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        await read(Transformers(tmp_path / "none"), asked(0))


async def test_the_context_is_the_end(engine: Transformers) -> None:
    chunks = await read(engine, asked(0, prompt="a" * 1000))
    assert (chunks[-1].finish_reason, chunks[-1].tokens) == ("length", 24)
    chunks = await read(engine, asked(0, prompt="a" * 1024))
    assert (chunks[-1].finish_reason, chunks[-1].tokens) == ("length", 0)


@pytest.mark.parametrize(
    ("sampling", "allowed"),
    [
        (Sampling(temperature=1.0), {0, 1, 2, 3}),
        (Sampling(temperature=1.0, top_k=2), {1, 3}),
        (Sampling(temperature=1.0, top_p=0.75), {1, 3}),
        (Sampling(temperature=1.0, min_p=0.9), {3}),
        (Sampling(temperature=0.0), {3}),
    ],
)
def test_tokens_are_drawn_by_their_probability_among_those_allowed(sampling: Sampling, allowed: set[int]) -> None:
    torch = pytest.importorskip("torch")
    shares = torch.tensor([0.1, 0.3, 0.1, 0.5])
    generators = [torch.Generator().manual_seed(seed) for seed in range(2000)]
    rows = [Row([0], 1, sampling, generator) for generator in generators]
    drawn = Batch(None)._sampled(shares.log().expand(len(rows), -1), rows)
    assert set(drawn.tolist()) == allowed
    left = torch.tensor([share if token in allowed else 0.0 for token, share in enumerate(shares.tolist())])
    if sampling.temperature:
        seen = torch.bincount(drawn, minlength=4) / len(rows)
        assert torch.allclose(seen, left / left.sum(), atol=0.04)


def test_a_row_draws_the_same_whoever_stands_beside_it() -> None:
    torch = pytest.importorskip("torch")
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(7))

    def rows() -> list[Row]:
        samplings = (Sampling(temperature=1.0), Sampling(temperature=0.5, top_k=5), Sampling(temperature=1.0))
        return [Row([0], 1, one, torch.Generator().manual_seed(at)) for at, one in enumerate(samplings)]

    together = Batch(None)
    together.rows = rows()
    alone = []
    for at, row in enumerate(rows()):
        single = Batch(None)
        single.rows = [row]
        alone += single._draw(logits[at : at + 1])
    assert together._draw(logits) == alone
