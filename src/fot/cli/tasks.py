"""``fot tasks``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fot.cli.files import written
from fot.cli.output import print_json, print_note, print_table
from fot.errors import UsageError

if TYPE_CHECKING:
    from fot.tasks.load import Loaded

__all__ = ["tasks"]


def tasks(
    name: str | None = None,
    /,
    *,
    file: Path | None = None,
    revision: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """List the benchmarks; with a name, fetch one and write its problems as rows.

    Parameters
    ----------
    name
        A benchmark, or a file of your own with `problem` and `gold` (JSON lines, CSV or Parquet).
    file
        A local copy of the benchmark's file: nothing is fetched.
    revision
        A commit of the dataset in place of the pinned one.
    seed
        Orders shuffled options, and makes generated problems.
    limit
        Only the first so many problems.
    out
        Where the rows go, as JSON lines: id, problem, prompt, gold, options.
    json
        Print one JSON object in place of text.
    """
    if name is None:
        if file or revision or out or limit is not None:
            raise UsageError("no benchmark is named", "fot tasks NAME --out FILE.jsonl")
        _list(json=json)
        return
    from fot.tasks.load import load, load_own

    own = Path(name)
    if own.suffix in (".jsonl", ".json", ".ndjson", ".csv", ".parquet") or (own.suffix and own.exists()):
        if file or revision:
            raise UsageError(f"{name} is a file of your own: it has no --file and no --revision", "leave them out")
        loaded = load_own(own, limit=limit)
    else:
        loaded = load(name, file=file, revision=revision, seed=seed, limit=limit)
    if out is not None:
        _write(loaded, out)
    _tell(loaded, out, json=json)


def _list(*, json: bool) -> None:
    from fot.tasks.catalog import benchmark, benchmark_names

    found = [benchmark(name) for name in benchmark_names()]
    if json:
        print_json({"schema": "fot.tasks/1", "benchmarks": found})
        return
    rows = []
    for spec in found:
        source = f"{spec.source.repository}@{spec.source.revision[:12]}" if spec.source else "generated"
        gated = " (gated)" if spec.source and spec.source.is_gated else ""
        problems = "" if spec.problems is None else f"{spec.problems:,}"
        rows.append([spec.name, source + gated, spec.detector, spec.grader, problems])
    print_table(["benchmark", "source", "commit", "grader", "problems"], rows, text_columns=4)


def _write(loaded: "Loaded", out: Path) -> None:
    import msgspec

    def lines() -> Iterator[bytes]:
        for item in loaded.items:
            yield msgspec.json.encode(item._asdict()) + b"\n"

    with written(out) as file:
        file.writelines(lines())


def _tell(loaded: "Loaded", out: Path | None, *, json: bool) -> None:
    spec, origin = loaded.benchmark, loaded.origin
    if json:
        told = {"detector": spec.detector, "grader": spec.grader, "problems": len(loaded.items)}
        print_json({"schema": "fot.tasks.load/1", **origin.as_dict(), **told, "out": str(out) if out else None})
        return
    told_rows = {
        "problems": f"{len(loaded.items):,}",
        "repository": origin.repository,
        "revision": origin.revision,
        "file": origin.file,
        "sha256": origin.sha256,
        "seed": str(origin.seed),
        "commit": spec.detector,
        "grader": spec.grader,
    }
    print_table([spec.name, ""], [[key, value] for key, value in told_rows.items() if value], text_columns=2)
    if out is not None:
        print_note(f"{len(loaded.items):,} problems are in {out}")
