"""Export weights: one GGUF file for llama.cpp, one Hugging Face folder for transformers and vLLM.

Both hold the same float16 values (norms in float32 in the GGUF), so the engines answer alike. The weights come from a
training checkpoint, or from a GGUF that this script wrote: the one that ships is enough to make the folder.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import gguf
import numpy as np
import torch
from model import Llama, Shape
from safetensors.torch import save_file
from tokenizer import BEGIN, CHAT_TEMPLATE, CONTROL, END, MERGES, PAD, THINK, THINK_END, build_tokenizer
from torch import Tensor

NAME = "fot-reasoner"
_GGUF_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def load(source: Path) -> dict[str, Tensor]:
    """The weights of a training checkpoint or of an exported GGUF, in float16."""
    if source.suffix == ".gguf":
        return _load_gguf(source, Shape())
    state: dict[str, Tensor] = torch.load(source, map_location="cpu")["model"]
    return {name: tensor.detach().to(torch.float16).contiguous() for name, tensor in state.items()}


def _load_gguf(source: Path, shape: Shape) -> dict[str, Tensor]:
    stored = {tensor.name: torch.from_numpy(tensor.data.copy()) for tensor in gguf.GGUFReader(source).tensors}
    weights = {name: stored[_gguf_name(name)].to(torch.float16) for name in Llama(shape).state_dict()}
    return {name: _half_order(tensor, shape) if _is_rotated(name) else tensor for name, tensor in weights.items()}


def export_gguf(weights: dict[str, Tensor], shape: Shape, out: Path) -> None:
    """Write what llama.cpp loads; BOS is added by its tokenizer and hence not in its template."""
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_name(NAME)
    writer.add_license("apache-2.0")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_rope_dimension_count(shape.head_width)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_layer_norm_rms_eps(shape.norm_eps)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    _add_tokenizer(writer, shape)
    for name, tensor in weights.items():
        array = (_rope_order(tensor, shape) if _is_rotated(name) else tensor).numpy()
        writer.add_tensor(_gguf_name(name), array.astype(np.float32) if array.ndim == 1 else array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter, shape: Shape) -> None:
    tokenizer = build_tokenizer()
    tokens = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
    kinds = [
        gguf.TokenType.CONTROL if token in CONTROL
        else gguf.TokenType.USER_DEFINED if token in (THINK, THINK_END)
        else gguf.TokenType.NORMAL
        for token in tokens
    ]  # fmt: skip
    missing = shape.vocabulary - len(tokens)
    tokens += [f"<|unused{number}|>" for number in range(missing)]
    kinds += [gguf.TokenType.UNUSED] * missing
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(tokenizer.token_to_id(BEGIN))
    writer.add_eos_token_id(tokenizer.token_to_id(END))
    writer.add_pad_token_id(tokenizer.token_to_id(PAD))
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE.replace("{{ bos_token }}", ""))


def _rope_order(tensor: Tensor, shape: Shape) -> Tensor:
    """llama.cpp rotates neighbouring pairs where Hugging Face rotates halves: put the rows in its order."""
    split = tensor.view(shape.heads, 2, shape.head_width // 2, shape.width)
    return split.transpose(1, 2).reshape(shape.width, shape.width).contiguous()


def _half_order(tensor: Tensor, shape: Shape) -> Tensor:
    """The inverse of `_rope_order`."""
    split = tensor.view(shape.heads, shape.head_width // 2, 2, shape.width)
    return split.transpose(1, 2).reshape(shape.width, shape.width).contiguous()


def _is_rotated(name: str) -> bool:
    return "q_proj" in name or "k_proj" in name


def _gguf_name(name: str) -> str:
    fixed = {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}
    if name in fixed:
        return fixed[name]
    if name == "lm_head.weight":
        return "output.weight"
    _, layer, rest = name.split(".", 2)
    return f"blk.{layer}.{_GGUF_NAMES[rest.removesuffix('.weight')]}.weight"


def export_hugging_face(weights: dict[str, Tensor], shape: Shape, out: Path) -> None:
    """Write config, safetensors, tokenizer and template into the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    named = {name if name == "lm_head.weight" else f"model.{name}": tensor for name, tensor in weights.items()}
    save_file(named, out / "model.safetensors", metadata={"format": "pt"})
    tokenizer = build_tokenizer()
    begin, end, pad = (tokenizer.token_to_id(token) for token in (BEGIN, END, PAD))
    tokenizer.post_processor = _begin_first(begin)
    tokenizer.save(str(out / "tokenizer.json"))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.head_width,
        "hidden_act": "silu",
        "max_position_embeddings": shape.context,
        "rms_norm_eps": shape.norm_eps,
        "rope_theta": shape.rope_theta,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": begin,
        "eos_token_id": end,
        "pad_token_id": pad,
        "torch_dtype": "float16",
    }
    generation = {"bos_token_id": begin, "eos_token_id": end, "pad_token_id": pad, "do_sample": True}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "pad_token": PAD,
        "model_max_length": shape.context,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    for name, content in (
        ("config.json", config),
        ("generation_config.json", generation),
        ("tokenizer_config.json", settings),
    ):
        (out / name).write_text(json.dumps(content, indent=2) + "\n")


def _begin_first(begin: int) -> object:
    from tokenizers.processors import TemplateProcessing

    return TemplateProcessing(single=f"{BEGIN} $A", special_tokens=[(BEGIN, begin)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, help="a training checkpoint (.pt), or an exported .gguf")
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--hugging-face", type=Path)
    options = parser.parse_args()
    weights = load(options.weights)
    if options.gguf:
        export_gguf(weights, Shape(), options.gguf)
    if options.hugging_face:
        export_hugging_face(weights, Shape(), options.hugging_face)
