"""Answers, chunks and errors in OpenAI's shape; ours stands under the one key `fot`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from fot.core.answers import answer_key
from fot.core.commit import committed_answer
from fot.core.policy import Fate
from fot.errors import ConfigError, EngineError, EngineRefused, EngineTimeout, EngineUnavailable, FotError
from fot.online.result import Result, RolloutResult
from fot.online.text import REASONING_END
from fot.serve.protocol import BadRequest, advice
from fot.serve.settings import ReasoningField

__all__ = ["DONE", "Failure", "Told", "Writer", "comment", "failure", "frame", "summary", "told", "usage"]

DONE = b"data: [DONE]\n\n"
PIECE = 2048
"""Characters of an answer in one chunk."""
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
_DENIED = (401, 403)
_UNREAD = (408, 413)
"""The rest of the request is not going to be read: the connection is of no use any more."""
_FIELDS = {"vllm": "reasoning"}
_STATEMENTS = {"boxed": "\\boxed{{{}}}", "paper": "\\boxed{{{}}}", "choice": "Answer: {}", "code": "```\n{}\n```"}


def frame(value: object) -> bytes:
    """One event of a stream."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def comment(value: object) -> bytes:
    """A line that clients skip, unless they look for it."""
    return b": fot " + msgspec.json.encode(value) + b"\n\n"


class Failure(NamedTuple):
    """An error as clients of OpenAI know it."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None
    retry_after_s: float | None = None

    @property
    def body(self) -> dict[str, object]:
        """The JSON of it."""
        kind = _TYPES.get(self.status, "rate_limit_error" if self.status == 429 else "server_error")
        if 400 < self.status < 500 and self.status not in _TYPES and self.status != 429:
            kind = "invalid_request_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        """Headers that go with it."""
        if self.status in _UNREAD:
            return {"connection": "close"}
        if self.retry_after_s is None:
            return {}
        return {"retry-after": str(max(1, math.ceil(self.retry_after_s)))}


def failure(error: Exception, hidden: Mapping[str, str]) -> Failure:
    """What a client is told of an error; of `hidden`, which are addresses of upstreams, it sees the names only."""
    message = str(error)
    for secret, shown in hidden.items():
        message = message.replace(secret, shown)
    match error:
        case BadRequest():
            told = Failure(error.status, message, error.param, error.code)
        case EngineRefused():
            told = _refusal(error, message)
        case EngineTimeout():
            told = Failure(504, message, code="upstream_timeout")
        case EngineUnavailable():
            told = Failure(503, message, code="upstream_unavailable", retry_after_s=error.retry_after_s or 5)
        case EngineError():
            told = Failure(502, message, code="upstream_error")
        case ConfigError():
            told = Failure(400, advice(message, error.hint), "fot")
        case FotError():
            told = Failure(getattr(error, "status", 500), message, code=getattr(error, "code", None))
        case _:
            told = Failure(500, f"the server failed: {type(error).__name__}", code="internal_error")
    return told


def _refusal(error: EngineRefused, message: str) -> Failure:
    if error.status in _DENIED:  # our key for the upstream is wrong, not the client's for us
        return Failure(502, "the upstream refuses this server's key", code="upstream_denied")
    if 400 <= error.status < 500:
        return Failure(error.status, message, code="upstream_refused", retry_after_s=error.retry_after_s)
    return Failure(502, message, code="upstream_error", retry_after_s=error.retry_after_s)


# --- what a run comes to


def summary(run_id: str, result: Result) -> dict[str, object]:
    """The key `fot` of an answer."""
    told = result.as_json()
    return {
        "id": run_id,
        "answer": result.answer,
        "votes": told["votes"],
        "fates": [rollout.fate.value for rollout in result.rollouts],
        "stops": [rollout.tokens for rollout in result.rollouts],
        "answers": [rollout.answer for rollout in result.rollouts],
        "savings": told["savings"],
        "usage": told["usage"],
        "policy": result.policy,
        "k": len(result.rollouts),
        "way": result.way,
        "counts": result.counts,
        "wall_s": told["wall_s"],
        "interrupted": result.is_interrupted,
        "failures": len(result.failures),
    }


def usage(result: Result) -> dict[str, object]:
    """What the run cost, in OpenAI's words: every rollout's prompt, every token generated."""
    spent = result.usage
    return {
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "total_tokens": spent.prompt_tokens + spent.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": spent.cached_tokens},
        "completion_tokens_details": {
            "overshoot_tokens": spent.overshoot_tokens,
            "probe_tokens": spent.probe_tokens,
            "warm_up_tokens": spent.warm_up_tokens,
        },
    }


class Told(NamedTuple):
    """The text of an answer, split as the upstream would."""

    reasoning: str
    content: str
    finish_reason: str


def told(result: Result, commit: str) -> Told:
    """What the speaker said; without a winner what the first that finished said, else the longest text."""
    rollout = result.speaker or _somebody(result)
    if rollout is None:
        return Told("", "", "stop")
    reason = "length" if rollout.finish_reason == "length" and rollout.fate is Fate.FINISHED else "stop"
    thought, tag, rest = rollout.said.partition(REASONING_END)
    # One that was stopped amid its thoughts shows no end of them, but others of the run do.
    thinks = bool(tag) or (rollout.answer is not None and any(REASONING_END in other.text for other in result.rollouts))
    if not thinks:
        return Told("", rollout.said, reason)
    return Told(thought.strip("\n"), _last_words(rollout, rest.lstrip("\n"), commit), reason)


def _last_words(rollout: RolloutResult, said: str, commit: str) -> str:
    """What it said after its thoughts; its answer alone where it was stopped before that could be read there."""
    if rollout.answer is None or (said and rollout.fate is Fate.FINISHED):
        return said
    written = committed_answer(REASONING_END + said, commit)
    if written is not None and answer_key(written) == rollout.answer:
        return said
    return _STATEMENTS.get(commit, "{}").format(rollout.answer)


def _somebody(result: Result) -> RolloutResult | None:
    finished = [r for r in result.rollouts if r.fate is Fate.FINISHED and r.text]
    return finished[0] if finished else max(result.rollouts, key=lambda r: len(r.text), default=None)


class Writer:
    """Writes the answer to one request, whole or in chunks."""

    def __init__(self, run_id: str, model: str, created: int, engine: str, asked: ReasoningField) -> None:
        self.run_id = run_id
        self.engine = engine
        """Which server the upstream is; known once there is one."""
        self._head: dict[str, Any] = {"id": f"chatcmpl-{run_id}", "created": created, "model": model}
        self._asked = asked

    @property
    def _field(self) -> str:
        return _FIELDS.get(self.engine, "reasoning_content") if self._asked == "auto" else self._asked

    def whole(self, result: Result, commit: str) -> dict[str, object]:
        """A `chat.completion`."""
        said = self._placed(told(result, commit))
        message: dict[str, object] = {"role": "assistant", "content": said.content, "refusal": None}
        if said.reasoning:
            message[self._field] = said.reasoning
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": said.finish_reason}
        return self._head | {
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage(result),
            "fot": summary(self.run_id, result),
        }

    def opening(self) -> bytes:
        """The first chunk."""
        return self._chunk({"role": "assistant", "content": ""})

    def aside(self, text: str) -> bytes:
        """A word on how things stand, among the thoughts."""
        return self._chunk({"content" if self._field == "inline" else self._field: text})

    def answer(self, result: Result, commit: str) -> Iterator[bytes]:
        """The answer in pieces, then how it came about."""
        said = self._placed(told(result, commit))
        for key, text in ((self._field, said.reasoning), ("content", said.content)):
            for start in range(0, len(text), PIECE):
                yield self._chunk({key: text[start : start + PIECE]})
        yield self._chunk({}, said.finish_reason, {"fot": summary(self.run_id, result)})

    def usage(self, result: Result) -> bytes:
        """The chunk that `stream_options.include_usage` asks for."""
        return frame(self._head | {"object": "chat.completion.chunk", "choices": [], "usage": usage(result)})

    def _placed(self, said: Told) -> Told:
        """With reasoning where it is wanted."""
        if self._field != "inline" or not said.reasoning:
            return said
        return Told("", f"<think>{said.reasoning}{REASONING_END}{said.content}", said.finish_reason)

    def _chunk(
        self, delta: Mapping[str, str], finish_reason: str | None = None, more: Mapping[str, object] | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return frame(self._head | {"object": "chat.completion.chunk", "choices": [choice]} | dict(more or {}))
