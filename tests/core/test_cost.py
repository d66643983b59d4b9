import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.core.cost import ACCELERATORS, Accelerator, Work, decode_flops, decoding, kv_bytes, served_s
from fot.core.shapes import SHAPES, Shape
from fot.core.timing import Knot, Timing
from fot.errors import ConfigError

SMALL = Shape(layers=2, hidden=6, heads=3, kv_heads=1, head_width=4, feed_forward=10)
SEVEN = SHAPES["DeepSeek-R1-Distill-Qwen-7B"]
MIXTURE = SHAPES["Qwen3-30B-A3B-Thinking-2507"]
lengths = st.lists(st.integers(1, 40), min_size=1, max_size=6)


def work(*tokens, problems=1, prompt=0):
    return Work(problems, len(tokens), sum(tokens), sum(t * t for t in tokens), prompt * len(tokens))


def products(shape, length):
    """Every matrix product of a decoded rollout, one token after the other: rows times columns of the matrix."""
    for position in range(1, length + 1):
        for _ in range(shape.layers):
            yield shape.hidden, shape.heads * shape.head_width
            yield shape.hidden, 2 * shape.kv_heads * shape.head_width
            for _ in range(shape.heads):
                yield shape.head_width, position  # scores of all positions
                yield position, shape.head_width  # what they add up to
            yield shape.heads * shape.head_width, shape.hidden
            yield from [(shape.hidden, shape.feed_forward)] * 2
            yield shape.feed_forward, shape.hidden


@given(lengths)
def test_flops_are_those_of_a_count_product_by_product(tokens):
    counted = sum(2 * rows * columns for length in tokens for rows, columns in products(SMALL, length))
    assert decode_flops(work(*tokens), SMALL) == counted


@given(lengths, st.integers(0, 9))
def test_positions_held_are_those_of_a_count_step_by_step(tokens, prompt):
    held = [prompt + step for length in tokens for step in range(1, length + 1)]
    assert work(*tokens, prompt=prompt).held == pytest.approx(sum(held) / len(held))


def test_bytes_of_a_position():
    assert kv_bytes(SEVEN) == 2 * 28 * 4 * 128 * 2
    assert kv_bytes(SEVEN, precision=1) == kv_bytes(SEVEN) / 2


@pytest.mark.parametrize("shape", [SEVEN, MIXTURE, SHAPES["QwQ-32B"]])
@pytest.mark.parametrize("name", ACCELERATORS)
def test_as_many_rollouts_run_as_fit(shape, name):
    one, some = ACCELERATORS[name], work(*[6_000] * 32)
    found = decoding(some, shape, one)
    room = 0.9 * found.accelerators * one.memory - 2 * shape.weights
    each = kv_bytes(shape) * some.held
    assert found.batch * each <= room < (found.batch + 1) * each
    assert 2 * shape.weights <= found.accelerators * one.memory / 2


def test_a_step_is_as_long_as_the_slower_of_reading_and_multiplying():
    some = work(*[1_000] * 8)
    slow_memory = decoding(some, SEVEN, Accelerator(flops=1e30, bandwidth=1e12, memory=80e9))
    read = 2 * SEVEN.weights + slow_memory.batch * some.held * kv_bytes(SEVEN)
    assert (slow_memory.bound, slow_memory.step_s) == ("memory", pytest.approx(read / 1e12))
    slow_units = decoding(some, SEVEN, Accelerator(flops=1e12, bandwidth=1e30, memory=80e9))
    done = slow_units.batch * decode_flops(some, SEVEN) / some.tokens
    assert (slow_units.bound, slow_units.step_s) == ("arithmetic", pytest.approx(done / 1e12))


def test_a_mixture_multiplies_with_few_experts_and_holds_them_all():
    assert MIXTURE.active_weights == pytest.approx(2.7e9, rel=0.03)
    assert MIXTURE.weights == pytest.approx(29.9e9, rel=0.03)


def test_hours_follow_from_tokens_and_speed():
    some, one = work(*[2_000] * 4), ACCELERATORS["h100"]
    whole, half = (decoding(some, SEVEN, one, use=use).hours(some.tokens) for use in (1.0, 0.5))
    assert half == pytest.approx(2 * whole)
    many = some.times(100)
    assert many.held == pytest.approx(some.held)
    assert decoding(many, SEVEN, one).hours(many.tokens) == pytest.approx(100 * whole)


@given(st.integers(1, 60), st.integers(1, 8))
def test_a_served_batch_takes_what_its_steps_take(length, slots):
    timing = Timing(knots=(Knot(1, 0.2), Knot(8, 0.5)), kv_s=0.003)
    taken = sum(timing.step_s(slots, slots * step) for step in range(1, length + 1))
    assert served_s(work(*[length] * slots), timing, slots) == pytest.approx(taken)


def test_a_prompt_is_computed_for_the_first_rollout_and_in_part_for_the_others():
    timing = Timing(knots=(Knot(1, 1e-9),), prefill_s=2.0, shared=0.75)
    assert served_s(work(1, 1, 1, 1, prompt=10), timing, 4) == pytest.approx(2.0 * (10 + 3 * 2.5))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Accelerator(flops=0, bandwidth=1, memory=1), "flops is 0"),
        (lambda: Accelerator(flops=1, bandwidth=float("nan"), memory=1), "bandwidth is nan"),
        (lambda: decoding(work(5), SEVEN, ACCELERATORS["h100"], use=0.0), "is 0.0"),
        (lambda: decoding(work(10_000_000), SEVEN, ACCELERATORS["a100"]), "positions fits"),
    ],
)
def test_what_makes_no_sense_is_refused(make, said):
    with pytest.raises(ConfigError, match=said):
        make()
