import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.core.timing import Knot, Timing
from fot.errors import ConfigError

BENT = Timing(knots=(Knot(1, 1.0), Knot(4, 2.0), Knot(8, 8.0)), kv_s=0.25)


def test_a_step_lies_on_the_line_through_what_was_measured():
    assert [BENT.step_s(batch) for batch in (1, 2, 4, 6, 8, 12)] == pytest.approx([1, 4 / 3, 2, 5, 8, 14])
    assert BENT.step_s(4, held=8) == 4.0
    assert Timing(knots=(Knot(8, 3.0),)).step_s(99) == 3.0
    assert Timing(knots=(Knot(1, 2.0), Knot(2, 1.0), Knot(3, 0.5))).step_s(99) == 2.0  # never below the first


@given(st.integers(1, 12), st.integers(0, 500), st.integers(1, 60))
def test_a_span_is_its_steps_one_by_one(batch, held, steps):
    span = BENT.span(batch, held, steps)
    seconds = token_steps = token_seconds = 0.0
    for step in range(1, steps + 1):
        positions = held + batch * step
        step_s = BENT.step_s(batch, positions)
        seconds, token_steps = seconds + step_s, token_steps + positions
        token_seconds += positions * step_s
    assert (span.seconds, span.token_steps, span.token_seconds) == pytest.approx((seconds, token_steps, token_seconds))


def test_json_and_back():
    timing = Timing(knots=BENT.knots, kv_s=1e-6, prefill_s=0.1, request_s=0.2, stop_s=0.3, shared=0.5, slots=16)
    assert Timing.from_json(timing.as_json() | {"engine": "vllm", "later": 1}) == timing


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        (None, "no fot.timing/1"),
        ({"schema": "fot.plan/1"}, "but fot.plan/1"),
        ({"schema": "fot.timing/1"}, "damaged"),
        ({"schema": "fot.timing/1", "knots": [{"batch": 1}]}, "damaged"),
        ({"schema": "fot.timing/1", "knots": []}, "one batch"),
        ({"schema": "fot.timing/1", "knots": [{"batch": 1, "step_s": 0.0}]}, "takes no time"),
        ({"schema": "fot.timing/1", "knots": [{"batch": 2, "step_s": 1}, {"batch": 1, "step_s": 1}]}, "rise"),
        ({"schema": "fot.timing/1", "knots": [{"batch": 1, "step_s": 1}], "kv_s": -1}, "kv_s"),
        ({"schema": "fot.timing/1", "knots": [{"batch": 1, "step_s": 1}], "shared": 2}, "shared"),
        ({"schema": "fot.timing/1", "knots": [{"batch": 1, "step_s": 1}], "slots": 0}, "slots"),
    ],
)
def test_what_is_no_timing_is_refused(told, complaint):
    with pytest.raises(ConfigError, match=complaint):
        Timing.from_json(told)
