"""What every engine must do, whatever stands behind it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fot.engines.base import Chunk, Request
from tests.contract.subjects import SUBJECTS, Subject, joined

pytestmark = pytest.mark.anyio


@pytest.fixture(params=SUBJECTS)
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    async with SUBJECTS[request.param]() as brought_up:
        yield brought_up


async def collect(subject: Subject, asked: Request) -> list[Chunk]:
    return [chunk async for chunk in subject.engine.stream(asked)]


async def is_idle(subject: Subject) -> None:
    """Waits until nothing runs; what has been stopped may take a moment."""
    while await subject.running():
        await asyncio.sleep(0.01)


async def close(stream: AsyncIterator[Chunk]) -> None:
    await stream.aclose()  # type: ignore[attr-defined]


async def test_a_stream_ends_with_its_reason_and_its_count(subject: Subject) -> None:
    chunks = await collect(subject, subject.request(max_tokens=None if subject.texts else 30))
    assert [chunk.finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].finish_reason in ("stop", "length")
    counts = [chunk.tokens for chunk in chunks if not chunk.is_estimated]
    assert counts == sorted(counts)
    assert not chunks[-1].is_estimated
    if subject.texts:
        assert joined(chunks) == subject.texts[0]
        assert subject.script is not None
        assert counts[-1] == (await subject.script.counters()).generated_tokens
    await is_idle(subject)


async def test_counts_are_exact_where_that_is_promised(subject: Subject) -> None:
    chunks = await collect(subject, subject.request(max_tokens=25))
    if (await subject.engine.capabilities()).exact_counts:
        assert not any(chunk.is_estimated for chunk in chunks)
    assert chunks[-1].tokens <= 25


async def test_ends_lie_where_tokens_end(subject: Subject) -> None:
    chunks = await collect(subject, subject.request(max_tokens=40))
    told = 0
    for chunk in chunks:
        if chunk.ends:
            assert list(chunk.ends) == sorted(chunk.ends)
            assert chunk.ends[-1] <= len(chunk.text)
            assert len(chunk.ends) == chunk.tokens - told
        told = chunk.tokens


async def test_max_tokens_is_kept(subject: Subject) -> None:
    chunks = await collect(subject, subject.request(max_tokens=7))
    assert chunks[-1].tokens <= 7
    if subject.texts:
        assert (chunks[-1].tokens, chunks[-1].finish_reason) == (7, "length")
        assert joined(chunks) == subject.texts[0][: len(joined(chunks))]


async def test_no_tokens_wanted_no_tokens_made(subject: Subject) -> None:
    chunks = await collect(subject, subject.request(max_tokens=0))
    assert [(chunk.text, chunk.tokens, chunk.finish_reason) for chunk in chunks] == [("", 0, "length")]


async def test_a_seed_repeats(subject: Subject) -> None:
    if not (await subject.engine.capabilities()).seeds:
        pytest.skip("this server does not honour seeds")
    first, again, other = [
        joined(await collect(subject, subject.request(number, max_tokens=30))) for number in (3, 3, 4)
    ]
    assert first == again
    assert first != other


async def test_a_rollout_goes_on_from_its_prefix(subject: Subject) -> None:
    capabilities = await subject.engine.capabilities()
    if not capabilities.resume:
        pytest.skip("this server cannot resume")
    begun = await collect(subject, subject.request(max_tokens=12 if subject.texts else 200))
    text, tokens, asked = joined(begun), begun[-1].tokens, begun[-1].prompt_tokens or 0
    rest = await collect(
        subject, subject.request(prefix=text, prefix_tokens=tokens, max_tokens=None if subject.texts else 12)
    )
    if subject.texts:
        assert text + joined(rest, text) == subject.texts[0]
    else:
        assert rest[-1].tokens >= 1
        assert (rest[-1].prompt_tokens or 0) >= asked + tokens - 2
        if rest[-1].cached_tokens is not None:  # whole blocks, where blocks are cached: vLLM's on a processor hold 128
            assert rest[-1].cached_tokens >= asked - 16


async def test_abort_stops_and_the_last_word_is_heard(subject: Subject) -> None:
    stream = subject.engine.stream(subject.request(4))
    first = await anext(stream)
    rest = asyncio.create_task(_drain(stream))
    await subject.engine.abort("r004.")
    await subject.engine.abort("r004.")
    last = (await rest)[-1]
    assert last.finish_reason == "abort"
    assert last.tokens >= first.tokens
    await is_idle(subject)
    if subject.script is not None:
        await asyncio.sleep(0.05)
        assert (await subject.script.counters()).generated_tokens == sum(subject.script.generated.values())
        assert sum(subject.script.generated.values()) < len(subject.texts[4])  # it did not run to its end


async def _drain(stream: AsyncIterator[Chunk]) -> list[Chunk]:
    return [chunk async for chunk in stream]


async def test_abort_from_the_reader_itself(subject: Subject) -> None:
    chunks = []
    async for chunk in subject.engine.stream(subject.request(4)):
        chunks.append(chunk)
        if len(chunks) == 2:
            await subject.engine.abort("r004.")
    assert chunks[-1].finish_reason == "abort"
    await is_idle(subject)


async def test_aborting_the_unknown_is_no_error(subject: Subject) -> None:
    await subject.engine.abort("never-heard-of.")


async def test_closing_the_iterator_stops_the_generation(subject: Subject) -> None:
    stream = subject.engine.stream(subject.request(4))
    await anext(stream)
    await close(stream)
    await is_idle(subject)


async def test_cancelling_the_reader_stops_the_generation(subject: Subject) -> None:
    started = asyncio.Event()

    async def read() -> None:
        async for _ in subject.engine.stream(subject.request(4)):
            started.set()

    reader = asyncio.create_task(read())
    await started.wait()
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    await is_idle(subject)


async def test_aborting_one_leaves_those_whose_names_go_on_from_its(subject: Subject) -> None:
    names = {1: "r1", 10: "r10", 11: "r11"}
    streams = {n: subject.engine.stream(subject.request(n, name)) for n, name in names.items()}
    for stream in streams.values():
        await anext(stream)
    readers = {n: asyncio.create_task(_drain(stream)) for n, stream in streams.items()}
    await subject.engine.abort("r1")
    ends = {n: (await reader)[-1].finish_reason for n, reader in readers.items()}
    assert ends[1] == "abort"
    assert {ends[10], ends[11]} <= {"stop", "length"}


async def test_many_at_once(subject: Subject) -> None:
    results = await asyncio.gather(*(collect(subject, subject.request(n, max_tokens=20)) for n in range(8)))
    assert all(chunks[-1].finish_reason in ("stop", "length") for chunks in results)
    if subject.texts:
        for number, chunks in enumerate(results):
            text = joined(chunks)
            assert text == subject.texts[number][: len(text)]
    await is_idle(subject)


async def test_closing_the_engine_leaves_nothing_running(subject: Subject) -> None:
    streams = [subject.engine.stream(subject.request(n)) for n in range(4)]
    for stream in streams:
        await anext(stream)
    readers = [asyncio.create_task(_drain(stream)) for stream in streams]
    await asyncio.sleep(0)
    await subject.engine.close()
    ends = [chunks[-1].finish_reason for chunks in await asyncio.gather(*readers)]
    assert set(ends) <= {"abort", "stop", "length"}
    if subject.script is not None:
        await is_idle(subject)
