"""Problems for the live commands: from a file of rows, or from a benchmark of the project."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fot.errors import UsageError

if TYPE_CHECKING:
    from fot.tasks.load import Loaded

__all__ = ["load_benchmark", "read_problems"]


def read_problems(file: Path) -> Iterator[dict[str, object]]:
    """The problems of a JSONL file, each once, with an id; `UsageError` names the line that is none."""
    seen: set[str] = set()
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = msgspec.json.decode(line, type=dict[str, object])
            except (msgspec.MsgspecError, UnicodeDecodeError):
                raise UsageError(f"{file}, line {number} is no JSON object", "One object a line.") from None
            problem = row.get("problem")
            if not isinstance(problem, str) or not problem.strip():
                raise UsageError(f"{file}, line {number} has no text in 'problem'", "That is what will be asked.")
            name = str(row.get("problem_id") or sha256(problem.encode()).hexdigest()[:12])
            if name not in seen:
                seen.add(name)
                known = {key: row[key] for key in ("benchmark", "gold") if row.get(key) is not None}
                yield {"problem": problem, "problem_id": name} | known


def load_benchmark(name: str, *, limit: int | None, seed: int) -> Loaded:
    """A benchmark of the project by its name, or a user's file of rows."""
    from fot.tasks.load import load, load_own

    own = Path(name)
    if own.suffix and own.exists():
        return load_own(own, limit=limit)
    return load(name, seed=seed, limit=limit)
