"""The scripted engine plays its tapes as they are, however they are cut, and loses no token on the way."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.core.rollout import Rollout
from fot.engines.base import Chunk, Request, Sampling
from fot.engines.faults import FAULTS, Fault, draw_faults
from fot.engines.scripted import Pace, Scripted
from fot.engines.tape import TAG, Tape
from fot.errors import EngineError, EngineProtocolError, EngineRefused, EngineTimeout, EngineUnavailable

pytestmark = pytest.mark.anyio

TEXT = "Wait, 3 + 4 is 7.</think>So it is \\boxed{7}."


def rollout(
    number: int = 0,
    text: str = TEXT,
    *,
    ends: Sequence[int] | None = None,
    n_tokens: int | None = None,
    problem: str = "p",
) -> Rollout:
    return Rollout(
        model="m",
        benchmark="b",
        problem_id=problem,
        rollout_id=number,
        text=text,
        problem=f"What is 3 + 4? ({problem})",
        n_tokens=n_tokens if ends is None else len(ends),
        token_ends=ends,
        finish_reason="stop",
    )


def tokenised(number: int = 0, text: str = TEXT) -> Rollout:
    """Three characters a token, the tag one of its own."""
    ends = []
    at = 0
    while at < len(text):
        at = (
            at + len(TAG)
            if text.startswith(TAG, at)
            else min(at + 3, text.find(TAG) if text.find(TAG) > at else len(text))
        )
        ends.append(at)
    return rollout(number, text, ends=ends)


def request(name: str = "r000.", seed: int | None = 42, **more: object) -> Request:
    return Request(id=name, prompt="What is 3 + 4? (p)", seed=seed, **more)  # type: ignore[arg-type]


async def collect(engine: Scripted, asked: Request) -> list[Chunk]:
    return [chunk async for chunk in engine.stream(asked)]


def joined(chunks: Sequence[Chunk]) -> tuple[str, list[int]]:
    """The text and token ends that a listener puts together, as `Chunk` says."""
    text, ends, channel = "", [], None
    for chunk in chunks:
        if channel == "reasoning" and chunk.channel == "content":
            text += TAG
        channel = chunk.channel
        ends += [len(text) + end for end in chunk.ends]
        text += chunk.text
    return text, ends


@given(st.integers(0, 1000), st.booleans(), st.integers(1, 20))
async def test_what_comes_is_what_was_recorded(seed: int, is_split: bool, chunk_tokens: int) -> None:
    recorded = tokenised()
    engine = Scripted([recorded], pace=Pace(seed=seed, chunk_tokens=chunk_tokens), is_split=is_split)
    chunks = await collect(engine, request())
    text, ends = joined(chunks)
    assert text == recorded.text
    assert ends == list(recorded.token_ends or ())
    assert [chunk.finish_reason for chunk in chunks][:-1] == [None] * (len(chunks) - 1)
    assert chunks[-1].finish_reason == "stop"
    assert chunks[-1].tokens == recorded.n_tokens
    assert {chunk.channel for chunk in chunks} == ({"reasoning", "content"} if is_split else {"content"})
    assert (await engine.counters()).generated_tokens == recorded.n_tokens


@given(st.integers(0, 1000), st.booleans(), st.lists(st.integers(0, 30)))
async def test_a_rollout_in_pieces_is_the_same_rollout(seed: int, is_split: bool, cuts: list[int]) -> None:
    recorded = tokenised()
    engine = Scripted([recorded], pace=Pace(seed=seed), is_split=is_split)
    text, tokens = "", 0
    for number, more in enumerate([*cuts, None]):
        piece = await collect(engine, request(f"r{number:03d}.", prefix=text, prefix_tokens=tokens, max_tokens=more))
        opening = [Chunk("", 0, channel="reasoning")] if is_split and text and TAG not in text else []
        text += joined([*opening, *piece])[0]
        tokens += piece[-1].tokens
        assert text == recorded.prefix(tokens)
    assert text == recorded.text
    assert engine.generated[("p", 0)] == recorded.n_tokens


async def test_a_tag_that_is_no_token_is_left_in_the_text() -> None:
    engine = Scripted([rollout(n_tokens=10)], is_split=True)
    chunks = await collect(engine, request())
    assert {chunk.channel for chunk in chunks} == {"content"}
    assert "".join(chunk.text for chunk in chunks) == TEXT


async def test_reasoning_that_never_closes_stays_reasoning() -> None:
    engine = Scripted([rollout(text="Hmm", n_tokens=2)], is_split=True)
    assert {chunk.channel for chunk in await collect(engine, request())} == {"reasoning"}


async def test_max_tokens_cuts_and_says_so() -> None:
    engine = Scripted([tokenised()])
    chunks = await collect(engine, request(max_tokens=4))
    assert (chunks[-1].tokens, chunks[-1].finish_reason) == (4, "length")
    chunks = await collect(engine, request(sampling=Sampling(max_tokens=5), prefix=TEXT[:6], prefix_tokens=2))
    assert (chunks[-1].tokens, chunks[-1].finish_reason) == (3, "length")


async def test_counts_that_are_not_told_are_estimated() -> None:
    engine = Scripted([tokenised()], tells_counts=False)
    chunks = await collect(engine, request())
    assert not (await engine.capabilities()).exact_counts
    assert chunks[-1].tokens == -int(-len(TEXT) // 3.5)
    assert all(not chunk.ends for chunk in chunks)


async def test_the_seed_chooses_the_rollout_and_the_prompt_the_problem() -> None:
    engine = Scripted([rollout(n, f"{p}{n}", n_tokens=1, problem=p) for p in ("p", "q") for n in (0, 1)])
    for problem in ("p", "q"):
        for number in (0, 1):
            asked = Request(
                id=f"{problem}{number}.",
                messages=[{"role": "user", "content": f"Solve: What is 3 + 4? ({problem})"}],
                seed=42 + number,
            )
            assert "".join([chunk.text async for chunk in engine.stream(asked)]) == f"{problem}{number}"
    with pytest.raises(EngineRefused, match="seed 99"):
        await collect(engine, request(seed=99))


async def test_a_wrong_prefix_is_refused() -> None:
    engine = Scripted([tokenised()])
    with pytest.raises(EngineProtocolError, match="prefix"):
        await collect(engine, request(prefix="Not this", prefix_tokens=3))
    with pytest.raises(EngineProtocolError, match="agree"):
        await collect(engine, request(prefix=TEXT[:6], prefix_tokens=3))


@pytest.mark.parametrize("abort_tokens", [0, 5])
async def test_abort_ends_the_stream_with_what_was_underway(abort_tokens: int) -> None:
    recorded = rollout(text="a" * 400, n_tokens=200)
    engine = Scripted([recorded], pace=Pace(chunk_tokens=3, abort_tokens=abort_tokens))
    chunks = []
    async for chunk in engine.stream(request()):
        chunks.append(chunk)
        if len(chunks) == 2:
            await engine.abort("r000.")
            await engine.abort("r000.")
    assert chunks[-1].finish_reason == "abort"
    assert chunks[1].tokens <= chunks[-1].tokens <= chunks[1].tokens + abort_tokens
    assert (await engine.counters()).generated_tokens == chunks[-1].tokens
    assert (await engine.counters()).running == 0


async def test_closing_the_iterator_stops_the_generation() -> None:
    engine = Scripted([rollout(text="a" * 400, n_tokens=200)], pace=Pace(chunk_tokens=3, abort_tokens=4))
    stream = engine.stream(request())
    first = await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    counters = await engine.counters()
    assert counters.running == 0
    assert first.tokens <= (counters.generated_tokens or 0) <= first.tokens + 4


async def test_a_held_rollout_waits_in_place() -> None:
    engine = Scripted([rollout(text="a" * 400, n_tokens=200)], pace=Pace(chunk_tokens=7))
    seen: list[Chunk] = []

    async def read() -> None:
        async for chunk in engine.stream(request(hold_at=50)):
            seen.append(chunk)

    reader = asyncio.create_task(read())
    for held in (50, 120):
        for _ in range(500):
            await asyncio.sleep(0)
        assert seen[-1].tokens == held
        engine.advance("r000.", 120 if held == 50 else None)
    await reader
    assert (seen[-1].tokens, seen[-1].finish_reason) == (200, "stop")


async def test_a_held_rollout_can_be_aborted() -> None:
    engine = Scripted([rollout(text="a" * 400, n_tokens=200)], pace=Pace(abort_tokens=0))
    chunks = []
    async for chunk in engine.stream(request(hold_at=50)):
        chunks.append(chunk)
        if chunk.tokens == 50 and chunk.finish_reason is None:
            await engine.abort("r000.")
    assert (chunks[-1].tokens, chunks[-1].finish_reason) == (50, "abort")


async def test_only_so_many_run_at_once() -> None:
    engine = Scripted([rollout(n, n_tokens=20) for n in range(6)], max_parallel=2, pace=Pace(chunk_tokens=1))
    most = 0

    async def read(number: int) -> int:
        nonlocal most
        tokens = 0
        async for chunk in engine.stream(request(f"r{number}.", 42 + number)):
            counters = await engine.counters()
            most = max(most, counters.running or 0)
            tokens = chunk.tokens
        return tokens

    assert await asyncio.gather(*(read(number) for number in range(6))) == [20] * 6
    assert most == 2


async def test_a_waiting_rollout_can_be_aborted() -> None:
    engine = Scripted([rollout(n, n_tokens=20) for n in range(2)], max_parallel=1)
    first = engine.stream(request("r0.", 42, hold_at=1))
    await anext(first)
    second = asyncio.create_task(collect(engine, request("r1.", 43)))
    await asyncio.sleep(0)
    assert (await engine.counters()).waiting == 1
    await engine.abort("r1.")
    assert [(chunk.tokens, chunk.finish_reason) for chunk in await second] == [(0, "abort")]
    await first.aclose()  # type: ignore[attr-defined]


async def test_aborting_one_leaves_31() -> None:
    """Ids of which one is the beginning of the others in a careless numbering."""
    engine = Scripted([rollout(n, n_tokens=50) for n in range(32)])
    streams = [engine.stream(request(f"r{n}.", 42 + n, hold_at=1)) for n in range(32)]
    await asyncio.gather(*(anext(stream) for stream in streams))
    await engine.abort("r1.")
    assert [chunk.finish_reason async for chunk in streams[1]] == ["abort"]
    assert (await engine.counters()).running == 31
    await engine.close()
    ends = [[chunk.finish_reason async for chunk in stream][-1] for n, stream in enumerate(streams) if n != 1]
    assert ends == ["abort"] * 31
    assert (await engine.counters()).running == 0


@pytest.mark.parametrize(
    ("kind", "error", "is_retryable"),
    [
        ("refused", EngineUnavailable, True),
        ("busy", EngineRefused, True),
        ("broken", EngineRefused, True),
        ("dropped", EngineUnavailable, True),
        ("torn", EngineProtocolError, True),
        ("stalled", EngineTimeout, True),
        ("restart", EngineUnavailable, True),
        ("fatal", EngineRefused, False),
    ],
)
async def test_a_fault_shows_as_its_error(kind: str, error: type[EngineError], is_retryable: bool) -> None:
    plan = {("p", 0): [Fault(kind, 5, 0.25)]}  # type: ignore[arg-type]
    engine = Scripted([tokenised()], faults=plan, pace=Pace(chunk_tokens=2))
    seen: list[Chunk] = []
    with pytest.raises(error) as raised:
        async for chunk in engine.stream(request()):
            seen.append(chunk)
    assert raised.value.retryable is is_retryable
    assert raised.value.request_id == "r000."
    at_once = kind in ("refused", "busy", "broken")
    assert (seen[-1].tokens if seen else 0) == (0 if at_once else 5)
    assert (await engine.counters()).running == 0
    if kind == "busy":
        assert raised.value.retry_after_s == 0.25


async def test_every_fault_but_the_fatal_one_passes() -> None:
    plan = {("p", 0): [Fault(kind, 2) for kind in FAULTS if kind != "fatal"]}
    engine = Scripted([tokenised()], faults=plan, pace=Pace(chunk_tokens=3))
    text, tokens, failures = "", 0, 0
    while True:
        try:
            async for chunk in engine.stream(request(prefix=text, prefix_tokens=tokens)):
                text += chunk.text
                last = chunk
                tokens_now = tokens + chunk.tokens
            break
        except EngineError as error:
            assert error.retryable
            failures += 1
            tokens = len([end for end in tokenised().token_ends or () if end <= len(text)])
    assert (text, tokens_now, last.finish_reason) == (TEXT, len(tokenised().token_ends or ()), "stop")
    assert failures >= len(FAULTS) - 1


async def test_a_restart_breaks_every_stream_and_the_books_begin_anew() -> None:
    recorded = [rollout(n, "a" * 400, n_tokens=200) for n in range(3)]
    engine = Scripted(recorded, faults={("p", 1): [Fault("restart", 40)]})
    outcomes = await asyncio.gather(
        *(collect(engine, request(f"r{n}.", 42 + n)) for n in range(3)), return_exceptions=True
    )
    assert any(isinstance(outcome, EngineUnavailable) for outcome in outcomes)
    assert isinstance(outcomes[1], EngineUnavailable)
    assert (await engine.counters()).generated_tokens == 0 or sum(engine.generated.values()) > 40


def test_plans_are_drawn_from_the_seed_alone() -> None:
    rollouts = [rollout(n, n_tokens=50) for n in range(32)]
    assert draw_faults(3, rollouts, fatal=0.2) == draw_faults(3, list(reversed(rollouts)), fatal=0.2)
    assert draw_faults(3, rollouts) != draw_faults(4, rollouts)
    assert draw_faults(3, rollouts, rate=0.0) == {}


@given(st.lists(st.integers(0, 4), min_size=1), st.data())
def test_a_tape_finds_the_tokens_of_its_characters(widths: list[int], data: st.DataObject) -> None:
    ends = [sum(widths[: i + 1]) for i in range(len(widths))]
    tape = Tape(rollout(text="x" * ends[-1], ends=ends))
    chars = data.draw(st.integers(0, ends[-1]))
    assert tape.tokens_within(chars) == sum(end <= chars for end in ends)
