"""Sample rollouts of an exported GGUF in this process, through xllamacpp, many streams at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xllamacpp
from tokenizer import CONTROL, build_tokenizer, prompt_of

__all__ = ["CAP", "Rollout", "Sampler"]

CAP = 920
"""Tokens after which a rollout is cut: a context of 1,024 less the longest question."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What one stream generated."""

    text: str
    token_ids: tuple[int, ...]
    token_ends: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int


class Sampler:
    """An engine with `streams` slots of a whole context each."""

    def __init__(self, model: Path, streams: int, threads: int = 1) -> None:
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_ctx = 1024 * streams
        params.n_parallel = streams
        params.kv_unified = False
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.verbosity = 1
        params.warmup = False
        self._server = xllamacpp.Server(params)
        self._streams = streams
        tokenizer = build_tokenizer()
        self._pieces = [
            "" if (token := tokenizer.id_to_token(number)) in CONTROL else _piece(tokenizer, token, number)
            for number in range(tokenizer.get_vocab_size())
        ]

    def sample(self, questions: Sequence[str], seeds: Sequence[int], **settings: Any) -> list[Rollout]:
        """One rollout for each question and seed, in their order."""
        with ThreadPoolExecutor(self._streams) as pool:
            return list(pool.map(lambda pair: self._one(*pair, settings), zip(questions, seeds, strict=True)))

    def _one(self, question: str, seed: int, settings: dict[str, Any]) -> Rollout:
        request = {
            "prompt": prompt_of(question),
            "seed": seed,
            "n_predict": CAP,
            "temperature": 0.7,
            "top_k": 0,
            "top_p": 1.0,
            "min_p": 0.0,
            "logprobs": 1,
            "cache_prompt": False,
            **settings,
        }
        answer = self._server.handle_completions(request)
        if "choices" not in answer:
            raise RuntimeError(f"the engine answered {answer}")
        choice = answer["choices"][0]
        tokens = tuple(item["id"] for item in choice["logprobs"]["content"])
        pieces = [self._pieces[token] for token in tokens]
        return Rollout(
            text="".join(pieces),
            token_ids=tokens,
            token_ends=tuple(itertools.accumulate(map(len, pieces))),
            finish_reason=choice["finish_reason"],
            prompt_tokens=answer["usage"]["prompt_tokens"],
        )


def _piece(tokenizer: Any, token: str, number: int) -> str:
    text: str = tokenizer.decode([number], skip_special_tokens=False)
    return text
