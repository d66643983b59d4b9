import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.core.ledger import Charge, attention_flops, bill, full_model_flops, kv_positions, reach, savings
from fot.core.shapes import SHAPES, shape_from_config, shape_of
from fot.errors import ConfigError

SHAPE = SHAPES["DeepSeek-R1-Distill-Qwen-7B"]
charges = st.lists(st.builds(Charge, st.integers(0, 40), st.integers(0, 30)), max_size=8)


def test_attention_is_four_l_d_s_squared():
    assert attention_flops(10_000, SHAPE) == 4 * 28 * 3584 * 10_000**2


def test_windows_meet_full_attention_and_the_line():
    assert reach(4096, 4096) == 4096**2
    assert reach(5000, 4096) == 4096**2 + 2 * 4096 * (5000 - 4096) < reach(5000)
    assert reach(3000, 4096) == reach(3000)
    assert reach(7, 0) == 7


def test_the_whole_model_adds_two_flops_for_each_weight_and_token():
    weights = 28 * (3584 * 128 * (2 * 28 + 2 * 4) + 3 * 3584 * 18944)
    assert weights == SHAPE.active_weights
    assert full_model_flops(100, SHAPE) == attention_flops(100, SHAPE) + 200 * weights


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        ("DeepSeek-R1-Distill-Qwen-1.5B", 1.31),
        ("DS-R1-7B", 6.53),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", 13.2),
        ("Qwen/QwQ-32B", 31.0),
        ("Qwen3-4B-Thinking-2507", 3.6),
        ("qwen3-30b-a3b-thinking-2507", 2.7),
        ("Qwen3-32B", 31.2),
        ("Phi-4-reasoning", 13.6),
    ],
)
def test_active_weights_are_those_of_the_published_models(model, billions):
    """Without embeddings, as the models' own pages count them (for the mixture: active ones)."""
    assert shape_of(model).active_weights == pytest.approx(billions * 1e9, rel=0.03)


def test_ten_models_of_the_paper_have_a_shape():
    names = "DS-R1-1.5B DS-R1-7B OT3-7B Qwen3-4B Qwen3-30B QwQ-32B Qwen3-14B Qwen3-32B Skywork-OR1-7B Phi-4-reasoning"
    assert all(shape_of(name) for name in names.split())
    assert shape_of("unheard-of") is None


def test_a_shape_from_a_config():
    config = {
        "hidden_size": 2048,
        "num_attention_heads": 32,
        "num_hidden_layers": 48,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
    }
    assert shape_from_config(config) == SHAPES["Qwen3-30B-A3B-Thinking-2507"]
    with pytest.raises(ConfigError, match="num_hidden_layers"):
        shape_from_config({"hidden_size": 8, "num_attention_heads": 2})
    with pytest.raises(ConfigError, match="hidden_size"):
        shape_from_config({"hidden_size": "big"})


@given(charges)
def test_kv_positions_are_those_of_a_count_step_by_step(billed):
    held = [sum(time - c.start for c in billed if c.start < time <= c.start + c.tokens) for time in range(1, 72)]
    kv = kv_positions(billed)
    assert kv.cumulative == sum(charge.tokens for charge in billed)
    assert kv.peak == max(held, default=0)
    assert kv.token_steps == sum(held)


def test_savings_by_hand():
    ours = [bill([Charge(10), Charge(20)]), bill([Charge(5), Charge(5, start=5)])]
    theirs = [bill([Charge(30), Charge(20)]), bill([Charge(10), Charge(10)])]
    saved = savings(ours, theirs, [SHAPE, None])
    assert saved.attention == pytest.approx(1 - 550 / 1500)
    assert saved.attention_macro == pytest.approx(((1 - 500 / 1300) + (1 - 50 / 200)) / 2)
    assert saved.tokens == pytest.approx(1 - 40 / 70)
    assert saved.latency == pytest.approx(1 - 30 / 40)  # the second problem ran one after the other: 10
    assert saved.full_model is None
    assert savings(ours, theirs, [SHAPE, SHAPE]).full_model == pytest.approx(
        1
        - sum(full_model_flops(s, SHAPE) for s in (10, 20, 5, 5))
        / sum(full_model_flops(s, SHAPE) for s in (30, 20, 10, 10))
    )
    assert savings([], [], []).attention == 0.0
