"""What is fixed when the server starts. No request can change any of it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, cast, get_args

import msgspec

from fot.core.registry import unknown_name
from fot.engines import SERVERS
from fot.errors import ConfigError
from fot.methods import parse
from fot.online.lane import Way

__all__ = ["LOOPBACK", "Progress", "ReasoningField", "Settings", "View", "When", "load"]

Progress = Literal["comment", "reasoning", "none"]
View = Literal["full", "figures", "off"]
When = Literal["auto", "always", "asked"]
ReasoningField = Literal["auto", "reasoning", "reasoning_content", "inline"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits and defaults. In a TOML file they stand under `[serve]`, by these names."""

    upstream: tuple[str, ...] = ()
    """URLs of the servers behind this one."""
    upstream_key: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    api_key: tuple[str, ...] = ()
    """Whoever gives one of these may use the server. Needed for any host but loopback."""
    allowed_hosts: tuple[str, ...] = ()
    """Names under which the server may be asked; without an API key only loopback's and these."""

    k: int = 32
    policy: str = "fot"
    commit: str = "boxed"
    way: Way = "stream"
    when: When = "auto"
    """Vote where a chat looks as if it had an answer, on all, or only where `fot` or a form of answer is there."""
    instruct: bool = False
    """Add to the last message what form of answer is wanted."""
    progress: Progress = "comment"
    """How a stream tells that the funnel narrows."""
    reasoning_field: ReasoningField = "auto"

    max_k: int = 64
    max_tokens: int | None = None
    """Cap on a rollout; requests may ask for less."""
    max_body_bytes: int = 4 << 20
    deadline_s: float = 1800.0
    """A run is ended after this time, its queueing included; requests may ask for less."""
    retries: int = 4
    """Times that a rollout is taken up again after the upstream failed."""

    slots: int | None = None
    """Rollouts at once on one upstream. Default: as many as it says, else 256."""
    queue: int = 64
    """Problems that may wait."""
    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0
    """Of one client; 0 is no limit."""

    drain_s: float = 20.0
    """How long running problems may go on when the server is told to stop."""
    header_s: float = 10.0
    body_s: float = 30.0
    send_s: float = 60.0
    """Patience with a client that sends or reads slowly."""
    max_connections: int = 2048
    health_s: float = 5.0

    view: View = "full"
    """The live view: with texts, with figures only, or none."""
    keep_runs: int = 50
    keep_text_bytes: int = 64 << 20
    log_texts: bool = False
    """Write prompts and answers to the log."""

    def __post_init__(self) -> None:
        if not self.upstream:
            raise ConfigError("no upstream was named", "Give its URL: fot serve --upstream http://localhost:8000/v1")
        self._check_upstreams()
        if self.host not in LOOPBACK and not self.api_key:
            raise ConfigError(
                f"host '{self.host}' can be reached by others, and no API key is set",
                "Give --api-key (or FOT_SERVE_API_KEY), or stay on 127.0.0.1.",
            )
        self._check_keys()
        self._check_figures()
        for name, kind in _WORDS.items():
            if getattr(self, name) not in get_args(kind):
                raise unknown_name(name, str(getattr(self, name)), get_args(kind))
        if self.policy != "none":
            parse(self.policy)

    def _check_upstreams(self) -> None:
        for url in self.upstream:
            name, plus, rest = url.rpartition("+") if "+http" in url else ("", "", url)
            if not re.match(r"https?://[^/]", rest) or (plus and name not in SERVERS):
                raise ConfigError(
                    f"upstream '{url}' is no URL of a server",
                    f"Write http://HOST:PORT/v1, or a kind before it, as in vllm+http://…: {', '.join(SERVERS)}.",
                )

    def _check_keys(self) -> None:
        if any(len(key) < _KEY_LENGTH or not key.isascii() or not key.isprintable() for key in self.api_key):
            raise ConfigError("an API key is too short or holds odd characters", "Use 8 or more letters and digits.")

    def _check_figures(self) -> None:
        for name in _POSITIVE:
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}", "It must be above 0.")
        for name in ("queue", "retries", "requests_per_minute", "tokens_per_minute", "port", "drain_s"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}", "It cannot be below 0.")
        if self.k > self.max_k:
            raise ConfigError(f"k is {self.k}, but max_k only {self.max_k}", "Raise max_k, or lower k.")


_KEY_LENGTH = 8
_POSITIVE = (
    "k",
    "max_k",
    "max_body_bytes",
    "deadline_s",
    "header_s",
    "body_s",
    "send_s",
    "max_connections",
    "health_s",
    "keep_runs",
)
_WORDS = {"way": Way, "when": When, "progress": Progress, "view": View, "reasoning_field": ReasoningField}


def load(file: Path | None, given: dict[str, object]) -> Settings:
    """Settings from a file, and over them what was given otherwise (None: not given)."""
    told = {} if file is None else _read(file)
    told |= {name: value for name, value in given.items() if value is not None}
    known = [field.name for field in fields(Settings)]
    for name in told:
        if name not in known:
            raise unknown_name("setting of [serve]", name, known)
    for name in ("upstream", "api_key", "allowed_hosts"):
        if isinstance(told.get(name), str):
            told[name] = (told[name],)
    try:
        return replace(msgspec.convert(told, Settings))
    except msgspec.ValidationError as error:
        raise ConfigError(f"settings: {error}", "See docs/guides/serve.md.") from None


def _read(file: Path) -> dict[str, object]:
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}", "Name a TOML file with a table [serve].") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is no TOML: {error}", "Name a TOML file with a table [serve].") from None
    table = told.get("serve")
    if not isinstance(table, dict):
        raise ConfigError(f"{file} holds no table [serve]", "Write the settings below a line [serve].")
    return cast(dict[str, object], table)
