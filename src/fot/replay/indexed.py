"""A recording read from a pool's index: no text is touched unless a policy asks for it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from fot.core.markers import density
from fot.core.rollout import cut_chars, tokens_reaching
from fot.pools.index import Index
from fot.pools.read import Rows
from fot.replay.recording import recorded_confidences, recorded_probe

__all__ = ["IndexedRecording"]


class _Row(NamedTuple):
    """One rollout as views of the index: a handful of look-ups in them costs less than one numpy call."""

    chars: int
    tokens: int
    token_ends: Sequence[int] | None
    marker_ends: Sequence[int]
    commitment_ends: Sequence[int]
    commitment_answers: Sequence[int]


class Unread:
    """What is read from the pool only when a policy asks for it, and then for all rollouts of the problem."""

    def __init__(
        self, read_texts: Callable[[], list[str]], read_extras: Callable[[], list[Mapping[str, object]]]
    ) -> None:
        self._read_texts = read_texts
        self._read_extras = read_extras

    @cached_property
    def texts(self) -> list[str]:
        """The texts."""
        return self._read_texts()

    @cached_property
    def extras(self) -> list[Mapping[str, object]]:
        """The rows' further fields."""
        return self._read_extras()

    def text(self, rollout: int) -> str:
        """One rollout's text."""
        return self.texts[rollout]

    def fields(self, rollout: int) -> Mapping[str, object]:
        """One rollout's further fields."""
        return self.extras[rollout]

    def forget(self) -> None:
        """Give the memory back; what is asked for again is read again."""
        for name in ("texts", "extras"):
            self.__dict__.pop(name, None)


@dataclass(frozen=True, slots=True)
class IndexedPrefix:
    """The first `tokens` tokens of a rollout, by look-up."""

    rollout: int
    tokens: int
    chars: int
    row: _Row
    answers: Sequence[str]
    read_text: Callable[[int], str]
    read_extra: Callable[[int], Mapping[str, object]]

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
        return recorded_confidences(self.read_extra(self.rollout))[: self.tokens]


class IndexedRecording:
    """The rollouts of one problem, in order."""

    def __init__(self, rows: Sequence[_Row], answers: Sequence[str], unread: Unread) -> None:
        self._rows = rows
        self._answers = answers
        self._unread = unread

    @classmethod
    def of(
        cls,
        index: Index,
        rows: Rows,
        markers: Sequence[int] | None,
        read_texts: Callable[[], list[str]],
        read_extras: Callable[[], list[Mapping[str, object]]],
    ) -> IndexedRecording:
        """These rows of a pool; `markers` are numbers of the index's kernel (None: all)."""
        unread = Unread(read_texts, read_extras)
        return cls([_row(index, int(row), markers) for row in rows], index.answers, unread)

    def reordered(self, order: Sequence[int]) -> IndexedRecording:
        """The same rollouts read in another order: rollout i of the result is rollout `order[i]` of this."""
        return IndexedRecording(
            [self._rows[rollout] for rollout in order],
            self._answers,
            Unread(
                lambda: [self._unread.texts[rollout] for rollout in order],
                lambda: [self._unread.extras[rollout] for rollout in order],
            ),
        )

    def forget(self) -> None:
        """Let go of texts and further fields that were read."""
        self._unread.forget()

    def __len__(self) -> int:
        return len(self._rows)

    def tokens(self, rollout: int) -> int:
        return self._rows[rollout].tokens

    def prefix(self, rollout: int, tokens: int) -> IndexedPrefix:
        row = self._rows[rollout]
        tokens = min(tokens, row.tokens)
        chars = cut_chars(tokens, row.chars, row.tokens, row.token_ends)
        return IndexedPrefix(rollout, tokens, chars, row, self._answers, self._unread.text, self._unread.fields)

    def probe(self, rollout: int, tokens: int) -> tuple[str, int]:
        return recorded_probe(self._unread.fields(rollout), tokens)

    def commitment_tokens(self, rollout: int) -> Sequence[int]:
        row = self._rows[rollout]
        return list(
            dict.fromkeys(tokens_reaching(end, row.chars, row.tokens, row.token_ends) for end in row.commitment_ends)
        )


def _row(index: Index, row: int, markers: Sequence[int] | None) -> _Row:
    steps = index.commitments(row)
    ends = index.token_ends(row)
    return _Row(
        chars=int(index.n_chars[row]),
        tokens=int(index.n_tokens[row]),
        token_ends=None if ends is None else ends.data,
        marker_ends=index.marker_ends(row, markers).data,
        commitment_ends=[end for end, _ in steps],
        commitment_answers=[answer for _, answer in steps],
    )
