"""One rollout's text as it comes, and its prefixes at exact numbers of tokens, however it was chunked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from fot.core.answers import answer_key
from fot.core.commit import Commitment, Tracker
from fot.core.markers import Kernel, MarkerCounter, density
from fot.core.rollout import CHARS_PER_TOKEN, Cut
from fot.engines.base import Chunk
from fot.errors import ConfigError

__all__ = ["REASONING_END", "LivePrefix", "LiveText"]

REASONING_END = "</think>"


class LiveText:
    """Grows by chunks. The last token is open, its text may still grow, until another one follows or the text ends.

    Without `is_counted` the engine's counts are not used: every so many characters are a token, whatever the chunks.
    With `is_followed` commitments are looked for in every chunk, otherwise when somebody asks.
    """

    def __init__(self, kernel: Kernel, tracker: Tracker, *, is_counted: bool = True, is_followed: bool = False) -> None:
        self.tokens = 0
        self.chars = 0
        self.is_whole = False
        self.is_interpolated = False
        """Some token ends were not told, and taken to lie evenly over their chunk."""
        self.ends: list[int] = []
        self.confidences: list[float] = []
        self._is_counted = is_counted
        self._is_followed = is_followed
        self._in_reasoning = False
        self._pieces: list[str] = []
        self._counter = MarkerCounter(kernel)
        self._uncounted: list[str] = []
        self._tracker = tracker
        self._untracked: list[str] = []
        self._steps: list[Commitment] = []
        self._told = 0  # steps whose number of tokens has been told
        self._last_told = -1

    def add(self, chunk: Chunk, base: int) -> None:
        """Take the next chunk in; `base` is the number of tokens that were there when its request began."""
        new = max(base + chunk.tokens - self.tokens, 0)
        if chunk.channel == "reasoning":
            self._in_reasoning = True
        elif self._in_reasoning and (chunk.text or new):
            self._in_reasoning = False
            self._append(REASONING_END)
        start = self.chars
        if chunk.text:
            self._append(chunk.text)
        if self._is_counted:
            self._mark(chunk.ends, start, new)
        else:
            self._estimate()
        if chunk.confidences:
            self.confidences += chunk.confidences

    def finish(self) -> None:
        """Nothing follows any more."""
        self.is_whole = True
        if not self._is_counted and self.chars > (self.ends[-1] if self.ends else 0):
            self.ends.append(self.chars)
            self.tokens += 1
        if self.ends:
            self.ends[-1] = self.chars

    def _append(self, piece: str) -> None:
        self.chars += len(piece)
        self._pieces.append(piece)
        self._uncounted.append(piece)
        if self._is_followed:
            self._steps += self._tracker.feed(piece)
        else:
            self._untracked.append(piece)

    def _mark(self, ends: Sequence[int], start: int, new: int) -> None:
        self.tokens += new
        if new and len(ends) == new:
            self.ends += [start + end for end in ends] if start else ends
        elif new == 1:
            self.ends.append(self.chars)
        elif new:
            length = self.chars - start
            self.ends += [start + length * number // new for number in range(1, new + 1)]
            self.is_interpolated = True
        elif self.ends:
            self.ends[-1] = self.chars

    def _estimate(self) -> None:
        self.tokens = int(self.chars / CHARS_PER_TOKEN)
        self.ends += [int(number * CHARS_PER_TOKEN) for number in range(len(self.ends) + 1, self.tokens + 1)]

    @property
    def cut(self) -> Cut:
        """How prefixes are found."""
        if not self._is_counted:
            return "estimated"
        return "interpolated" if self.is_interpolated else "exact"

    @property
    def text(self) -> str:
        """All that has come."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def chars_at(self, tokens: int) -> int:
        """How many characters the first `tokens` tokens make."""
        if tokens >= self.tokens and self.is_whole:
            return self.chars
        return self.ends[min(tokens, self.tokens) - 1] if tokens > 0 and self.ends else 0

    def markers_within(self, chars: int) -> int:
        """Markers of the kernel in the first `chars` characters."""
        if self._uncounted:
            self._counter.feed("".join(self._uncounted))
            self._uncounted.clear()
        return self._counter.within(chars)

    def answer_within(self, chars: int) -> str | None:
        """The answer, as written, that the first `chars` characters commit to."""
        if self._untracked:
            self._steps += self._tracker.feed("".join(self._untracked))
            self._untracked.clear()
        at = bisect_left(self._steps, chars + 1, key=lambda step: step.end)
        return self._steps[at - 1].answer if at else None

    def new_commitments(self) -> list[int]:
        """Numbers of tokens at which the committed answer changes, as far as not told before; rising."""
        if not self._is_followed or self._told == len(self._steps):
            return []
        known = self.ends[-1] if self.ends else 0
        found: list[int] = []
        while self._told < len(self._steps) and (self._steps[self._told].end <= known or self.is_whole):
            tokens = min(bisect_left(self.ends, self._steps[self._told].end) + 1, self.tokens)
            if tokens != self._last_told:
                found.append(tokens)
            self._last_told = tokens
            self._told += 1
        return found

    def prefix(self, rollout: int, tokens: int) -> LivePrefix:
        """The first `tokens` tokens, or all when there are no more."""
        tokens = min(tokens, self.tokens)
        return LivePrefix(rollout, tokens, self.chars_at(tokens), self)


class LivePrefix:
    """A prefix that is read when it is looked at; what lies behind its end never shows."""

    __slots__ = ("_live", "chars", "rollout", "tokens")

    def __init__(self, rollout: int, tokens: int, chars: int, live: LiveText) -> None:
        self.rollout = rollout
        self.tokens = tokens
        self.chars = chars
        self._live = live

    @property
    def answer(self) -> str | None:
        written = self._live.answer_within(self.chars)
        return None if written is None else answer_key(written)

    @property
    def density(self) -> float:
        return density(self._live.markers_within(self.chars), self.chars)

    @property
    def text(self) -> str:
        return self._live.text[: self.chars]

    @property
    def confidences(self) -> Sequence[float]:
        return self._live.confidences[: self.tokens]

    @property
    def final_tokens(self) -> int:
        raise ConfigError("a live rollout's final length is not known", "Use a method that does not need it.")
