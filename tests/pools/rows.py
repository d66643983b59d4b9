"""Rows as a user would have them in a file."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fot.pools.read import Pool

Fields = dict[str, Any]
Make = Callable[[Iterable[Fields]], Pool]


def row(problem_id: str = "p1", rollout_id: Any = 0, text: Any = "Wait, so \\boxed{4}", **others: Any) -> Fields:
    fields = {"model": "m", "benchmark": "b", "problem_id": problem_id, "rollout_id": rollout_id, "text": text}
    return {**fields, **others}


def write_lines(path: Path, rows: Iterable[Fields]) -> Path:
    path.write_text("".join(json.dumps(fields) + "\n" for fields in rows), encoding="utf-8")
    return path
