"""A small Llama: the architecture that every engine can load, with Hugging Face's names for the weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Llama", "Shape"]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes that fix the architecture."""

    vocabulary: int = 384
    width: int = 192
    layers: int = 4
    heads: int = 6
    feed_forward: int = 512
    context: int = 1024
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5

    @property
    def head_width(self) -> int:
        return self.width // self.heads


class _Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(shape.width, shape.width, bias=False) for _ in range(4)
        )

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            projection(x).view(batch, length, self.heads, -1).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = functional.scaled_dot_product_attention(
            _rotate(q, cos, sin), _rotate(k, cos, sin), v, attn_mask=mask, is_causal=mask is None
        )
        out: Tensor = self.o_proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return out


class _FeedForward(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.width, shape.feed_forward, bias=False)
        self.up_proj = nn.Linear(shape.width, shape.feed_forward, bias=False)
        self.down_proj = nn.Linear(shape.feed_forward, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class _Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.width, eps=shape.norm_eps)
        self.self_attn = _Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.width, eps=shape.norm_eps)
        self.mlp = _FeedForward(shape)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class Llama(nn.Module):
    """Token ids in, logits out; `mask` (batch, 1, length, length) is True where attention is allowed."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(_Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=shape.norm_eps)
        self.lm_head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        frequencies = shape.rope_theta ** -(torch.arange(0, shape.head_width, 2) / shape.head_width)
        angles = torch.outer(torch.arange(shape.context), torch.cat((frequencies, frequencies)))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self._initialise()

    def _initialise(self) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                nn.init.zeros_(parameter)
            elif parameter.ndim == 2:
                nn.init.normal_(
                    parameter, std=0.02 if "embed" in name or "head" in name else parameter.shape[1] ** -0.5
                )

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.embed_tokens(ids)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        logits: Tensor = self.lm_head(self.norm(x))
        return logits


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return (x * cos + turned * sin).to(x.dtype)
