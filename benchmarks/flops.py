"""FLOPs of the cost model beside those that a library counts while a model decodes, token after token.

    python -m benchmarks.flops [--tokens 96]                   # needs torch and transformers

Models of a few layers, with the proportions of real ones (grouped heads, wide heads, a mixture of experts) and random
weights, decode with a KV cache under torch's counter of matrix products. The output head, which the cost model leaves
out, is told apart: its share is small in a real model and large in these. So is a mixture's router, which is left in.
"""

from __future__ import annotations

import argparse

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM, DynamicCache, PretrainedConfig, Qwen2Config, Qwen3Config, Qwen3MoeConfig

from fot.core.cost import Work, decode_flops
from fot.core.shapes import shape_from_config

SMALL = {"vocab_size": 512, "max_position_embeddings": 1024, "num_hidden_layers": 3}
MODELS: dict[str, PretrainedConfig] = {
    "grouped heads": Qwen2Config(
        **SMALL, hidden_size=256, num_attention_heads=8, num_key_value_heads=2, intermediate_size=896
    ),
    "wide heads": Qwen3Config(
        **SMALL, hidden_size=160, num_attention_heads=8, num_key_value_heads=4, head_dim=32, intermediate_size=608
    ),
    "mixture of experts": Qwen3MoeConfig(
        **SMALL, hidden_size=128, num_attention_heads=8, num_key_value_heads=2, head_dim=32, intermediate_size=384,
        moe_intermediate_size=48, num_experts=16, num_experts_per_tok=4,
    ),
}  # fmt: skip


def main() -> None:
    """Count and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=96)
    tokens = parser.parse_args().tokens
    print(f"{'model':20} {'counted':>12} {'its head':>12} {'cost model':>12}  cost model / (counted - head)")
    for name, config in MODELS.items():
        config._attn_implementation = config._experts_implementation = "eager"  # of the others not all is counted
        told = counted(config, tokens)
        head = 2 * tokens * config.hidden_size * config.vocab_size
        ours = decode_flops(Work(1, 1, tokens, tokens**2), shape_from_config(config.to_dict()))
        print(f"{name:20} {told:12,} {head:12,} {ours:12,.0f}  {ours / (told - head):.4f}")


def counted(config: PretrainedConfig, tokens: int) -> int:
    """FLOPs of the matrix products of `tokens` decoding steps from nothing."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    cache, token = DynamicCache(config=config), torch.zeros((1, 1), dtype=torch.long)
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        for _ in range(tokens):
            token = model(token, past_key_values=cache, use_cache=True).logits[:, -1:].argmax(-1)
    return int(counter.get_total_flops())


if __name__ == "__main__":
    main()
