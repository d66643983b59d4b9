"""Scripted engine and controller against the simulator: the same answers, stops and fates, whatever the timing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fot.core.policy import Need
from fot.engines.scripted import Pace, Scripted
from fot.methods import Context, methods, parse
from fot.online.events import Banked, Finished, Pruned, Started, Voted
from fot.replay.recording import TextRecording
from fot.replay.simulator import simulate
from tests.online.live import live
from tests.replay import pools

WAYS = ("stream", "pause", "barrier")
paces = st.builds(Pace, seed=st.integers(0, 99), chunk_tokens=st.sampled_from([1, 2, 5, 40]), turns=st.integers(0, 5))
LIVE_ONLY_IN_REPLAY = {Need.FUTURE, Need.DATASET, Need.EMBEDDINGS, Need.LOGPROBS, Need.PROBES}


def simulated(spec, rollouts, context):
    recording = TextRecording(rollouts, "boxed", spec.kernel)
    return simulate(spec.build(context), recording, follow_commitments=Need.COMMITMENTS in spec.needs)


def assert_parity(text, rollouts, pace, way, **more):
    spec, context = parse(text), Context(k=len(rollouts), problem="p")
    expected = simulated(spec, rollouts, context)
    engine = Scripted(rollouts, pace=pace, **more)
    found = live(spec.build(context), rollouts, engine=engine, needs=spec.needs, way=way, kernel=spec.kernel)
    run = found.run
    assert [charge.tokens for charge in run.charges] == list(expected.stops)
    assert run.fates == expected.fates
    assert run.verdict == expected.verdict
    assert list(run.verdict.votes) == list(expected.verdict.votes)
    assert sum(lane.generated for lane in run.lanes) == found.left.generated_tokens
    assert all(lane.generated >= charge.tokens for lane, charge in zip(run.lanes, run.charges, strict=False))
    return found


def spec_of(name, checkpoints, keep, **more):
    parameters = {"checkpoints": "/".join(map(str, checkpoints)), "keep": keep} | more
    return f"{name}:" + ",".join(f"{key}={value}" for key, value in parameters.items())


funnels = st.builds(
    spec_of,
    st.sampled_from(["fot", "random"]),
    st.lists(st.integers(1, 26), min_size=1, max_size=4, unique=True).map(sorted),
    pools.keeps,
    minimum=st.integers(1, 4),
    early_voting=st.sampled_from(["on", "off"]),
) | st.builds(
    spec_of,
    st.just("fot"),
    st.lists(st.integers(1, 26), min_size=1, max_size=4, unique=True).map(sorted),
    pools.keeps,
    eager=st.just("on"),
)
lossless = st.sampled_from(["", "+decided"])


@settings(max_examples=300)
@given(pools.problems, funnels, lossless, paces, st.sampled_from(WAYS))
def test_funnels_decide_live_as_in_a_replay(rows, funnel, wrapper, pace, way):
    assert_parity(funnel + wrapper, pools.as_rollouts(rows), pace, way)


def live_methods():
    """Every method that a live run can have, with its defaults, and some of them composed."""
    names = []
    for name, method in methods().items():
        if method.build is None:
            names += [f"sc+{name}", f"fot:checkpoints=5/9+{name}"]
        elif not parse(name).needs & LIVE_ONLY_IN_REPLAY:
            names.append(name)
    return names


@pytest.mark.parametrize("spec", live_methods())
def test_every_method_decides_live_as_in_a_replay(spec):
    @settings(max_examples=25)
    @given(pools.problems, paces, st.sampled_from(WAYS))
    def check(rows, pace, way):
        assert_parity(spec, pools.as_rollouts(rows), pace, way)

    check()


@settings(max_examples=60)
@given(pools.problems, funnels, paces)
def test_reasoning_on_a_channel_of_its_own_changes_nothing(rows, funnel, pace):
    for row in rows:
        row["text"] = "So " + row["text"] + "</think>" + r"\boxed{2}"
        row["n_tokens"] = len(row["text"])
        row["token_ends"] = list(range(1, len(row["text"]) + 1))
    for row in rows[::2]:  # the tag is one token
        at = row["text"].index("</think>")
        row["token_ends"] = [end for end in row["token_ends"] if not at < end < at + len("</think>")]
        row["n_tokens"] = len(row["token_ends"])
    rollouts = pools.as_rollouts(rows)
    found = assert_parity(funnel, rollouts, pace, "stream", is_split=True)
    for rollout, lane in zip(rollouts, found.run.lanes, strict=True):
        assert rollout.text.startswith(lane.text.text)
        if lane.text.is_whole:
            assert lane.text.text == rollout.text
            assert lane.text.ends == list(rollout.token_ends)


def test_the_ways_differ_in_what_they_waste():
    words = "calm words and more of them " * 8
    rows = [{"text": words + "Wait, " * (i % 4), "n_tokens": 100 + i} for i in range(8)]
    rollouts = pools.as_rollouts(rows)
    waste = {}
    for way in WAYS:
        run = assert_parity("fot:checkpoints=30/60,keep=0.5", rollouts, Pace(chunk_tokens=25, abort_tokens=0), way).run
        waste[way] = sum(lane.generated - charge.tokens for lane, charge in zip(run.lanes, run.charges, strict=True))
    assert waste["pause"] == waste["barrier"] == 0
    assert waste["stream"] > 0


def test_events_tell_the_story():
    texts = [r"\boxed{7}" + " so" * 40, "Wait, " * 30, "calm " * 40 + r"\boxed{7}", "calm " * 30 + r"\boxed{8}"]
    rows = [{"text": text, "n_tokens": len(text), "token_ends": list(range(1, len(text) + 1))} for text in texts]
    found = assert_parity("fot:checkpoints=50,keep=0.67", pools.as_rollouts(rows), Pace(), "stream")
    assert {type(event) for event in found.events} == {Started, Banked, Pruned, Finished, Voted}
    assert [e for e in found.events if isinstance(e, Banked)] == [Banked(0, 50, 0.0, "7")]
    assert [e.rollout for e in found.events if isinstance(e, Pruned)] == [1]
    assert found.events[-1] == Voted("7", {"7": 2.0, "8": 1.0}, is_final=True)
    assert [e.rollout for e in found.events if isinstance(e, Started)] == [0, 1, 2, 3]
    assert found.run.answers == ("7", None, "7", "8")
