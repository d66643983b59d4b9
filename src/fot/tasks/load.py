"""Loading a benchmark: from the hub at its pinned commit, from a local copy, or from a user's own file.

    loaded = load("gpqa-diamond", seed=0)
    loaded.items[0].prompt, loaded.benchmark.detector, loaded.benchmark.grader
    loaded.origin           # repository, revision, file, digest, seed: what to write beside a result

Files are kept by the hub's own cache (`HF_HOME`); with `HF_HUB_OFFLINE=1`, or `file=`, nothing is fetched.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from fot.errors import ConfigError, FotError, MissingExtra
from fot.tasks.catalog import BOXED, CHOICE, Benchmark, Source, benchmark
from fot.tasks.readers import Item, Setting

__all__ = ["Loaded", "Origin", "TaskError", "load", "load_own"]


class TaskError(FotError):
    """A benchmark's problems cannot be had."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where items came from, to be recorded: None where it does not apply."""

    benchmark: str
    repository: str | None
    revision: str | None
    file: str | None
    sha256: str | None
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A benchmark with its items."""

    benchmark: Benchmark
    items: tuple[Item, ...]
    origin: Origin


def load(
    name: str,
    *,
    file: Path | None = None,
    revision: str | None = None,
    seed: int = 0,
    limit: int | None = None,
) -> Loaded:
    """The items of a benchmark, the first `limit` of them.

    `file` is a local copy of the benchmark's file, `revision` another commit than the pinned one (its digest is then
    recorded, not checked). Raises `ConfigError` for an unknown name or rows that are not the benchmark's, and
    `TaskError` when the file cannot be had or is not the pinned one.
    """
    spec = benchmark(name)
    name = spec.name
    setting = Setting(seed, _checked(limit))
    if spec.source is None:
        return Loaded(spec, tuple(_reader(spec)([], setting, spec)), Origin(name, None, None, None, None, seed))
    source = spec.source
    path = file if file is not None else _download(source, revision or source.revision)
    digest = _digest(path)
    if file is None and revision is None and source.sha256 not in (None, digest):
        raise TaskError(
            f"{source.repository}: {source.file} is not the file that was pinned",
            "name a --revision to use it as it is, or a local --file",
        )
    items = _items(spec, _rows(path), setting)
    wanted = spec.problems
    if limit is None and file is None and revision is None and wanted not in (None, len(items)):
        raise TaskError(f"{name} has {len(items)} problems, and should have {wanted}")
    origin = Origin(name, source.repository, None if file else revision or source.revision, source.file, digest, seed)
    return Loaded(spec, items, origin)


def load_own(
    path: Path,
    *,
    prompt: str | None = None,
    detector: str | None = None,
    grader: str | None = None,
    limit: int | None = None,
) -> Loaded:
    """A user's file of rows (JSON lines, CSV or Parquet) as a benchmark named like the file.

    Rows have `problem` and `gold`, and may have `problem_id`, `prompt` and `options`. What is not given is asked, found
    and judged as multiple choice when the rows have options, and else in a box as mathematics. A `prompt` template
    without `{problem}` is refused.
    """
    if prompt is not None and "{problem}" not in prompt:
        raise ConfigError("the prompt has no {problem} in it", "write {problem} where the problem belongs")
    rows = list(_rows(path))
    with_options = sum(1 for row in rows if row.get("options"))
    if prompt is None and 0 < with_options < len(rows):
        raise ConfigError(f"{with_options} of {len(rows)} problems have options", "make a file of each kind")
    usual = (CHOICE, "choice", "choice") if with_options else (BOXED, "boxed", "math")
    spec = Benchmark(
        name=path.name.split(".")[0],
        title=f"problems of {path.name}",
        source=None,
        reader="fot.tasks.readers:read_own",
        prompt=prompt or usual[0],
        detector=detector or usual[1],
        grader=grader or usual[2],
        problems=None,
    )
    items = _items(spec, rows, Setting(0, _checked(limit)))
    return Loaded(spec, items, Origin(spec.name, None, None, path.name, _digest(path), 0))


def _checked(limit: int | None) -> int | None:
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit}, and must be at least 1 problem")
    return limit


def _items(spec: Benchmark, rows: Iterable[Mapping[str, Any]], setting: Setting) -> tuple[Item, ...]:
    items: list[Item] = []
    seen: set[str] = set()
    for item in _reader(spec)(rows, setting, spec):
        if setting.limit is not None and len(items) >= setting.limit:
            break
        if item.problem_id in seen:
            raise ConfigError(f"{spec.name}: two problems are called '{item.problem_id}'")
        seen.add(item.problem_id)
        items.append(item)
    return tuple(items)


def _reader(spec: Benchmark) -> Callable[[Iterable[Mapping[str, Any]], Setting, Benchmark], Iterator[Item]]:
    module, _, function = spec.reader.partition(":")
    reader: Callable[[Iterable[Mapping[str, Any]], Setting, Benchmark], Iterator[Item]]
    reader = getattr(import_module(module), function)
    return reader


def _download(source: Source, revision: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise MissingExtra("hub") from None
    try:
        return Path(hf_hub_download(source.repository, source.file, repo_type="dataset", revision=revision))
    except Exception as error:  # the hub's client raises errors of many libraries
        terms = "accept its terms on the hub and set HF_TOKEN, or " if source.is_gated else ""
        raise TaskError(
            f"{source.repository} at {revision[:12]}: {source.file} cannot be had ({type(error).__name__})",
            f"{terms}name a local copy with --file",
        ) from error


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TaskError(f"cannot read {path}: {error.strerror or error}") from None


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    match path.suffix:
        case ".jsonl" | ".json" | ".ndjson":
            return _json_rows(path)
        case ".csv":
            return _csv_rows(path)
        case ".parquet":
            return _parquet_rows(path)
    raise TaskError(f"{path} is no file of rows that can be read", "JSON lines, CSV and Parquet can")


def _json_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise TaskError(f"{path}: line {number} is not JSON ({error})") from None
            if not isinstance(row, dict):
                raise TaskError(f"{path}: line {number} is not a JSON object")
            yield row


def _csv_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(2**27)
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def _parquet_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("pools") from None
    try:
        yield from pq.read_table(path).to_pylist()
    except pa.ArrowException as error:
        raise TaskError(f"{path} is damaged: {error}") from None
