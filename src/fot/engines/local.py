"""What the engines of this process have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fot.engines.base import Capabilities, Request
from fot.errors import ConfigError

__all__ = ["LocalEngine", "prompt_ids"]


class LocalEngine:
    """Runs at most `parallel` rollouts at once, and tells everything about them."""

    has_barrier = False

    def __init__(self, parallel: int) -> None:
        if parallel < 1:
            raise ConfigError(f"parallel={parallel} is too few", "At least one rollout must run.")
        self._parallel = parallel

    async def capabilities(self) -> Capabilities:
        return Capabilities(
            exact_counts=True,
            token_ends=True,
            seeds=True,
            abort="explicit",
            resume=True,
            barrier=self.has_barrier,
            logprobs=True,
            max_parallel=self._parallel,
        )


def prompt_ids(tokenizer: Any, request: Request, opening: str) -> list[int]:
    """A request's prompt as a Hugging Face tokenizer spells it, with what the rollout has already generated.

    `opening` is the tag that the model begins with, which is no part of a rollout's text.
    """
    rest = opening + request.prefix if request.prefix else ""
    if request.prompt is not None:
        return list(tokenizer(request.prompt + rest).input_ids)
    options = request.sampling.extra.get("chat_template_kwargs")
    more = options if isinstance(options, Mapping) else {}
    messages = [dict(message) for message in request.messages]
    chat = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **more)
    return list(tokenizer(chat + rest, add_special_tokens=False).input_ids)
