"""Inspect's logs: `.eval` (a zip with a file for each sample) and `.json` (one object)."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fot.errors import PoolError
from fot.pools.logs.entry import (
    KEPT,
    Entry,
    Group,
    Judged,
    Names,
    Read,
    flat,
    joined,
    kept,
    prompt_of,
    reference,
    split_text,
)
from fot.pools.rows import BadRow
from fot.pools.sources import Rejected

__all__ = ["Inspect"]

_HEAD = re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":')
_EPOCH = re.compile(r"samples/(?P<id>.*)_epoch_(?P<epoch>\d+)\.json")
_ZSTD = 93  # in a zip; the standard library reads it from Python 3.14 on
_LOCAL_HEADER = 30
_REASONS = {"stop": "stop", "max_tokens": "length", "model_length": "length", "unknown": None}
_LIMITS = {"token": "length", "time": "abort", "working": "abort"}


@dataclass(frozen=True, slots=True)
class Inspect:
    """A sample's rollouts are its epochs.

    Of a run that did not succeed the samples that are there are those that ended first: they are read as biased.
    """

    def recognises(self, path: Path) -> bool:
        """By the members of the zip, or how the object begins."""
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return bool({"header.json", "_journal/start.json"} & set(archive.namelist()))
        with path.open("rb") as file:
            return _HEAD.match(file.read(256)) is not None

    def read(self, path: Path, names: Names, progress: Callable[[int], None]) -> Read:
        """Every sample with one generated text."""
        try:
            log, samples = _zip(path, progress) if zipfile.is_zipfile(path) else _json(path, progress)
            said = log["eval"]
            about = names.of(path, said.get("model"), said.get("task"))
            order = {str(one): at for at, one in enumerate((said.get("dataset") or {}).get("sample_ids") or [])}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, pa.ArrowException):
            raise PoolError(f"{path} cannot be read as a log of Inspect", "is it whole?") from None
        if log.get("status") != "success":
            about["unbiased"] = False
        for number, sample in enumerate(samples(order), start=1):
            if isinstance(sample, str):
                yield Rejected(number, sample, "")
                continue
            try:
                yield Entry(number, _record(sample, about))
            except BadRow as bad:
                yield Rejected(number, str(bad), json.dumps(sample))
            except (KeyError, TypeError, ValueError, AttributeError, IndexError):
                yield Rejected(number, "not a sample of Inspect", json.dumps(sample))

    def write(self, group: Group, folder: Path) -> Path:
        """One `.eval` file, which `inspect view` shows."""
        folder.mkdir(parents=True, exist_ok=True)
        stamp = group.created.strftime("%Y-%m-%dT%H-%M-%S")
        task = re.sub(r"[^A-Za-z0-9]+", "-", group.benchmark)
        out = folder / f"{stamp}-00-00_{task}_{group.digest[:22]}.eval"
        ids: dict[str, None] = {}
        summaries: list[dict[str, Any]] = []
        judged: list[bool] = []
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for problem in group.problems:
                for one in problem:
                    sample = _sample(one, group)
                    ids.setdefault(sample["id"])
                    name = f"samples/{sample['id'].replace('/', '_')}_epoch_{sample['epoch']}.json"
                    _put(archive, name, sample)
                    summaries.append({name: sample[name] for name in _SUMMARY if name in sample} | {"completed": True})
                    judged += [] if one.correct is None else [one.correct]
            log = _log(group, list(ids), len(summaries), judged)
            _put(archive, "_journal/start.json", {name: log[name] for name in ("version", "eval", "plan")})
            _put(archive, "summaries.json", summaries)
            _put(archive, "header.json", log)
        return out


_Samples = Callable[[dict[str, int]], Iterator["dict[str, Any] | str"]]


def _json(path: Path, progress: Callable[[int], None]) -> tuple[dict[str, Any], _Samples]:
    log = json.loads(path.read_bytes())
    progress(path.stat().st_size)
    found = log.pop("samples", None) or []

    def samples(order: dict[str, int]) -> Iterator[dict[str, Any] | str]:
        return iter(sorted(found, key=lambda one: (order.get(str(one.get("id")), len(order)), one.get("epoch", 1))))

    return log, samples


def _zip(path: Path, progress: Callable[[int], None]) -> tuple[dict[str, Any], _Samples]:
    archive = zipfile.ZipFile(path)
    members = {one.filename: one for one in archive.infolist()}  # of two of one name the later one counts
    start = members.get("header.json") or members["_journal/start.json"]
    log = json.loads(_content(archive, start))

    def samples(order: dict[str, int]) -> Iterator[dict[str, Any] | str]:
        found = [(match, name) for name in members if (match := _EPOCH.fullmatch(name))]
        found.sort(key=lambda one: (order.get(one[0]["id"], len(order)), one[0]["id"], int(one[0]["epoch"])))
        with archive:
            for at, (_, name) in enumerate(found, start=1):
                try:
                    yield json.loads(_content(archive, members[name]))
                except (OSError, ValueError, zipfile.BadZipFile, pa.ArrowException) as error:
                    yield f"{name} cannot be read: {error}"
                progress(path.stat().st_size * at // len(found))

    return log, samples


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type != _ZSTD:
        return archive.read(member)
    file = archive.fp
    assert file is not None  # noqa: S101 — the archive is open
    file.seek(member.header_offset)
    header = file.read(_LOCAL_HEADER)
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    file.seek(lengths, 1)
    data = pa.BufferReader(file.read(member.compress_size))
    return bytes(pa.CompressedInputStream(data, "zstd").read())


def _record(sample: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    if sample.get("error"):
        raise BadRow(f"the sample ended in an error: {sample['error'].get('message')}")
    if sample.get("invalidation"):
        raise BadRow("the sample was invalidated")
    turns = sum(one.get("role") == "assistant" for one in sample.get("messages") or [])
    if turns > 1:
        raise BadRow(f"{turns} turns of the model: a rollout is one text")
    output = sample["output"]
    choice = output["choices"][0]
    text = _text(choice["message"]["content"], sample.get("attachments") or {})
    ours = (sample.get("metadata") or {}).get(KEPT)
    if ours:
        return {**ours, "text": text}
    usage = output.get("usage") or {}
    limit = (sample.get("limit") or {}).get("type")
    return {
        **about,
        "problem_id": str(sample["id"]),
        "problem": _problem(sample),
        "gold": reference(sample.get("target")),
        "text": text,
        "n_tokens": usage.get("output_tokens"),
        "prompt_tokens": usage.get("input_tokens"),
        "finish_reason": _LIMITS.get(limit) if limit else _REASONS.get(choice.get("stop_reason")),
    }


def _text(content: str | list[dict[str, Any]], attached: dict[str, str]) -> str:
    if isinstance(content, str):
        return _whole(content, attached)
    if any(part.get("redacted") for part in content):
        raise BadRow("its reasoning is redacted: the text that was generated is not in the log")
    reasoning = "".join(part["reasoning"] for part in content if part.get("type") == "reasoning")
    return joined(_whole(reasoning, attached), _whole(flat(content) or "", attached))


def _whole(text: str, attached: dict[str, str]) -> str:
    """Long strings may be kept apart."""
    scheme = "attachment://"
    return attached.get(text.removeprefix(scheme), text) if text.startswith(scheme) else text


def _problem(sample: dict[str, Any]) -> str | None:
    said = sample["input"]
    problem = said if isinstance(said, str) else prompt_of(said)
    problem = None if problem is None else _whole(problem, sample.get("attachments") or {})
    choices = sample.get("choices") or []
    letters = [f"{chr(ord('A') + at)}) {choice}" for at, choice in enumerate(choices)]
    return "\n".join([problem, "", *letters]) if problem and letters else problem


_SUMMARY = ("id", "epoch", "input", "target", "scores", "model_usage")
_SCORER = "correct"


def _sample(one: Judged, group: Group) -> dict[str, Any]:
    rollout = one.rollout
    reasoning, answer = split_text(rollout.text)
    content: str | list[dict[str, Any]] = rollout.text
    if reasoning:
        content = [{"type": "reasoning", "reasoning": reasoning}, {"type": "text", "text": answer}]
    reason = {"stop": "stop", "length": "max_tokens"}.get(rollout.finish_reason or "", "unknown")
    message = {"role": "assistant", "content": content, "model": rollout.model, "source": "generate"}
    counts = {"input_tokens": rollout.prompt_tokens or 0, "output_tokens": rollout.n_tokens or 0}
    usage = counts | {"total_tokens": sum(counts.values())}
    output: dict[str, Any] = {
        "model": rollout.model,
        "choices": [{"message": message, "stop_reason": reason}],
        "completion": answer,
    }
    sample: dict[str, Any] = {
        "id": rollout.problem_id,
        "epoch": rollout.rollout_id + 1,
        "input": rollout.problem or "",
        "target": rollout.gold or "",
        "messages": [{"role": "user", "content": rollout.problem or ""}, message],
        "output": output | ({"usage": usage} if rollout.n_tokens is not None else {}),
        "metadata": {KEPT: kept(rollout)},
        "model_usage": {rollout.model: usage} if rollout.n_tokens is not None else {},
    }
    if group.grader is not None and one.correct is not None:
        sample["scores"] = {_SCORER: {"value": "C" if one.correct else "I", "answer": one.answer}}
    return sample


def _log(group: Group, ids: Sequence[str], samples: int, judged: Sequence[bool]) -> dict[str, Any]:
    created = group.created.isoformat()
    said: dict[str, Any] = {
        "eval_id": group.digest[:22],
        "run_id": group.digest[:22],
        "created": created,
        "task": group.benchmark,
        "task_id": group.digest[:22],
        "task_version": 0,
        "dataset": {"name": group.benchmark, "samples": len(ids), "sample_ids": list(ids), "shuffled": False},
        "model": group.model,
        "config": {"epochs": -(-samples // len(ids))},
    }
    results: dict[str, Any] = {"total_samples": samples, "completed_samples": samples, "scores": []}
    if judged:
        said["scorers"] = [{"name": _SCORER, "options": {"grader": group.grader}}]
        accuracy = {"accuracy": {"name": "accuracy", "value": sum(judged) / len(judged)}}
        results["scores"] = [{"name": _SCORER, "scorer": _SCORER, "metrics": accuracy}]
    return {
        "version": 2,
        "status": "success",
        "eval": said,
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": results,
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
    }


def _put(archive: zipfile.ZipFile, name: str, content: object) -> None:
    """A member that is the same on every export."""
    member = zipfile.ZipInfo(name)
    member.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(member, json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass"))
