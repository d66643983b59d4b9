"""A chat request as it is read: refused with a reason, passed through with a reason, or a problem to vote on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import msgspec

from fot.core.commit import track
from fot.engines.base import Sampling
from fot.errors import ConfigError, FotError
from fot.methods import Spec, parse
from fot.online.api import INSTRUCTIONS
from fot.online.lane import Way
from fot.serve.settings import Progress, Settings
from fot.serve.signs import asks_for_form, looks_answerable

__all__ = ["Asked", "BadRequest", "Pass", "advice", "read"]

LONGEST_SPEC = 500
"""Characters of a policy in a request."""
MOST_CHECKPOINTS = 64

# What the controller itself says to the engine; no request may say it over its head.
_OURS = frozenset(
    {
        *("messages", "model", "stream", "stream_options", "n", "best_of", "seed", "stop", "fot", "prompt", "prompts"),
        *("max_tokens", "max_completion_tokens", "n_predict", "max_new_tokens", "sampling_params", "echo", "suffix"),
        *("tools", "tool_choice", "functions", "function_call", "parallel_tool_calls", "response_format"),
        *("logprobs", "top_logprobs", "return_logprob", "top_logprobs_num", "n_probs", "return_token_ids"),
        *("text", "input_ids", "rid", "request_id", "id", "id_slot", "slot_id", "cache_prompt", "timings_per_token"),
        *("continue_final_message", "add_generation_prompt", "separate_reasoning", "stream_reasoning"),
    }
)

_CAPS = frozenset({"max_tokens", "max_completion_tokens", "n_predict", "max_new_tokens"})
"""By what names engines know a cap on tokens."""


class BadRequest(FotError):
    """A request that cannot be answered; `param` is the field that is wrong."""

    def __init__(self, message: str, param: str | None = None, *, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.status = status
        self.code = code


def advice(message: str, hint: str) -> str:
    """What is wrong and what to do about it, in one line."""
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} {hint}" if hint else message


class Options(msgspec.Struct, forbid_unknown_fields=True):
    """What a request may say under `fot`."""

    k: int | None = None
    policy: str | None = None
    checkpoints: list[int] | None = None
    keep: float | None = None
    commit: str | None = None
    way: Way | None = None
    seed: int | None = None
    deadline_s: float | None = None
    progress: Progress | None = None
    instruct: bool | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Body(msgspec.Struct):
    """What is looked at in a chat request; all else is the upstream's."""

    messages: list[dict[str, object]]
    model: str | None = None
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    n: int | None = None
    seed: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    stop: str | list[str] | None = None
    fot: Options | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """A request that goes to the upstream untouched but for the key `fot`."""

    reason: str
    body: bytes
    is_stream: bool
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A problem to vote on."""

    model: str | None
    messages: tuple[Mapping[str, object], ...]
    sampling: Sampling
    spec: Spec
    k: int
    commit: str
    way: Way
    seed: int
    deadline_s: float
    is_stream: bool
    wants_usage: bool
    progress: Progress

    @property
    def question(self) -> str:
        """The last message's text."""
        return _text(self.messages[-1].get("content"))

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Where the funnel narrows, when the method has such places."""
        for _, plan in self.spec.parts:
            found = getattr(plan, "checkpoints", None)
            if found:
                return tuple(found)
        return ()


def read(raw: bytes, settings: Settings) -> Asked | Pass:
    """What a body asks for; raises `BadRequest`."""
    told = _decode(raw)
    try:
        body = msgspec.convert(told, _Body)
    except msgspec.ValidationError as error:
        raise BadRequest(f"the request is not as it should be: {error}", _param(str(error))) from None
    _check(body, settings)
    options = body.fot or Options()
    reason = _why_pass(body, told, options, settings)
    if reason is not None:
        kept = _capped({key: value for key, value in told.items() if key != "fot"}, settings.max_tokens)
        return Pass(reason, raw if kept == told else msgspec.json.encode(kept), bool(body.stream), body.model)
    return _asked(body, told, options, settings)


def _capped(told: dict[str, object], most: int | None) -> dict[str, object]:
    """With the server's cap on tokens, where it has one and the request goes beyond."""
    if most is None:
        return told
    kept = {key: value for key, value in told.items() if key not in _CAPS or value is not None}
    for name in _CAPS & kept.keys() or {"max_tokens"}:
        value = kept.get(name, most)
        kept[name] = min(value, most) if isinstance(value, int) and value > 0 else most
    return kept


def _decode(raw: bytes) -> dict[str, object]:
    try:
        told = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
    if not isinstance(told, dict):
        raise BadRequest("the body is no JSON object")
    return cast(dict[str, object], told)


def _param(message: str) -> str | None:
    _, _, path = message.partition("`$.")
    return path.split("`")[0].split("[")[0].split(".")[0] or None


def _check(body: _Body, settings: Settings) -> None:
    if body.n is not None and body.n != 1:
        raise BadRequest(
            f"n is {body.n}, but a vote has one answer; for more rollouts set fot.k", "n", code="unsupported_value"
        )
    if not body.messages:
        raise BadRequest("there are no messages", "messages")
    for number, message in enumerate(body.messages):
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str | list | None):
            raise BadRequest(f"message {number} needs a role, and text or a list of parts as its content", "messages")
    for name in ("max_tokens", "max_completion_tokens"):
        value = getattr(body, name)
        if value is not None and value < 1:
            raise BadRequest(f"{name} is {value}; at least 1 is needed", name)
    if body.fot is not None:
        _check_options(body.fot, settings)


def _check_options(options: Options, settings: Settings) -> None:
    if options.k is not None and not 1 <= options.k <= settings.max_k:
        raise BadRequest(f"fot.k is {options.k}; this server allows 1 to {settings.max_k}", "fot")
    if options.deadline_s is not None and not 0 < options.deadline_s <= settings.deadline_s:
        raise BadRequest(
            f"fot.deadline_s is {options.deadline_s:g}; this server allows up to {settings.deadline_s:g}", "fot"
        )
    if options.policy is not None and len(options.policy) > LONGEST_SPEC:
        raise BadRequest(f"fot.policy is longer than {LONGEST_SPEC} characters", "fot")
    if options.checkpoints is not None and len(options.checkpoints) > MOST_CHECKPOINTS:
        raise BadRequest(f"fot.checkpoints are more than {MOST_CHECKPOINTS}", "fot")


def _why_pass(body: _Body, told: Mapping[str, object], options: Options, settings: Settings) -> str | None:
    """Why no vote can or shall be taken; None when one is."""
    policy = options.policy or settings.policy
    signs = {
        "tools": told.get("tools") or told.get("functions") or _has_role(body, ("tool", "function")),
        "response-format": _is_structured(told.get("response_format")),
        "logprobs": told.get("logprobs") or told.get("top_logprobs"),
        "not-only-text": not all(_is_text(message.get("content")) for message in body.messages),
        "prefill": body.messages[-1]["role"] == "assistant" or told.get("continue_final_message"),
        "policy-none": policy == "none",
        "k-1": (options.k or settings.k) == 1,
        # k rollouts without chance are one and the same: a vote among them says nothing and costs k times as much.
        "greedy": body.temperature == 0 and body.fot is None,
    }
    return next((reason for reason, holds in signs.items() if holds), None) or _why_unasked(body, settings)


def _why_unasked(body: _Body, settings: Settings) -> str | None:
    """Why a chat that could be voted on need not be."""
    if body.fot is not None or settings.when == "always":
        return None
    if asks_for_form("\n".join(_text(message.get("content")) for message in body.messages)):
        return None
    if settings.when == "asked":
        return "not-asked"
    return None if looks_answerable(_text(body.messages[-1].get("content")), settings.commit) else "free-form"


def _has_role(body: _Body, roles: tuple[str, ...]) -> bool:
    return any(message["role"] in roles or message.get("tool_calls") for message in body.messages)


def _is_structured(wanted: object) -> bool:
    return isinstance(wanted, dict) and wanted.get("type") != "text"


def _is_text(content: object) -> bool:
    if not isinstance(content, list):
        return True
    return all(isinstance(part, dict) and part.get("type") == "text" for part in content)


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _asked(body: _Body, told: Mapping[str, object], options: Options, settings: Settings) -> Asked:
    commit = options.commit or settings.commit
    caps = (body.max_tokens, body.max_completion_tokens, settings.max_tokens)
    extra = {key: value for key, value in told.items() if key not in _OURS and value is not None}
    if body.model:
        extra["model"] = body.model
    try:
        track(commit, "")  # an unknown name is told now
        spec = _spec(options, settings)
    except ConfigError as error:
        raise BadRequest(advice(str(error), error.hint), "fot") from None
    seed = body.seed if body.seed is not None else options.seed
    return Asked(
        model=body.model,
        messages=tuple(_messages(body, commit, settings.instruct if options.instruct is None else options.instruct)),
        sampling=Sampling(
            max_tokens=min((cap for cap in caps if cap is not None), default=None),
            stop=[body.stop] if isinstance(body.stop, str) else body.stop or (),
            extra=extra,
        ),
        spec=spec,
        k=options.k or settings.k,
        commit=commit,
        way=options.way or settings.way,
        seed=42 if seed is None else seed,
        deadline_s=options.deadline_s or settings.deadline_s,
        is_stream=bool(body.stream),
        wants_usage=body.stream_options is not None and body.stream_options.include_usage,
        progress=options.progress or settings.progress,
    )


def _spec(options: Options, settings: Settings) -> Spec:
    """The method, with the two parameters of the funnel that may be given by name."""
    spec = parse(options.policy or settings.policy)
    given: dict[str, object] = {}
    if options.checkpoints is not None:
        given["checkpoints"] = tuple(options.checkpoints)
    if options.keep is not None:
        given["keep"] = options.keep
    if not given:
        return spec
    (method, plan), *around = spec.parts
    for name in given:
        if not hasattr(plan, name):
            raise ConfigError(f"{method.name} has no {name}", "Leave it out, or name another policy.")
    try:
        return Spec(((method, replace(plan, **given)), *around))
    except ValueError as error:
        raise ConfigError(f"{method.name}: {error}") from None


def _messages(body: _Body, commit: str, is_instructed: bool) -> list[dict[str, object]]:
    """The messages as they came, or with the form of answer added to the last one."""
    wanted = INSTRUCTIONS.get(commit, "")
    if not is_instructed or not wanted:
        return body.messages
    last = body.messages[-1]
    return [*body.messages[:-1], last | {"content": f"{_text(last.get('content'))}\n\n{wanted}"}]
