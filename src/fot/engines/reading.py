"""From the events of an OpenAI-compatible stream to chunks."""

from __future__ import annotations

from fot.core.rollout import estimated_tokens
from fot.engines.base import Channel, Chunk, FinishReason, Request
from fot.engines.wire import Choice, Event, Failure, Logprobs, confidence, decode_event
from fot.errors import EngineRefused

__all__ = ["OPENING", "ChunkReader", "Opening", "ends_of", "finish_reason", "remaining_tokens"]

OPENING = "<think>"
_SERVER_ERROR = 500


def remaining_tokens(request: Request) -> int | None:
    """How many tokens this request may still generate, by its own cap and by the rollout's; None: no cap."""
    caps = [] if request.max_tokens is None else [request.max_tokens]
    if request.sampling.max_tokens is not None:
        caps.append(request.sampling.max_tokens - request.prefix_tokens)
    return max(0, min(caps)) if caps else None


def finish_reason(told: str) -> FinishReason:
    """Servers know more reasons than there are here; every end of the model's own choosing is a stop."""
    if told in ("length", "max_tokens", "limit"):
        return "length"
    return "abort" if told in ("abort", "aborted", "cancelled") else "stop"


def ends_of(text: str, new_tokens: int) -> tuple[int, ...]:
    """Where the tokens of a piece end, when that is certain.

    One token ends with the piece. Several tokens for one character: all but the last were parts of it, held back.
    """
    if new_tokens == 1:
        return (len(text),)
    if new_tokens > 1 and len(text) <= 1:
        return (0,) * (new_tokens - 1) + (len(text),)
    return ()


class Opening:
    """Takes the opening tag of inline reasoning away, which is no part of a rollout's text."""

    def __init__(self, *, is_looked_for: bool) -> None:
        self._held = ""
        self._is_open = is_looked_for
        self.was_seen = False

    def take(self, text: str) -> str:
        """The part of the text that is ready; what may be the tag is held until that is certain."""
        if not self._is_open:
            return text
        self._held += text
        if OPENING.startswith(self._held) and self._held != OPENING:
            return ""
        self._is_open = False
        self.was_seen = self._held.startswith(OPENING)
        return self.rest().removeprefix(OPENING)

    def rest(self) -> str:
        """What is held, when nothing more will come."""
        held, self._held = self._held, ""
        return held


class ChunkReader:
    """Reads one stream. `feed` gives chunks without finish reason; `last` ends them."""

    def __init__(self, request: Request) -> None:
        self._id = request.id
        self._alternatives = request.logprobs
        self.opening = Opening(is_looked_for=not request.prefix)
        self._channel: Channel | None = None
        self._told_tokens = self._emitted = self._untold_chars = 0
        self._prompt: int | None = None
        self._cached: int | None = None
        self.tokens = 0
        self.is_counted = False
        """Did the engine count, with every chunk so far?"""
        self.is_done = False
        """Has the server said that nothing more comes?"""
        self.finish: FinishReason | None = None

    def feed(self, data: bytes) -> list[Chunk]:
        """The chunks of one event, usually one."""
        if data == b"[DONE]":
            self.is_done = True
            return []
        event = decode_event(data)
        if event.error is not None:
            raise self._failure(event.error)
        choice = next((c for c in event.choices if c.index == 0), None)
        self._count(event, choice)
        if choice is None:
            return []
        if choice.finish_reason:
            self.finish = finish_reason(choice.finish_reason)
        return self._chunks(choice)

    def last(self, *, is_cut: bool) -> Chunk:
        """The chunk that ends the stream."""
        text = self.opening.rest()
        return Chunk(
            text=text,
            tokens=self.tokens,
            channel=self._channel or "content",
            finish_reason=self.finish or ("abort" if is_cut else "stop"),
            prompt_tokens=self._prompt,
            cached_tokens=self._cached,
            is_estimated=not self.is_counted,
        )

    def _grown(self, text: str, before: int, confidences: tuple[float, ...]) -> Chunk:
        """The chunk of a native event, which brought `text`, and the count from `before` to what it is now."""
        return Chunk(
            text=text,
            tokens=self.tokens,
            ends=ends_of(text, self.tokens - before),
            confidences=confidences,
            prompt_tokens=self._prompt,
            cached_tokens=self._cached,
        )

    def _count(self, event: Event, choice: Choice | None) -> None:
        """Bring `tokens` up to date: as told, or by their ids, or estimated."""
        told = None
        if event.usage is not None:
            told = event.usage.completion_tokens
            self._prompt, self._cached = event.usage.prompt_tokens, event.usage.cached_tokens
        elif event.timings is not None:
            told = event.timings.predicted_n
            self._cached = event.timings.cache_n
            self._prompt = (event.timings.prompt_n or 0) + (self._cached or 0)
        if told is None and choice is not None and choice.token_ids is not None:
            told = self.tokens + len(choice.token_ids)
        if told is not None:
            self.tokens = self._told_tokens = told
            self._untold_chars = 0
            self.is_counted = True
        elif choice is not None and (chars := sum(len(text) for text, _ in _texts(choice))):
            self._untold_chars += chars
            self.tokens = self._told_tokens + estimated_tokens(self._untold_chars)
            self.is_counted = False

    def _chunks(self, choice: Choice) -> list[Chunk]:
        pieces = _texts(choice)
        # Tokens that showed no text yet belong to the next text: halves of a character, or a tag that was left out.
        new_tokens = self.tokens - self._emitted
        chunks = []
        for number, (raw, channel) in enumerate(pieces, 1):
            text = self.opening.take(raw) if channel == "content" and self._channel is None else raw
            if not text:
                continue
            is_turn = self._channel == "reasoning" and channel == "content"
            self._channel = channel
            if number == len(pieces):
                self._emitted = self.tokens
            ends, confidences = self._told(choice.logprobs, text, new_tokens if len(pieces) == 1 else 0, is_turn)
            chunks.append(
                Chunk(
                    text=text,
                    tokens=self._emitted,
                    ends=ends,
                    channel=channel,
                    confidences=confidences,
                    prompt_tokens=self._prompt,
                    cached_tokens=self._cached,
                    is_estimated=not self.is_counted,
                )
            )
        return chunks

    def _told(
        self, logprobs: Logprobs | None, text: str, new_tokens: int, is_turn: bool
    ) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Token ends and confidences of one chunk."""
        tokens, confidences = _chosen(logprobs, self._alternatives)
        if tokens and "".join(tokens) == text:
            ends, at = [], 0
            for token in tokens:
                at += len(token)
                ends.append(at)
            return tuple(ends), confidences
        if not self.is_counted:
            return (), confidences
        if is_turn and new_tokens == 2:  # the left-out tag, and the first token after it
            return (0, len(text)), confidences
        return ends_of(text, new_tokens), confidences

    def _failure(self, error: Failure | str) -> EngineRefused:
        message = error if isinstance(error, str) else error.message
        code = error.code if isinstance(error, Failure) else None
        return self._refusal(message, code if isinstance(code, int) and code >= 400 else _SERVER_ERROR)

    def _refusal(self, message: str, status: int) -> EngineRefused:
        return EngineRefused(
            f"the engine reports an error: {message[:200]}",
            status=status,
            retryable=status >= _SERVER_ERROR or status == 429,
            request_id=self._id,
        )


def _texts(choice: Choice) -> list[tuple[str, Channel]]:
    """The pieces of a choice with their channels."""
    if choice.delta is None:
        return [(choice.text or "", "content")]
    reasoning = choice.delta.reasoning or choice.delta.reasoning_content
    pieces: list[tuple[str, Channel]] = [(reasoning, "reasoning")] if reasoning else []
    if choice.delta.content or not pieces:
        pieces.append((choice.delta.content or "", "content"))
    return pieces


def _chosen(logprobs: Logprobs | None, alternatives: int) -> tuple[list[str], tuple[float, ...]]:
    """The tokens that log-probabilities were told for, and the confidence of each."""
    if logprobs is None:
        return [], ()
    if logprobs.content is not None:
        tokens = [chosen.token for chosen in logprobs.content]
        tops = [[a.logprob for a in chosen.top_logprobs or ()] for chosen in logprobs.content]
    else:
        tokens = logprobs.tokens or []
        tops = [sorted((top or {}).values(), reverse=True) for top in logprobs.top_logprobs or ()]
    return tokens, tuple(confidence(top[:alternatives]) for top in tops if top)
