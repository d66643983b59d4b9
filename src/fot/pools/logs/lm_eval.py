"""lm-eval's samples: `samples_TASK_DATE.jsonl`, and beside it `results_DATE.json`, which names the model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fot.errors import PoolError
from fot.pools.logs.entry import KEPT, Entry, Group, Judged, Names, Read, kept, prompt_of, reference
from fot.pools.sources import Rejected, RowFile

__all__ = ["LmEval"]

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")
_UNSAFE = re.compile(r"[\"<>:/|\\?*\[\]]+")
_FILTER = "committed"


@dataclass(frozen=True, slots=True)
class LmEval:
    """A task's rollouts are the `repeats` of each of its documents. Token counts are not in the log."""

    def recognises(self, path: Path) -> bool:
        """By the fields of the first line."""
        first = next(RowFile(path).lines(), b"")
        sample = _object(first) if isinstance(first, bytes) else None
        return sample is not None and {"doc_id", "resps", "arguments"} <= sample.keys()

    def read(self, path: Path, names: Names, progress: Callable[[int], None]) -> Read:
        """Every response. Of several filters of one task, which repeat the responses, the first is read."""
        said = _NAME.fullmatch(path.name)
        model = names.model or (said and _model(path.with_name(f"results_{said['date']}.json")))
        about = names.of(path, model or None, said["task"] if said else None)
        wanted: list[object] = []
        for number, line in enumerate(RowFile(path).lines(progress), start=1):
            sample = _object(line) if isinstance(line, bytes) else None
            if sample is None:
                if isinstance(line, str) or line.strip():
                    reason = line if isinstance(line, str) else "not one JSON object"
                    yield Rejected(number, reason, "" if isinstance(line, str) else line.decode(errors="replace"))
                continue
            wanted = wanted or [sample.get("filter")]
            if sample.get("filter") in wanted:
                yield from _rollouts(number, sample, about)

    def write(self, group: Group, folder: Path) -> Path:
        """Samples and results, in a folder named after the model."""
        date = group.created.strftime("%Y-%m-%dT%H-%M-%S.%f")
        safe = _UNSAFE.sub("__", group.model)
        into = folder / safe
        into.mkdir(parents=True, exist_ok=True)
        samples = into / f"samples_{_UNSAFE.sub('__', group.benchmark)}_{date}.jsonl"
        scores: list[float] = []
        with samples.open("w", encoding="utf-8") as file:
            for number, problem in enumerate(group.problems):
                sample = _sample(number, problem)
                scores += [sample["correct"]] if "correct" in sample else []
                file.write(json.dumps(sample, ensure_ascii=False) + "\n")
        result: dict[str, object] = {"alias": group.benchmark}
        if scores:
            result |= {f"correct,{_FILTER}": sum(scores) / len(scores), f"correct_stderr,{_FILTER}": "N/A"}
        about = {
            "results": {group.benchmark: result},
            "configs": {group.benchmark: {"task": group.benchmark, "metadata": {"grader": group.grader}}},
            "date": group.created.timestamp(),
            "model_source": "fot pool export",
            "model_name": group.model,
            "model_name_sanitized": safe,
        }
        (into / f"results_{date}.json").write_text(json.dumps(about, indent=2, ensure_ascii=False), encoding="utf-8")
        return samples


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)  # not msgspec: the harness writes NaN
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _model(results: Path) -> str | None:
    if not results.is_file():
        return None
    try:
        found = json.loads(results.read_bytes()).get("model_name")
    except (ValueError, AttributeError):
        raise PoolError(f"{results} cannot be read as the results of lm-eval", "say --model NAME") from None
    return str(found) if found else None


def _rollouts(number: int, sample: dict[str, Any], about: dict[str, Any]) -> Iterator[Entry | Rejected]:
    try:
        prompt, settings = _arguments(sample["arguments"])
        (responses,) = sample["resps"]
        if not isinstance(settings, dict) or not all(isinstance(text, str) for text in responses):
            raise TypeError
    except (KeyError, TypeError, ValueError, IndexError):
        yield Rejected(number, "not one generated text or several: log-likelihoods?", json.dumps(sample))
        return
    record = {
        **about,
        "problem_id": str(sample["doc_id"]),
        "problem": prompt,
        "gold": reference(sample.get("target")),
    }
    ours = sample.get(KEPT) or [{}] * len(responses)
    if len(ours) != len(responses):
        yield Rejected(number, f"`{KEPT}` does not speak of every response", json.dumps(sample))
        return
    for text, own in zip(responses, ours, strict=True):
        yield Entry(number, {**(own or record), "text": text})


def _arguments(given: Any) -> tuple[str | None, Any]:
    """Prompt and generation settings of a document's only request, as lists or as numbered keys."""
    (request,) = given.values() if isinstance(given, dict) else given
    prompt, settings = list(request.values() if isinstance(request, dict) else request)[:2]
    said = prompt[0] if isinstance(prompt, list) else prompt
    try:
        chat = json.loads(said) if said.lstrip().startswith("[") else None
    except ValueError:
        chat = None
    return (prompt_of(chat) if isinstance(chat, list) else None) or said, settings


def _sample(number: int, problem: Sequence[Judged]) -> dict[str, Any]:
    first = problem[0].rollout
    doc = {"problem_id": first.problem_id, "problem": first.problem, "answer": first.gold}
    judged = [one.correct for one in problem if one.correct is not None]
    return {
        "doc_id": number,
        "doc": doc,
        "target": first.gold or "",
        "arguments": {"gen_args_0": {"arg_0": first.problem or "", "arg_1": {"until": []}}},
        "resps": [[one.rollout.text for one in problem]],
        "filtered_resps": [[one.answer or "" for one in problem]],
        "filter": _FILTER,
        "metrics": ["correct"] if judged else [],
        "doc_hash": _digest(json.dumps(doc, indent=2, ensure_ascii=False)),
        "prompt_hash": _digest(first.problem or ""),
        "target_hash": _digest(first.gold or ""),
        KEPT: [kept(one.rollout) for one in problem],
    } | ({"correct": sum(judged) / len(judged)} if judged else {})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
