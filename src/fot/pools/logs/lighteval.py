"""lighteval's details: `details/MODEL/DATE/details_TASK_DATE.parquet`, a row for each document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fot.pools.logs.entry import KEPT, Entry, Group, Judged, Names, Read, joined, kept, prompt_of, reference
from fot.pools.sources import Rejected

__all__ = ["Lighteval"]

_DATE = re.compile(r"\d{4}-\d\d-\d\dT[\d.:-]+")
_BATCH_ROWS = 16
_WANTED = ("doc.query", "doc.choices", "doc.gold_index", "doc.id", "doc.task_name", "doc.specific",
           "model_response.text", "model_response.output_tokens", "model_response.reasonings")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lighteval:
    """A document's rollouts are its samples. Tokens are counted where the log has them; why one ended is not told."""

    def recognises(self, path: Path) -> bool:
        """By its columns."""
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                return False
        try:
            return {"doc", "model_response"} <= set(pq.read_schema(path).names)
        except (OSError, pa.ArrowException):
            return False

    def read(self, path: Path, names: Names, progress: Callable[[int], None]) -> Read:
        """Every sample of every document."""
        size, number = path.stat().st_size, 0
        try:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(_BATCH_ROWS, columns=list(_WANTED), use_threads=False):
                    for row in batch.to_pylist():
                        number += 1
                        yield from _rollouts(number, row, names, path)
                    progress(size * number // max(file.metadata.num_rows, 1))
        except (OSError, pa.ArrowException) as error:
            yield Rejected(None, f"the Parquet file is damaged: {error}", "")

    def write(self, group: Group, folder: Path) -> Path:
        """Details and results, where lighteval looks for them."""
        date = group.created.strftime("%Y-%m-%dT%H-%M-%S.%f")
        task = f"fot|{group.benchmark}|0"
        details = folder / "details" / group.model / date / f"details_{task.replace('/', '_')}_{date}.parquet"
        results = folder / "results" / group.model / f"results_{date}.json"
        for file in (details, results):
            file.parent.mkdir(parents=True, exist_ok=True)
        scores: list[float] = []
        with pq.ParquetWriter(details, _SCHEMA, compression="zstd") as writer:
            for number, problem in enumerate(group.problems):
                row = _row(number, task, problem)
                scores += [row["metric"]["correct"]] if row["metric"]["correct"] is not None else []
                writer.write_table(pa.Table.from_pylist([row], _SCHEMA))
        score = {"correct": sum(scores) / len(scores)} if scores else {}
        about = {
            "config_general": {"model_name": group.model, "model_config": {"model_name": group.model}},
            "results": {task: score, "all": score},
            "config_tasks": {task: {"name": group.benchmark, "grader": group.grader}},
        }
        results.write_text(json.dumps(about, indent=2, ensure_ascii=False), encoding="utf-8")
        return details


def _rollouts(number: int, row: dict[str, Any], names: Names, path: Path) -> Iterator[Entry | Rejected]:
    doc, response = row["doc"], row["model_response"]
    texts = response.get("text") or []
    if not texts:
        yield Rejected(number, "no generated text: log-likelihoods?", json.dumps(row, default=str))
        return
    picks = doc["gold_index"] if isinstance(doc["gold_index"], list) else [doc["gold_index"]]
    choices = doc["choices"] or []
    query = doc["query"]
    record = {
        **names.of(path, _model(path), _task(doc.get("task_name") or "")),
        "problem_id": str(doc.get("id") or number - 1),
        "problem": prompt_of(query) if isinstance(query, list) else query,
        "gold": reference([choices[at] for at in picks if at is not None and at < len(choices)]),
    }
    counts = [len(tokens) or None for tokens in response.get("output_tokens") or []]
    thoughts = response.get("reasonings") or []
    ours = json.loads((doc.get("specific") or {}).get(KEPT) or "[]")
    for at, text in enumerate(texts):
        if at < len(ours):
            yield Entry(number, {**ours[at], "text": text})
            continue
        whole = joined(thoughts[at] if at < len(thoughts) else None, text)
        tokens = counts[at] if at < len(counts) else None
        yield Entry(number, {**record, "text": whole, "n_tokens": tokens})


def _model(path: Path) -> str | None:
    """The folders between `details` and the date."""
    folders = list(path.absolute().parent.parts)
    if "details" not in folders or not _DATE.fullmatch(folders[-1]):
        return None
    last = len(folders) - 1 - folders[::-1].index("details")
    return "/".join(folders[last + 1 : -1]) or None


def _task(name: str) -> str | None:
    """`suite|task|shots`, or without the suite."""
    parts = name.split("|")
    parts = parts[:-1] if parts[-1].isdecimal() else parts
    return parts[-1] or None


_SCHEMA = pa.schema(
    {
        "doc": pa.struct(
            {
                "query": pa.string(),
                "choices": pa.list_(pa.string()),
                "gold_index": pa.int64(),
                "specific": pa.struct({KEPT: pa.large_string()}),
                "id": pa.string(),
                "task_name": pa.string(),
                "sampling_methods": pa.list_(pa.string()),
                "num_samples": pa.int64(),
            }
        ),
        "metric": pa.struct({"correct": pa.float64()}),
        "model_response": pa.struct(
            {
                "input": pa.string(),
                "text": pa.list_(pa.large_string()),
                "text_post_processed": pa.list_(pa.string()),
                "output_tokens": pa.list_(pa.list_(pa.int64())),
                "reasonings": pa.list_(pa.string()),
            }
        ),
    }
)


def _row(number: int, task: str, problem: Sequence[Judged]) -> dict[str, Any]:
    first = problem[0].rollout
    judged = [one.correct for one in problem if one.correct is not None]
    return {
        "doc": {
            "query": first.problem or "",
            "choices": [] if first.gold is None else [first.gold],
            "gold_index": 0,
            "specific": {KEPT: json.dumps([kept(one.rollout) for one in problem])},
            "id": str(number),
            "task_name": task,
            "sampling_methods": ["GENERATIVE"],
            "num_samples": len(problem),
        },
        "metric": {"correct": sum(judged) / len(judged) if judged else None},
        "model_response": {
            "input": first.problem or "",
            "text": [one.rollout.text for one in problem],
            "text_post_processed": [one.answer or "" for one in problem],
            "output_tokens": [],
            "reasonings": [],
        },
    }
