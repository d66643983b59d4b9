"""Shapes of the paper's ten models, as their published configurations give them, and of any other model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fot.errors import ConfigError

__all__ = ["SHAPES", "Shape", "shape_from_config", "shape_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a cost needs to know of a decoder-only transformer."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    feed_forward: int
    """Width of the feed-forward block, or of one expert."""
    active_experts: int = 1
    experts: int = 1

    @property
    def active_weights(self) -> int:
        """Weights of the projections and of the feed-forward blocks that every generated token passes through."""
        return self._weights(self.active_experts)

    @property
    def weights(self) -> int:
        """The same of all experts: what is held in memory, embeddings and output head left aside."""
        return self._weights(self.experts)

    def _weights(self, experts: int) -> int:
        projections = self.hidden * self.head_width * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (projections + 3 * self.hidden * self.feed_forward * experts)


def _qwen(layers: int, hidden: int, heads: int, kv_heads: int, feed_forward: int) -> Shape:
    return Shape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_width=128,
        feed_forward=feed_forward,
    )


SHAPES: dict[str, Shape] = {
    "DeepSeek-R1-Distill-Qwen-1.5B": _qwen(28, 1536, 12, 2, 8960),
    "DeepSeek-R1-Distill-Qwen-7B": _qwen(28, 3584, 28, 4, 18944),
    "OpenThinker3-7B": _qwen(28, 3584, 28, 4, 18944),
    "Qwen3-4B-Thinking-2507": _qwen(36, 2560, 32, 8, 9728),
    "Qwen3-30B-A3B-Thinking-2507": Shape(
        layers=48,
        hidden=2048,
        heads=32,
        kv_heads=4,
        head_width=128,
        feed_forward=768,
        active_experts=8,
        experts=128,
    ),
    "QwQ-32B": _qwen(64, 5120, 40, 8, 27648),
    "Qwen3-14B": _qwen(40, 5120, 40, 8, 17408),
    "Qwen3-32B": _qwen(64, 5120, 64, 8, 25600),
    "Skywork-OR1-7B": _qwen(28, 3584, 28, 4, 18944),
    "Phi-4-reasoning": _qwen(40, 5120, 40, 10, 17920),
    # Beyond the paper: the model of many public pools.
    "DeepSeek-R1-Distill-Qwen-14B": _qwen(48, 5120, 40, 8, 13824),
}
_ALIASES = {
    "DS-R1-1.5B": "DeepSeek-R1-Distill-Qwen-1.5B",
    "DS-R1-7B": "DeepSeek-R1-Distill-Qwen-7B",
    "OT3-7B": "OpenThinker3-7B",
    "Qwen3-4B": "Qwen3-4B-Thinking-2507",
    "Qwen3-30B": "Qwen3-30B-A3B-Thinking-2507",
}
_BY_NAME = {name.lower(): shape for name, shape in SHAPES.items()}
_BY_NAME |= {alias.lower(): SHAPES[name] for alias, name in _ALIASES.items()}


def shape_of(model: str) -> Shape | None:
    """The shape of a known model by its name, with or without the publisher's prefix; None for any other."""
    return _BY_NAME.get(model.lower()) or _BY_NAME.get(model.rsplit("/", 1)[-1].lower())


def shape_from_config(config: Mapping[str, object]) -> Shape:
    """The shape that a Hugging Face `config.json` describes."""

    def number(*names: str, default: int | None = None) -> int:
        for name in names:
            value = config.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        if default is None:
            raise ConfigError(
                f"config.json has no usable '{names[0]}'", "Give the config.json of a decoder-only model."
            )
        return default

    hidden, heads = number("hidden_size"), number("num_attention_heads")
    experts = number("num_experts", "num_local_experts", "n_routed_experts", default=1)
    dense = number("intermediate_size", default=4 * hidden)
    return Shape(
        layers=number("num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=number("num_key_value_heads", default=heads),
        head_width=number("head_dim", default=hidden // heads),
        feed_forward=number("moe_intermediate_size", default=dense) if experts > 1 else dense,
        active_experts=number("num_experts_per_tok", default=1) if experts > 1 else 1,
        experts=experts,
    )
