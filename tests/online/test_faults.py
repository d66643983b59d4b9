"""Seeded fault schedules: never a hang, a lost vote, a doubled rollout or a wrong count.

FOT_FAULT_SCHEDULES sets how many are tried; `make soak` tries a thousand.
"""

import asyncio
import dataclasses
import os
from random import Random

import pytest

from fot.core.policy import Fate, Need
from fot.core.rollout import Rollout
from fot.core.vote import Ballot, plurality
from fot.engines import connect
from fot.engines.faults import Fault, draw_faults
from fot.engines.scripted import Pace, Scripted
from fot.errors import ConfigError, EngineError, EngineRefused
from fot.methods import Context, parse
from fot.online.events import Failed, Retried, Voted
from fot.online.lane import Limits
from fot.replay.recording import TextRecording
from fot.replay.simulator import simulate
from tests.cli.serving import serving
from tests.online.live import live, lived

SCHEDULES = int(os.environ.get("FOT_FAULT_SCHEDULES", "60"))
STUBBORN = Limits(retries=400, backoff_s=0.0, stall_s=0.05, queue_s=0.05, grace_s=5.0)
POLICIES = ("sc", "fot:checkpoints=20/45,keep=0.5", "fot:checkpoints=30,eager=on+decided", "esc:window=2", "adaptive")
WORDS = ("so ", "Wait, ", "perhaps ", "calm and plain ", r"\boxed{3} ", r"\boxed{5} ", "</think>", "But wait ", "é🙂 ")


def drawn_rollouts(rng, k):
    rollouts = []
    for at in range(k):
        text = "".join(rng.choices(WORDS, (9, 4, 3, 9, 1, 1, 0, 2, 1), k=rng.randint(1, 40)))
        ends = sorted(rng.sample(range(1, len(text) + 1), rng.randint(1, min(len(text), 90))))
        ends[-1] = len(text)
        rollouts.append(
            Rollout(
                model="m",
                benchmark="b",
                problem_id="p",
                problem="?",
                rollout_id=at,
                text=text,
                n_tokens=len(ends),
                token_ends=ends,
            )
        )
    return rollouts


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_what_can_be_mended_changes_nothing(seed):
    rng = Random(seed)
    rollouts = drawn_rollouts(rng, rng.randint(1, 10))
    spec, context = parse(rng.choice(POLICIES)), Context(k=len(rollouts))
    way = rng.choice(("stream", "pause", "barrier"))
    engine = Scripted(
        rollouts,
        pace=Pace(seed=seed, chunk_tokens=rng.choice((1, 4, 30)), stall_s=rng.choice((0.0, 0.2))),
        faults=draw_faults(seed, rollouts, rate=rng.choice((0.2, 0.7)), attempts=3),
        max_parallel=None if way == "barrier" else rng.choice((None, None, 2)),
    )
    follow = Need.COMMITMENTS in spec.needs
    expected = simulate(spec.build(context), TextRecording(rollouts, "boxed"), follow_commitments=follow)
    found = live(
        spec.build(context), rollouts, engine=engine, needs=spec.needs, way=way, limits=STUBBORN, kernel=spec.kernel
    )
    assert [charge.tokens for charge in found.run.charges] == list(expected.stops)
    assert found.run.fates == expected.fates
    assert found.run.verdict == expected.verdict
    assert_counts(found, engine, rollouts)


@pytest.mark.parametrize("seed", range(SCHEDULES // 4))
def test_nor_does_it_over_real_connections(seed):
    rng = Random(f"http/{seed}")
    rollouts = drawn_rollouts(rng, rng.randint(1, 8))
    spec, context = parse(rng.choice(POLICIES)), Context(k=len(rollouts))
    way, dialect = rng.choice(("stream", "pause")), rng.choice(("vllm", "sglang", "llamacpp"))
    faults = draw_faults(seed, rollouts, rate=rng.choice((0.2, 0.7)), attempts=3)
    expected = simulate(
        spec.build(context), TextRecording(rollouts, "boxed"), follow_commitments=Need.COMMITMENTS in spec.needs
    )

    async def run(url):
        client = await connect(f"{dialect}+{url}")
        try:
            policy, limits = spec.build(context), dataclasses.replace(STUBBORN, stall_s=0.2, queue_s=0.2)
            return await lived(
                policy, rollouts, engine=client, needs=spec.needs, way=way, limits=limits, kernel=spec.kernel
            )
        finally:
            await client.close()

    with serving(rollouts, dialect, pace=Pace(seed=seed, chunk_tokens=1, turns=1), faults=faults) as (url, engine):
        found = asyncio.run(run(url))
    assert [charge.tokens for charge in found.run.charges] == list(expected.stops)
    assert found.run.fates == expected.fates
    assert found.run.verdict == expected.verdict
    assert_counts(found, engine, rollouts)


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_what_is_lost_for_good_is_named_and_the_vote_goes_on(seed):
    rng = Random(-1 - seed)
    rollouts = drawn_rollouts(rng, rng.randint(2, 10))
    faults = draw_faults(seed, rollouts, rate=0.3, fatal=0.4)
    engine = Scripted(rollouts, pace=Pace(seed=seed, chunk_tokens=rng.choice((1, 4, 30))), faults=faults)
    policy = parse("sc").build(Context(k=len(rollouts)))
    way = rng.choice(("stream", "pause", "barrier"))
    doomed = {key[1] for key, planned in faults.items() if planned[-1].kind == "fatal"}  # unless it ends before that
    try:
        found = live(policy, rollouts, engine=engine, way=way, limits=STUBBORN)
    except EngineError:
        assert len(doomed) == len(rollouts)
        return
    lost = {at for at, fate in enumerate(found.run.fates) if fate is Fate.FAILED}
    assert lost <= doomed
    assert {event.rollout for event in found.events if isinstance(event, Failed)} == lost
    assert {at for at, lane in enumerate(found.run.lanes) if not lane.text.is_whole} == lost
    recording = TextRecording(rollouts, "boxed")
    answers = [(at, recording.prefix(at, recording.tokens(at)).answer) for at in range(len(rollouts))]
    ballots = [Ballot(at, answer) for at, answer in answers if at not in lost and answer is not None]
    assert found.run.verdict == plurality(ballots)
    assert_counts(found, engine, rollouts)


def assert_counts(found, engine, rollouts):
    """What came is what was recorded, once; and no more is claimed than was generated."""
    for lane, charge, rollout in zip(found.run.lanes, found.run.charges, rollouts, strict=False):
        ends = list(rollout.token_ends[: lane.text.tokens])
        # Where a server keeps token ends to itself, the last chunk of a stopped rollout may hold several tokens: behind
        # the decision only their number is known, and where the last of them ends.
        certain = len(ends) if found.run.can.token_ends else charge.tokens
        assert lane.text.text == rollout.text[: len(lane.text.text)]
        assert lane.text.ends[:certain] == ends[:certain]
        assert [*lane.text.ends[-1:], len(lane.text.ends)] == [*ends[-1:], len(ends)]
        assert lane.generated == lane.text.tokens <= rollout.tokens
        assert lane.generated <= engine.generated["p", rollout.rollout_id]


def one(text=r"a b c \boxed{1}", k=2):
    rows = {"model": "m", "benchmark": "b", "problem_id": "p", "n_tokens": len(text)}
    ends = list(range(1, len(text) + 1))
    return [Rollout(**rows, rollout_id=at, text=text, token_ends=ends) for at in range(k)]


def majority(k):
    return parse("sc").build(Context(k=k))


def test_the_engine_says_when_to_come_back():
    rollouts = one()
    engine = Scripted(rollouts, faults={("p", 0): [Fault("busy", 0, 0.01)], ("p", 1): [Fault("dropped", 3)]})
    found = live(majority(2), rollouts, engine=engine, limits=Limits(backoff_s=0.002))
    retries = [event for event in found.events if isinstance(event, Retried)]
    assert [(event.rollout, event.wait_s) for event in retries] == [(0, 0.01), (1, 0.002)]
    assert retries[1].tokens == 3
    assert found.run.verdict.votes == {"1": 2}


def test_tries_are_bounded():
    rollouts = one()
    engine = Scripted(rollouts, faults={("p", 1): [Fault("dropped", 1)] * 50})
    found = live(majority(2), rollouts, engine=engine, limits=Limits(retries=3, backoff_s=0.0))
    assert found.run.fates == (Fate.FINISHED, Fate.FAILED)
    assert sum(isinstance(event, Retried) for event in found.events) == 3
    assert found.run.lanes[1].text.tokens == found.run.charges[1].tokens == 4


def test_without_resuming_what_has_begun_is_lost():
    class Forgetful(Scripted):
        async def capabilities(self):
            return dataclasses.replace(await super().capabilities(), resume=False)

    rollouts = one(k=3)
    faults = {("p", 0): [Fault("dropped", 0)], ("p", 1): [Fault("dropped", 5)]}
    found = live(majority(3), rollouts, engine=Forgetful(rollouts, faults=faults))
    assert found.run.fates == (Fate.FINISHED, Fate.FAILED, Fate.FINISHED)
    with pytest.raises(ConfigError, match="cannot resume"):
        live(majority(3), rollouts, engine=Forgetful(rollouts), way="pause")


def test_a_silent_engine_is_left():
    rollouts = one()
    engine = Scripted(rollouts, pace=Pace(stall_s=60.0), faults={("p", 1): [Fault("stalled", 2)]})
    found = live(majority(2), rollouts, engine=engine, limits=Limits(stall_s=0.05, backoff_s=0.0))
    assert [event.reason for event in found.events if isinstance(event, Retried)] == ["nothing came for 0.05 s"]
    assert found.run.verdict.votes == {"1": 2}


def test_when_nothing_comes_through_the_engines_own_error_is_raised():
    rollouts = one()
    faults = {("p", at): [Fault("fatal", 0)] for at in (0, 1)}
    with pytest.raises(EngineRefused):
        live(majority(2), rollouts, engine=Scripted(rollouts, faults=faults))


def test_an_interruption_keeps_the_vote_so_far_and_leaves_nothing_running():
    from fot.engines.base import Sampling
    from fot.online.controller import Controller, Plan
    from fot.online.lane import Prompt

    rollouts = [*one(k=1), *one("a" * 3000, k=3)[1:]]
    engine = Scripted(rollouts, pace=Pace(token_s=0.001, chunk_tokens=2))
    events = []

    async def main():
        prompt = Prompt(text="?", sampling=Sampling())
        policy = parse("fot:checkpoints=16,minimum=1").build(Context(k=3))
        controller = Controller(engine, policy, prompt, Plan(k=3, progress_s=0.01), events.append)
        task = asyncio.ensure_future(controller.run())
        while not any(isinstance(event, Voted) for event in events):
            await asyncio.sleep(0.001)
        controller.interrupt()
        run = await task
        counters = await engine.counters()
        assert counters.running == 0
        return run

    run = asyncio.run(main())
    assert run.is_interrupted
    assert run.verdict.votes == {"1": 1}
    assert Fate.CANCELLED in run.fates
    assert events[-1] == Voted("1", {"1": 1.0}, is_final=True)


def test_a_cancelled_run_leaves_nothing_running():
    rollouts = one("a" * 3000, k=4)
    engine = Scripted(rollouts, pace=Pace(token_s=0.001, chunk_tokens=2))

    async def main():
        from fot.online.controller import Controller, Plan
        from fot.online.lane import Prompt

        controller = Controller(engine, majority(4), Prompt(text="?"), Plan(k=4), lambda event: None)
        task = asyncio.ensure_future(controller.run())
        await asyncio.sleep(0.05)
        assert (await engine.counters()).running == 4
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await engine.counters()).running == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
