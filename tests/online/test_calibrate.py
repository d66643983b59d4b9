"""The fit recovers what was planted; a server is timed end to end."""

from random import Random

import pytest

from fot.core.rollout import Rollout
from fot.core.timing import Timing
from fot.engines.scripted import Pace, Scripted
from fot.errors import ConfigError
from fot.online.calibrate import batches_up_to, calibrate
from fot.online.fitting import Stretch, fit_line, fit_steps

BASES = {1: 0.001, 2: 0.0012, 8: 0.003, 16: 0.014}


def stretches(kv_s, noise, seed=7):
    rng = Random(seed)
    for batch, base in BASES.items():
        for context in range(20, 600, 20):
            held = batch * context
            yield Stretch(batch, 24, held, 24 * (base + kv_s * held) * noise(rng))


def test_the_fit_recovers_planted_coefficients():
    found = fit_steps(list(stretches(2.5e-6, lambda rng: 1.0)))
    assert dict(found.knots) == pytest.approx(BASES, rel=1e-3)
    assert found.kv_s == pytest.approx(2.5e-6, rel=1e-3)
    assert found.error < 1e-3


def test_odd_stretches_do_not_bend_it():
    def noise(rng):
        return 3.0 if rng.random() < 0.2 else rng.uniform(0.98, 1.02)

    found = fit_steps(list(stretches(2.5e-6, noise)))
    assert dict(found.knots) == pytest.approx(BASES, rel=0.1)
    assert found.kv_s == pytest.approx(2.5e-6, rel=0.1)


def test_positions_that_cost_nothing_are_free():
    found = fit_steps([Stretch(1, 10, 10, 1.1), Stretch(1, 10, 100, 1.0), Stretch(2, 10, 100, 2.0)])
    assert found.kv_s == 0
    assert all(knot.step_s > 0 for knot in found.knots)


def test_lines():
    assert fit_line([(1, 3.0), (2, 5.0), (5, 11.0)]) == pytest.approx((1.0, 2.0), rel=1e-6)
    assert fit_line([(4, 2.0), (4, 2.0)]) == (0.0, 0.5)
    assert fit_line([(1, 1.0), (10, 20.0)])[0] == 0.0  # no request takes less than no time
    assert fit_line([(1, 5.0), (10, 4.0)])[1] == 0.0
    assert fit_line([]) == (0.0, 0.0)


def test_batches():
    assert batches_up_to(1) == [1]
    assert batches_up_to(16) == [1, 2, 4, 8, 12, 16]
    assert batches_up_to(20) == [1, 2, 4, 8, 12, 16, 20]
    with pytest.raises(ConfigError):
        batches_up_to(0)


def spoken(length, k=4):
    texts = [f"thought {at} " * length for at in range(k)]
    return [
        Rollout(model="m", benchmark="b", problem_id="p", rollout_id=at, text=text, n_tokens=length, prompt_tokens=9)
        for at, text in enumerate(texts)
    ]


async def timed(length, batches=(1, 2, 4), **options):
    engine = Scripted(spoken(length), pace=Pace(token_s=0.0005), **options)
    told = []
    try:
        return await calibrate(engine, "m", batches, told.append, tokens=60, context=10), told
    finally:
        await engine.close()


@pytest.mark.anyio
async def test_an_engine_is_timed():
    found, told = await timed(200)
    assert [knot.batch for knot in found.timing.knots] == [1, 2, 4]
    assert all(knot.step_s > 0 for knot in found.timing.knots)
    assert told == ["1 at once", "2 at once", "4 at once"]
    assert {check.batch for check in found.checks} == {1, 2, 4}
    assert Timing.from_json(found.as_json()) == found.timing


@pytest.mark.anyio
async def test_rollouts_that_end_at_once_cannot_be_timed():
    with pytest.raises(ConfigError, match="before they could be timed"):
        await timed(5)


@pytest.mark.anyio
async def test_too_few_tokens_are_refused():
    with pytest.raises(ConfigError, match="too few"):
        await calibrate(Scripted(spoken(9)), "m", [1], lambda _: None, tokens=10, context=10)
