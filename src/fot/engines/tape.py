"""A recorded rollout as a tape: which characters, on which channel, its tokens are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from fot.core.rollout import Rollout, cut_chars
from fot.engines.base import Channel, Chunk, FinishReason

__all__ = ["TAG", "Tape"]

TAG = "</think>"


class Tape:
    """Cuts a recording into chunks. `is_split`: reasoning and content come on two channels, the tag on neither.

    The split needs the tag to be one token of its own; where it is not, the text comes whole, as from a server that
    knows nothing of reasoning.
    """

    def __init__(self, rollout: Rollout, *, is_split: bool = False, tells_ends: bool = True) -> None:
        self.rollout = rollout
        self.tokens = rollout.tokens
        self.finish_reason: FinishReason = "length" if rollout.finish_reason in ("length", "abort") else "stop"
        self._tells_ends = tells_ends
        self._tag = self._find_tag() if is_split else None
        confidences = rollout.extra.get("confidences")
        self.confidences: Sequence[float] = confidences if isinstance(confidences, list | tuple) else ()

    def chars(self, tokens: int) -> int:
        """How many characters the first `tokens` tokens make."""
        recorded = self.rollout
        return cut_chars(tokens, len(recorded.text), self.tokens, recorded.token_ends)

    def tokens_within(self, chars: int) -> int:
        """How many tokens lie wholly within the first `chars` characters."""
        return bisect_right(range(1, self.tokens + 1), chars, key=self.chars)

    def chunks(self, start: int, stop: int, finish_reason: FinishReason | None, origin: int) -> Iterator[Chunk]:
        """Tokens `start` to `stop`, counted from `origin`; the last chunk carries the finish reason.

        Nearly always one chunk; two where the channel changes.
        """
        tag = self._tag
        if tag is not None and start < tag < stop:
            yield self._chunk(start, tag, None, origin)
            start = tag
        yield self._chunk(start, stop, finish_reason, origin)

    def _chunk(self, start: int, stop: int, finish_reason: FinishReason | None, origin: int) -> Chunk:
        begin, end = self.chars(start), self.chars(stop)
        channel: Channel = "content"
        if self._tag is not None:
            channel = "content" if stop > self._tag else "reasoning"
            begin += len(TAG) if start == self._tag and stop > start else 0
        ends = tuple(self.chars(t) - begin for t in range(start + 1, stop + 1)) if self._tells_ends else ()
        return Chunk(
            text=self.rollout.text[begin:end],
            tokens=stop - origin,
            ends=ends,
            channel=channel,
            finish_reason=finish_reason,
            confidences=tuple(self.confidences[start:stop]),
        )

    def _find_tag(self) -> int | None:
        """The number of tokens before the tag, when the next one is the tag; all of them when there is no tag."""
        at = self.rollout.text.find(TAG)
        if at < 0:
            return self.tokens
        before = self.tokens_within(at)
        is_token = self.chars(before) == at and self.chars(before + 1) == at + len(TAG)
        return before if is_token else None
