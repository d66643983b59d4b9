"""A recording made from rollouts in memory: texts are read as they stand, nothing is indexed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fot.core.answers import answer_key
from fot.core.commit import Commitment, commitments
from fot.core.markers import PAPER_KERNEL, Kernel, count, density
from fot.core.rollout import Rollout, cut_chars, tokens_reaching

__all__ = ["TextPrefix", "TextRecording"]


@dataclass(frozen=True, slots=True)
class TextPrefix:
    """The first `tokens` tokens of a rollout."""

    rollout: int
    tokens: int
    text: str
    answer: str | None
    final_tokens: int
    kernel: Kernel = PAPER_KERNEL
    confidences: Sequence[float] = field(default=())

    @property
    def chars(self) -> int:
        return len(self.text)

    @property
    def density(self) -> float:
        return density(count(self.text, self.kernel), len(self.text))


class TextRecording:
    """The rollouts of one problem, in order."""

    def __init__(self, rollouts: Sequence[Rollout], detector: str, kernel: Kernel = PAPER_KERNEL) -> None:
        self._rollouts = rollouts
        self._kernel = kernel
        self._steps: list[list[Commitment]] = [commitments(r.text, detector, r.problem) for r in rollouts]

    def __len__(self) -> int:
        return len(self._rollouts)

    def tokens(self, rollout: int) -> int:
        return self._rollouts[rollout].tokens

    def prefix(self, rollout: int, tokens: int) -> TextPrefix:
        recorded = self._rollouts[rollout]
        tokens = min(tokens, recorded.tokens)
        chars = cut_chars(tokens, len(recorded.text), recorded.tokens, recorded.token_ends)
        answer = None
        for step in self._steps[rollout]:
            if step.end <= chars:
                answer = step.answer
        key = None if answer is None else answer_key(answer)
        return TextPrefix(rollout, tokens, recorded.text[:chars], key, recorded.tokens, self._kernel)

    def commitment_tokens(self, rollout: int) -> Sequence[int]:
        recorded = self._rollouts[rollout]
        ends = (
            tokens_reaching(step.end, len(recorded.text), recorded.tokens, recorded.token_ends)
            for step in self._steps[rollout]
        )
        return list(dict.fromkeys(ends))
