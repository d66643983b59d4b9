"""A recording made from rollouts in memory: texts are read as they stand, nothing is indexed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fot.core.answers import answer_key
from fot.core.commit import Commitment, commitments
from fot.core.markers import PAPER_KERNEL, Kernel, count, density
from fot.core.rollout import Rollout, cut_chars, tokens_reaching
from fot.errors import ConfigError

__all__ = ["TextPrefix", "TextRecording", "recorded_confidences", "recorded_probe"]


def recorded_confidences(extra: Mapping[str, object]) -> list[float]:
    """One confidence for each token, from a row's field `confidences`; `ConfigError` where it has none."""
    values = extra.get("confidences")
    if not isinstance(values, list):
        raise ConfigError("a rollout has no token confidences", "Leave out methods that need them.")
    return [float(value) for value in values]


def recorded_probe(extra: Mapping[str, object], tokens: int) -> tuple[str, int]:
    """Answer and cost of the probe at exactly `tokens` tokens, from a row's field `probes`.

    That is a list of objects with `tokens`, `text` and `cost`.
    """
    probes = extra.get("probes")
    for probe in probes if isinstance(probes, list) else ():
        if probe["tokens"] == tokens:
            return str(probe["text"]), int(probe["cost"])
    raise ConfigError(
        f"no probe was recorded at {tokens} tokens of a rollout",
        "Look as often as the pool was probed, or leave out methods that need probes.",
    )


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
        text, kernel, extra = recorded.text[:chars], self._kernel, recorded.extra
        confidences = recorded_confidences(extra)[:tokens] if "confidences" in extra else ()
        return TextPrefix(rollout, tokens, text, key, recorded.tokens, kernel, confidences)

    def probe(self, rollout: int, tokens: int) -> tuple[str, int]:
        return recorded_probe(self._rollouts[rollout].extra, tokens)

    def commitment_tokens(self, rollout: int) -> Sequence[int]:
        recorded = self._rollouts[rollout]
        ends = (
            tokens_reaching(step.end, len(recorded.text), recorded.tokens, recorded.token_ends)
            for step in self._steps[rollout]
        )
        return list(dict.fromkeys(ends))
