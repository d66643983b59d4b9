"""What all logs have in common: who reads and writes them, names they may lack, and how texts and references look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fot.core.commit import committed_answer
from fot.core.rollout import Rollout
from fot.errors import PoolError
from fot.pools.sources import Rejected

__all__ = [
    "KEPT",
    "Entry",
    "Group",
    "Harness",
    "Judged",
    "Names",
    "Read",
    "flat",
    "joined",
    "kept",
    "prompt_of",
    "reference",
    "split_text",
]

KEPT = "fot"
"""The key under which an export keeps what the other format has no field for."""

_END = "</think>"


class Entry(NamedTuple):
    """One rollout as a log tells it: the fields of a row; without `rollout_id` it takes the next number."""

    line: int | None
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Names:
    """What the user says about every rollout of the imported logs; it goes before what they say themselves."""

    model: str | None = None
    benchmark: str | None = None

    def said(self) -> dict[str, str]:
        """The names that the user gave."""
        return {name: value for name, value in (("model", self.model), ("benchmark", self.benchmark)) if value}

    def of(self, path: Path, model: str | None, benchmark: str | None) -> dict[str, Any]:
        """What every rollout of the log `path` has in common; `PoolError` when nobody tells a name."""
        found = {"model": self.model or model, "benchmark": self.benchmark or benchmark}
        for name, value in found.items():
            if not value:
                raise PoolError(f"{path} does not say of which {name} it is", f"say it with --{name} NAME")
        return {**found, "source": path.name}


class Judged(NamedTuple):
    """One rollout of an export, with its answer and whether that is correct where a grader was asked."""

    rollout: Rollout
    answer: str | None = None
    correct: bool | None = None


class Group(NamedTuple):
    """Everything of one model on one benchmark. `problems` can be gone through once; `created` dates the files."""

    model: str
    benchmark: str
    problems: Iterator[Sequence[Judged]]
    created: datetime
    digest: str
    grader: str | None


Read = Iterator["Entry | Rejected"]


class Harness(Protocol):
    """A format of logs."""

    def recognises(self, path: Path) -> bool:
        """Is this file one of them? By content, not by name."""
        ...

    def read(self, path: Path, names: Names, progress: Callable[[int], None]) -> Read:
        """Every rollout; `progress` is told how many bytes of the file are done."""
        ...

    def write(self, group: Group, folder: Path) -> Path:
        """Write a group into a folder, as the harness lays its own files out; returns the file with the rollouts."""
        ...


def joined(reasoning: str | None, answer: str) -> str:
    """A rollout's text from the two halves into which a server split it."""
    return f"{reasoning}{_END}{answer}" if reasoning else answer


def split_text(text: str) -> tuple[str, str]:
    """The reverse of `joined`: reasoning (empty where it is not set off) and answer."""
    reasoning, _, answer = text.rpartition(_END)
    return reasoning, answer


def reference(target: object) -> str | None:
    r"""A log's target as a reference answer: of a worked solution what follows `####`, or its last `\boxed{}`.

    Several targets are none: which of them an answer should equal is not ours to say.
    """
    targets = target if isinstance(target, list) else [target]
    if len(targets) != 1 or targets[0] is None or not str(targets[0]).strip():
        return None
    text = str(targets[0])
    if "####" in text:
        return text.rpartition("####")[2].strip().replace(",", "")
    return committed_answer(text, "boxed") or text


def prompt_of(messages: Sequence[Any]) -> str | None:
    """The last thing that a user says in a chat."""
    said = [one.get("content") for one in messages if isinstance(one, dict) and one.get("role") == "user"]
    return flat(said[-1]) if said else None


def flat(content: object) -> str | None:
    """The text of a message, whose content may come in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else None


def kept(rollout: Rollout) -> dict[str, Any]:
    """Everything about a rollout but its text, for `KEPT`."""
    ends = None if rollout.token_ends is None else [int(end) for end in rollout.token_ends]
    names = ("model", "benchmark", "problem_id", "rollout_id", "problem", "gold", "n_tokens", "finish_reason", "seed",
             "prompt_tokens", "source")  # fmt: skip
    fields = {name: getattr(rollout, name) for name in names} | {"token_ends": ends}
    fields |= {} if rollout.unbiased else {"unbiased": False}
    return {name: value for name, value in fields.items() if value is not None} | dict(rollout.extra)
