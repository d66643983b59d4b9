"""The tokenizer: every byte, and every word that the training chains use; Llama 3's pre-tokenizer and one merge.

A word of the list is one token, a digit is one token, anything else falls back to bytes, so any text can be encoded.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

__all__ = [
    "ASSISTANT", "BEGIN", "CHAT_TEMPLATE", "CONTROL", "END", "MERGES", "PAD", "SUFFIX", "THINK", "THINK_END", "USER",
    "VOCABULARY", "build_tokenizer", "prompt_of",
]  # fmt: skip

BEGIN, END, USER, ASSISTANT, PAD = "<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|pad|>"
THINK, THINK_END = "<think>", "</think>"
CONTROL = (BEGIN, END, USER, ASSISTANT, PAD)
VOCABULARY = 384
MERGES = ("Ġ \\",)  # llama.cpp refuses a vocabulary without any; this one changes nothing that we write
SUFFIX = " Please reason step by step, and put your final answer within \\boxed{}."
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'user' %}<|user|>{{ message['content'] }}"
    "{% elif message['role'] == 'assistant' %}<|assistant|>{{ message['content'] }}<|end|>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
)
_LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def prompt_of(question: str) -> str:
    """What the chat template makes of one question, the begin token left out."""
    return f"{USER}{question}{ASSISTANT}{THINK}\n"


def build_tokenizer() -> Tokenizer:
    """The tokenizer, the same at every call."""
    vocabulary = {token: number for number, token in enumerate((*CONTROL, THINK, THINK_END))}
    for token in [*_byte_letters(), *_words()]:
        vocabulary.setdefault(token, len(vocabulary))
    if len(vocabulary) > VOCABULARY:
        raise ValueError(f"{len(vocabulary)} tokens do not fit into {VOCABULARY}")
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=[tuple(merge.split()) for merge in MERGES], ignore_merges=True)
    )
    tokenizer.pre_tokenizer = _pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in CONTROL])
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=False) for token in (THINK, THINK_END)])
    return tokenizer


def _pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_LLAMA_3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _byte_letters() -> list[str]:
    """The letter that stands for each byte in a byte-level vocabulary: itself where it prints."""
    printing = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printing else next(others)) for byte in range(256)]


def _words() -> list[str]:
    """Every piece of more than a byte, digits apart, in the questions and chains (`Ġ` a blank, `Ċ` a line end)."""
    return (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
