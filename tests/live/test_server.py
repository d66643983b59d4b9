"""The funnel on a real server, named in FOT_LIVE_SERVER; nobody else may use it meanwhile. `make vllm` starts one."""

import asyncio
import os

import pytest

from fot.core.policy import Fate
from fot.engines import connect
from fot.engines.base import Request, Sampling
from fot.online.api import solve, stream

URL = os.environ.get("FOT_LIVE_SERVER")
QUESTION = "Start with 345. Step 1: multiply by 7. Step 2: add 218. What is the result modulo 1000?"
FUNNEL = "fot:checkpoints=20/40/60,keep=0.5"
PATIENCE_S = 300.0

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(URL is None, reason="FOT_LIVE_SERVER names no server")]


@pytest.fixture
async def engine():
    engine = await connect(URL)
    async with asyncio.timeout(PATIENCE_S):
        yield engine
    await engine.close()


async def idle(engine):
    """The server's books once nothing runs any more."""
    while (counters := await engine.counters()).running or counters.waiting:
        await asyncio.sleep(0.02)
    return counters


@pytest.mark.parametrize("way", ["stream", "pause"])
async def test_every_token_of_pruned_runs_is_accounted_for(engine, way):
    before = (await idle(engine)).generated_tokens
    ours = stopped = pruned = 0
    for run in range(6):
        sampling = Sampling(temperature=1.0, max_tokens=120, extra={"ignore_eos": True})
        result = await solve(QUESTION, engine=engine, policy=FUNNEL, k=8, way=way, seed=42 + 8 * run, sampling=sampling)
        assert result.counts == "exact"
        ours += result.usage.completion_tokens
        pruned += sum(rollout.fate is Fate.PRUNED for rollout in result.rollouts)
        stopped += sum(rollout.finish_reason == "abort" for rollout in result.rollouts)
        if way == "pause":
            assert result.usage.overshoot_tokens == 0
    assert pruned
    assert abs((await idle(engine)).generated_tokens - before - ours) <= stopped


async def test_of_32_rollouts_one_is_dropped_and_31_go_on(engine):
    sampling = Sampling(temperature=1.0, extra={"ignore_eos": True})
    started, ends = [asyncio.Event() for _ in range(32)], {}

    async def read(number):
        prompt = ({"role": "user", "content": QUESTION},)
        asked = Request(id=f"live-{number:03d}.", messages=prompt, seed=number, max_tokens=200, sampling=sampling)
        async for chunk in engine.stream(asked):
            started[number].set()
            ends[number] = chunk

    readers = [asyncio.create_task(read(number)) for number in range(32)]
    await asyncio.gather(*(event.wait() for event in started))
    await engine.abort("live-017.")
    await asyncio.gather(*readers)
    assert ends[17].finish_reason == "abort"
    assert {ends[number].finish_reason for number in range(32) if number != 17} == {"length"}
    assert {ends[number].tokens for number in range(32) if number != 17} == {200}
    await idle(engine)


async def test_leaving_in_the_middle_leaves_nothing_running(engine):
    sampling = Sampling(temperature=1.0, extra={"ignore_eos": True})
    events = stream(QUESTION, engine=engine, policy="sc", k=8, sampling=sampling)
    async for _ in events:
        if (await engine.counters()).running:
            break
    await events.aclose()
    await idle(engine)
