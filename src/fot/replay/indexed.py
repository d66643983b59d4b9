"""A recording read from a pool's index: no text is touched unless a policy asks for it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fot.core.markers import density
from fot.core.rollout import cut_chars, tokens_reaching
from fot.pools.index import Index
from fot.pools.read import Rows

__all__ = ["IndexedRecording"]


class _Row(NamedTuple):
    """One rollout as plain lists: a handful of look-ups in them costs less than one numpy call."""

    chars: int
    tokens: int
    token_ends: Sequence[int] | None
    marker_ends: list[int]
    commitment_ends: list[int]
    commitment_answers: list[int]


@dataclass(frozen=True, slots=True)
class IndexedPrefix:
    """The first `tokens` tokens of a rollout, by look-up."""

    rollout: int
    tokens: int
    chars: int
    row: _Row
    answers: Sequence[str]
    read_text: Callable[[int], str]

    @property
    def answer(self) -> str | None:
        step = bisect_right(self.row.commitment_ends, self.chars) - 1
        number = self.row.commitment_answers[step] if step >= 0 else -1
        return self.answers[number] if number >= 0 else None

    @property
    def density(self) -> float:
        return density(bisect_right(self.row.marker_ends, self.chars), self.chars)

    @property
    def text(self) -> str:
        return self.read_text(self.rollout)[: self.chars]

    @property
    def final_tokens(self) -> int:
        return self.row.tokens

    @property
    def confidences(self) -> Sequence[float]:
        raise NotImplementedError  # a driver refuses policies that need them


class IndexedRecording:
    """The rollouts of one problem, in order."""

    def __init__(self, rows: Sequence[_Row], answers: Sequence[str], read_texts: Callable[[], list[str]]) -> None:
        self._rows = rows
        self._answers = answers
        self._read_texts = read_texts
        self._texts: list[str] | None = None

    @classmethod
    def of(
        cls, index: Index, rows: Rows, markers: Sequence[int] | None, read_texts: Callable[[], list[str]]
    ) -> IndexedRecording:
        """These rows of a pool; `markers` are numbers of the index's kernel (None: all)."""
        return cls([_row(index, int(row), markers) for row in rows], index.answers, read_texts)

    def reordered(self, order: Sequence[int]) -> IndexedRecording:
        """The same rollouts read in another order: rollout i of the result is rollout `order[i]` of this."""
        return IndexedRecording(
            [self._rows[rollout] for rollout in order],
            self._answers,
            lambda: [self._text(rollout) for rollout in order],
        )

    def __len__(self) -> int:
        return len(self._rows)

    def tokens(self, rollout: int) -> int:
        return self._rows[rollout].tokens

    def prefix(self, rollout: int, tokens: int) -> IndexedPrefix:
        row = self._rows[rollout]
        tokens = min(tokens, row.tokens)
        chars = cut_chars(tokens, row.chars, row.tokens, row.token_ends)
        return IndexedPrefix(rollout, tokens, chars, row, self._answers, self._text)

    def commitment_tokens(self, rollout: int) -> Sequence[int]:
        row = self._rows[rollout]
        return list(
            dict.fromkeys(tokens_reaching(end, row.chars, row.tokens, row.token_ends) for end in row.commitment_ends)
        )

    def _text(self, rollout: int) -> str:
        if self._texts is None:
            self._texts = self._read_texts()
        return self._texts[rollout]


def _row(index: Index, row: int, markers: Sequence[int] | None) -> _Row:
    steps = index.commitments(row)
    ends = index.token_ends(row)
    return _Row(
        chars=int(index.n_chars[row]),
        tokens=int(index.n_tokens[row]),
        token_ends=None if ends is None else ends.tolist(),
        marker_ends=index.marker_ends(row, markers).tolist(),
        commitment_ends=[end for end, _ in steps],
        commitment_answers=[answer for _, answer in steps],
    )
