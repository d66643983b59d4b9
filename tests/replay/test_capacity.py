"""Replay with a clock: hand-worked cases, and what must hold for every pool, policy and engine."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fot.core.funnel import Funnel
from fot.core.policy import Need
from fot.core.sampling import Majority
from fot.core.timing import Knot, Timing
from fot.core.vote import plurality
from fot.errors import ConfigError
from fot.methods import Context, methods, parse
from fot.replay.capacity import Load, foretell
from fot.replay.party import Party, Stage
from fot.replay.recording import TextRecording
from fot.replay.simulator import simulate
from fot.replay.station import Room, Station
from tests.replay import pools

SECOND = Timing(knots=(Knot(1, 1.0),))
"""A step takes a second, whoever takes part."""


def rollouts(*lengths, text="calm words"):
    return pools.as_rollouts([{"text": text * (1 + n), "n_tokens": n} for n in lengths])


def majority(*lengths, prompt=0):
    return Stage(Majority(len(lengths)), TextRecording(rollouts(*lengths), "boxed"), prompt_tokens=prompt)


def at_once(stages, timing=SECOND, slots=32, kv=None, concurrency=1, way="stream"):
    return foretell(stages, timing, Room(slots=slots, kv_tokens=kv), Load(concurrency=concurrency, way=way))


# The first rollout goes ahead by one token: the others find its prompt in the cache.


def test_a_constant_step_takes_as_long_as_the_longest_rollout():
    found = at_once([majority(7, 5, 3)])
    assert found.wall_s == 7
    assert found.tokens == found.charged == 15
    assert at_once([majority(5, 7, 3)]).wall_s == 1 + 7


def test_what_finds_no_slot_comes_in_a_second_wave():
    found = at_once([majority(4, 4, 4, 4)], slots=2)
    # 0: seconds 0 to 4; 1: 1 to 5; 2: 4 to 8; 3: 5 to 9
    assert found.wall_s == 9
    assert found.books.batch_peak == 2
    assert found.books.waits == (4 - 1) + (5 - 1)


def test_problems_at_once_share_the_slots():
    stages = [majority(4), majority(4), majority(4), majority(4)]
    assert at_once(stages, concurrency=4).wall_s == 4
    assert at_once([majority(4) for _ in range(4)], concurrency=1).wall_s == 16
    assert at_once([majority(4) for _ in range(4)], concurrency=4, slots=2).wall_s == 8


def test_a_step_costs_by_batch_and_by_what_it_holds():
    timing = Timing(knots=(Knot(1, 1.0), Knot(3, 5.0)), kv_s=0.5)
    # One rollout alone attends to 11, 12 positions; then none is left.
    assert at_once([majority(2, prompt=10)], timing).wall_s == 2 * 1.0 + 0.5 * (11 + 12)
    # Between two batches that were measured lies a straight line.
    assert timing.step_s(2) == 3.0
    assert timing.step_s(4) == 7.0
    assert timing.step_s(2, held=10) == 8.0


def test_prompts_are_computed_while_everything_waits():
    timing = Timing(knots=(Knot(1, 1.0),), prefill_s=0.1, shared=0.5)
    found = at_once([majority(3, 3, prompt=10)], timing)
    # The first computes 10 tokens, then a step, then the second computes half of them.
    assert found.wall_s == pytest.approx(1.0 + 1 + 0.5 + 3)
    assert found.books.prompt_tokens == 15


def test_requests_and_stops_take_their_time():
    timing = Timing(knots=(Knot(1, 1.0),), request_s=10.0, stop_s=2.5)
    assert at_once([majority(3)], timing).wall_s == 13
    # Both pass token 4, where the second one's box shows; it is stopped there, and goes on for 2.5 s: 3 steps.
    rows = pools.as_rollouts([{"text": "x" * 20, "n_tokens": 20}, {"text": r"\boxed{1}" + "x" * 31, "n_tokens": 40},
                              {"text": "y" * 20, "n_tokens": 20}])  # fmt: skip
    found = at_once([Stage(Funnel(3, [10], 1.0), TextRecording(rows, "boxed"))], Timing(knots=SECOND.knots, stop_s=2.5))
    assert found.charged == 20 + 10 + 20
    assert found.overshoot == 3 + 1  # it is seen to have passed token 10 with its 11th


def test_without_room_for_its_positions_work_queues():
    # Each holds 10 + 5 at its end: two fit into 32, the third has to wait for one of them.
    found = at_once([majority(5, 5, 5, prompt=10)], kv=32)
    assert found.books.kv_peak <= 32
    assert found.books.batch_peak == 2
    assert found.wall_s == 5 + 5
    assert at_once([majority(5, 5, 5, prompt=10)]).wall_s == 6


def test_what_outgrows_the_room_is_computed_again():
    found = at_once([majority(10, 10)], kv=12)
    assert found.books.preemptions == 1
    assert found.tokens == 20
    assert found.books.prompt_tokens == 5  # what it had when there was no room for the next step
    assert found.wall_s == 10 + 5  # the first to its end, then the rest of the second


def test_a_rollout_that_can_never_fit_is_refused():
    with pytest.raises(ConfigError, match="does not fit"):
        at_once([majority(10)], kv=9)


def test_a_funnel_frees_slots():
    rows = pools.as_rollouts([{"text": text * 100, "n_tokens": 100} for text in ("calm ", "so ", "Wait, ", "Wait, ")])
    recording = TextRecording(rows, "boxed")

    def wall(policy, count=4):
        return at_once([Stage(policy(), recording) for _ in range(count)], slots=4, concurrency=2, way="pause").wall_s

    assert wall(lambda: Majority(4)) > wall(lambda: Funnel(4, [10], 0.5))


def test_rounds_run_one_after_the_other():
    recording = TextRecording(rollouts(5, 6, 7, 8), "boxed")
    spec = parse("ac:mode=sequential,draws=1")
    stage = Stage(spec.build(Context(k=4, problem="p")), recording)
    assert at_once([stage]).wall_s == 5 + 6 + 7 + 8  # none of them answers: all are read


def test_the_barrier_must_fit():
    stages = [majority(3, 3), majority(3, 3)]
    with pytest.raises(ConfigError, match="do not fit"):
        at_once(stages, slots=3, concurrency=2, way="barrier")


def test_kv_is_summed_up_over_steps():
    found = at_once([majority(3)])
    assert found.books.token_steps == 1 + 2 + 3
    assert found.kv_mean == pytest.approx(2.0)
    assert found.books.kv_peak == 3


# --- what holds for everything

IN_REPLAY_ONLY = {Need.DATASET, Need.EMBEDDINGS, Need.LOGPROBS, Need.PROBES}
timings = st.builds(
    Timing,
    knots=st.sampled_from([(Knot(1, 1.0),), (Knot(1, 0.5), Knot(4, 1.0), Knot(8, 4.0))]),
    kv_s=st.sampled_from([0.0, 0.01]),
    prefill_s=st.sampled_from([0.0, 0.1]),
    request_s=st.sampled_from([0.0, 0.7]),
    stop_s=st.sampled_from([0.0, 2.5]),
    shared=st.sampled_from([0.0, 1.0]),
)
ways = st.sampled_from(["stream", "pause", "barrier"])


def run_one(policy, recording, timing, way, slots, follow=False, prompt=3):
    station = Station(timing, Room(slots=slots))
    ended = []
    party = Party(Stage(policy, recording, follow, prompt), station, way, ended.append)
    party.start()
    station.run()
    assert ended == [party]
    return party, station


def assert_parity(spec, rows, timing, way, slots):
    recording = TextRecording(pools.as_rollouts(rows), "boxed", spec.kernel)
    context, follow = Context(k=len(rows), problem="p"), Need.COMMITMENTS in spec.needs
    expected = simulate(spec.build(context), recording, follow_commitments=follow)
    policy = spec.build(context)
    party, station = run_one(policy, recording, timing, way, max(slots, len(rows) * (way == "barrier")), follow)
    settled = party.settle()
    assert [charge.tokens for charge, _ in settled] == list(expected.stops)
    assert [fate for _, fate in settled] == list(expected.fates)
    assert plurality(policy.ballots()) == expected.verdict == party.verdict
    assert party.generated == station.books.tokens >= sum(expected.stops)


@settings(max_examples=200)
@given(pools.problems, pools.checkpoints, pools.keeps, st.booleans(), timings, ways, st.integers(1, 9))
def test_a_funnel_decides_as_in_a_replay_without_a_clock(rows, checkpoints, keep, eager, timing, way, slots):
    marks = "/".join(map(str, checkpoints)) or "99"
    spec = parse(f"fot:checkpoints={marks},keep={keep},eager={'on' if eager else 'off'}")
    assert_parity(spec, rows, timing, way, slots)


@pytest.mark.parametrize(
    "name",
    [name for name, method in methods().items() if method.build is not None and not parse(name).needs & IN_REPLAY_ONLY],
)
def test_every_method_decides_as_in_a_replay_without_a_clock(name):
    @settings(max_examples=15)
    @given(pools.problems, timings, ways, st.integers(1, 9))
    def check(rows, timing, way, slots):
        assert_parity(parse(name), rows, timing, way, slots)

    check()


lengths = st.lists(st.integers(0, 40), min_size=1, max_size=9)


@given(st.lists(lengths, min_size=1, max_size=5), st.integers(1, 6), st.integers(1, 40), timings)
def test_nothing_is_faster_than_its_longest_rollout(problems, concurrency, slots, timing):
    found = at_once([majority(*each) for each in problems], timing, slots=slots, concurrency=concurrency)
    longest = max(max(each) for each in problems)
    assert found.wall_s >= longest * timing.knots[0].step_s - 1e-9
    assert found.tokens == found.charged == sum(map(sum, problems))
    assert found.books.batch_peak <= slots
    assert sum(found.latencies_s) <= concurrency * found.wall_s + 1e-6


@given(lengths, st.integers(1, 12))
def test_more_slots_are_never_slower_where_a_step_is_constant(each, slots):
    # Work of one problem comes in order of length here: of other orders Graham's anomaly could be told.
    ordered = sorted(each, reverse=True)
    fewer, more = (at_once([majority(*ordered)], slots=number).wall_s for number in (slots, slots + 1))
    assert more <= fewer


@given(st.lists(lengths, min_size=1, max_size=4), st.integers(41, 120), timings)
def test_short_room_loses_no_token(problems, kv, timing):
    found = at_once([majority(*each) for each in problems], timing, kv=kv, concurrency=3)
    assert found.charged == sum(map(sum, problems)) == found.tokens
    assert found.books.kv_peak <= kv


def test_twice_the_same_is_the_same():
    def once():
        stages = [majority(9, 4, 30, 2), majority(3, 3, 8), majority(1, 20)]
        found = at_once(stages, Timing(knots=(Knot(1, 0.1), Knot(8, 0.3)), kv_s=0.001, stop_s=0.2), 3, 60, 2)
        return found.wall_s, found.books, found.trace.bins(7)

    assert once() == once()


def test_the_trace_keeps_its_integrals_in_a_bounded_number_of_bins():
    found = at_once([majority(*range(1, 60)) for _ in range(20)], slots=7, concurrency=3)
    for number in (1, 7, 100):
        bins = found.trace.bins(number)
        assert sum(each.kv * each.seconds for each in bins) == pytest.approx(found.books.token_seconds)
        assert sum(each.batch * each.seconds for each in bins) == pytest.approx(found.books.batch_seconds)
