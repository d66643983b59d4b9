"""What every layer speaks about: one rollout, and how to cut it at a number of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "CHARS_PER_TOKEN",
    "Cut",
    "ProblemKey",
    "Rollout",
    "cut_chars",
    "cut_kind",
    "estimated_tokens",
    "tokens_reaching",
]

Cut = Literal["exact", "interpolated", "estimated"]
ProblemKey = tuple[str, str, str]

CHARS_PER_TOKEN = 3.5
"""Assumed where a rollout has no token count at all; a cut made with it is called `estimated`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One generated text of one problem, with what is known about its tokens."""

    model: str
    benchmark: str
    problem_id: str
    rollout_id: int
    text: str
    problem: str | None = None
    gold: str | None = None
    n_tokens: int | None = None
    finish_reason: str | None = None
    token_ends: Sequence[int] | None = None
    seed: int | None = None
    prompt_tokens: int | None = None
    source: str | None = None
    unbiased: bool = True
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> ProblemKey:
        """The problem that this rollout answers."""
        return (self.model, self.benchmark, self.problem_id)

    @property
    def tokens(self) -> int:
        """Generated tokens: counted, or estimated from the characters."""
        if self.n_tokens is not None:
            return self.n_tokens
        return len(self.token_ends) if self.token_ends is not None else estimated_tokens(len(self.text))

    @property
    def cut(self) -> Cut:
        """How a prefix of this rollout is found."""
        return cut_kind(self.n_tokens is not None, self.token_ends is not None)

    def prefix(self, tokens: int) -> str:
        """The text of the first `tokens` tokens (all of it when there are no more)."""
        return self.text[: cut_chars(tokens, len(self.text), self.tokens, self.token_ends)]


def estimated_tokens(chars: int) -> int:
    """Tokens of a text of which only the length is known."""
    return -int(-chars // CHARS_PER_TOKEN)


def cut_kind(has_count: bool, has_ends: bool) -> Cut:
    """Name the way in which prefixes of a rollout are cut."""
    if has_ends:
        return "exact"
    return "interpolated" if has_count else "estimated"


def cut_chars(tokens: int, chars: int, n_tokens: int, token_ends: Sequence[int] | None) -> int:
    """How many of a rollout's `chars` characters its first `tokens` tokens make.

    A rollout of at most `tokens` tokens is taken whole. Without token ends the cut is linear in characters.
    """
    if n_tokens <= tokens:
        return chars
    if tokens <= 0:
        return 0
    if token_ends is not None:
        return token_ends[tokens - 1]
    return chars * tokens // n_tokens


def tokens_reaching(end: int, chars: int, n_tokens: int, token_ends: Sequence[int] | None) -> int:
    """The smallest number of tokens whose prefix holds the first `end` characters: inverse of `cut_chars`."""
    if end <= 0:
        return 0
    if token_ends is not None:
        return min(_first_at_least(token_ends, end) + 1, n_tokens)
    return min(-(-end * n_tokens // chars), n_tokens)


def _first_at_least(ends: Sequence[int], value: int) -> int:
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if ends[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
