"""``fot pool import``, ``fot pool index`` and ``fot pool info``."""

from pathlib import Path
from typing import TYPE_CHECKING

from fot.cli.output import ExitCode, print_json, print_note, print_table, progress, synthetic_line

if TYPE_CHECKING:
    from fot.pools.summary import Group, Spread, Summary

__all__ = ["import_", "index", "info"]

CHEAP_DETECTORS = ("boxed", "choice", "code")  # what `info` tries when it is not told; `paper` reads everything


def import_(
    files: list[Path],
    /,
    *,
    out: Path,
    rejects: Path | None = None,
    synthetic: str | None = None,
    format: str | None = None,
    model: str | None = None,
    benchmark: str | None = None,
    json: bool = False,
) -> int:
    """Make a pool from files of rows, or from the logs of other harnesses.

    Rows that cannot be imported are set aside with file, line and reason, and the exit code is then 4.

    Parameters
    ----------
    files
        JSON lines (plain, gzip or zstd) or Parquet, with the fields of a rollout; or samples of lm-eval, logs of
        Inspect (.eval, .json), details of lighteval. Rollouts of one problem in several logs are numbered on.
    out
        The pool to make; a pool that stands there is replaced when the new one is complete.
    rejects
        Where rejected rows go, as JSON lines; beside the pool when not given.
    synthetic
        Label the pool as not written by a model: says by what.
    format
        rows, lm-eval, inspect or lighteval. Default: each file's content tells.
    model
        The model that wrote the rollouts of a log, where the log does not say or says it otherwise.
    benchmark
        The benchmark of a log, where the log does not say or says it otherwise.
    json
        Print one JSON object in place of text.
    """
    from fot.pools.importing import import_rows
    from fot.pools.logs import Names

    size = sum(file.stat().st_size for file in files if file.is_file())
    with progress("importing", size) as done:
        report = import_rows(
            files,
            out,
            rejects=rejects,
            synthetic=synthetic,
            form=format,
            names=Names(model, benchmark),
            progress=done,
        )
    if json:
        print_json(
            {
                "schema": "fot.pool.import/1",
                "pool": str(report.pool),
                "problems": report.problems,
                "rollouts": report.rollouts,
                "synthetic": synthetic,
                "resumed": report.resumed,
                "rejected": report.rejected,
                "rejects": str(report.rejects) if report.rejects else None,
            }
        )
    else:
        rows = [["problems", f"{report.problems:,}"], ["rollouts", f"{report.rollouts:,}"]]
        print_table([str(out), ""], rows)
    if report.resumed:
        print_note(f"{report.resumed:,} of the rollouts were there from an import before")
    if report.rejected > 1:
        print_note(f"{report.rejected:,} rows were rejected; they are in {report.rejects}, each with the reason")
    elif report.rejected:
        print_note(f"1 row was rejected; it is in {report.rejects} with the reason")
    return ExitCode.PARTIAL if report.rejected else ExitCode.OK


def index(pools: list[Path], /, *, commit: str = "boxed", shard: str | None = None, json: bool = False) -> None:
    """Make the index of pools: what every other command would make when it first needs it.

    A run that was killed goes on where it was.

    Parameters
    ----------
    pools
        Pools, or directly files of rows.
    commit
        When a rollout has committed to an answer: boxed, choice, code or paper.
    shard
        RANK/WORLD: scan this share of the texts only; the next run without it joins all shares. See fot spread.
    json
        Print one JSON object in place of a table.
    """
    from fot.core.markers import PAPER_KERNEL
    from fot.pools.index import index_of, index_share
    from fot.pools.read import Pool
    from fot.pools.shard import Shard

    own = Shard.parse(shard) if shard is not None else None
    rows = []
    for path in pools:
        opened = Pool.open(path)
        with progress("indexing", opened.manifest.chars, "char") as done:
            if own is not None:
                index_share(opened, PAPER_KERNEL, commit, own, done)
                continue
            made = index_of(opened, PAPER_KERNEL, commit, done)
        rows.append({"pool": opened.name, "rollouts": len(made.n_chars), "chars": opened.manifest.chars})
        rows[-1] |= {"markers": made.markers, "commitments": len(made.committing_rows), "answers": len(made.answers)}
        rows[-1] |= {"synthetic": opened.manifest.synthetic}
    if own is not None:
        print_note(f"shard {shard}: scanned")
    elif json:
        print_json({"schema": "fot.pool.index/1", "commit": commit, "pools": rows})
    else:
        headers = ["pool", "rollouts", "chars", "markers", "commitments", "answers"]
        made_by = ", ".join(str(row["synthetic"]) for row in rows if row["synthetic"])
        cells = [[str(row["pool"]), *(f"{row[name]:,}" for name in headers[1:])] for row in rows]
        print_table(headers, cells, title=synthetic_line(made_by).strip())


def info(pool: Path, /, *, commit: str | None = None, json: bool = False) -> None:
    """Tell what is in a pool.

    Parameters
    ----------
    pool
        A pool, or directly a file of rows.
    commit
        Tell the share without an answer for this commitment detector alone (boxed, choice, code, paper).
    json
        Print one JSON object in place of tables.
    """
    from fot.pools.read import Pool
    from fot.pools.summary import describe

    with progress("importing", pool.stat().st_size if pool.is_file() else None) as done:
        opened = Pool.open(pool, done)
    with progress("reading", opened.manifest.chars) as done:
        summary = describe(opened, (commit,) if commit else CHEAP_DETECTORS, progress=done)
    if json:
        print_json(summary)
        return
    print_table([summary["pool"], ""], _facts(summary))
    if len(summary["groups"]) > 1:
        print_table(
            ["model", "benchmark", "problems", "rollouts", "mean tokens", "mean density"],
            [_group_row(group) for group in summary["groups"]],
            text_columns=2,
            title="\nby model and benchmark",
        )


def _facts(summary: "Summary") -> list[list[str]]:
    tokens = summary["tokens"]
    facts = [
        ["models", ", ".join(summary["models"])],
        ["benchmarks", ", ".join(summary["benchmarks"])],
        ["problems", f"{summary['problems']:,}"],
        ["rollouts", f"{summary['rollouts']:,} ({summary['biased']:,} of them biased: left out unless asked for)"],
        ["rollouts per problem", _range(summary["rollouts_per_problem"])],
        ["unbiased per problem", _range(summary["unbiased_per_problem"])],
        ["tokens", _quantiles(tokens) if tokens else "not counted"],
        ["characters", _quantiles(summary["chars"])],
        ["finished by", ", ".join(f"{reason} {count:,}" for reason, count in summary["finish_reasons"].items())],
        ["cuts", _cuts(summary)],
        [f"density ({summary['kernel']} kernel)", _quantiles(summary["density"], ".2f")],
        ["without an answer", ", ".join(f"{name} {share:.2%}" for name, share in summary["no_answer"].items())],
        ["size", f"{summary['bytes'] / 1e6:,.1f} MB as {summary['format']}"],
    ]
    if summary["rejected"]:
        facts.append(["rejected at import", f"{summary['rejected']:,}"])
    if summary["synthetic"]:
        facts.append(["synthetic", summary["synthetic"]])
    return facts


def _cuts(summary: "Summary") -> str:
    ways = ", ".join(f"{way} {count:,}" for way, count in summary["cuts"].items())
    if summary["estimated_chars_per_token"]:
        return f"{ways} (at {summary['estimated_chars_per_token']} characters per token)"
    return ways


def _range(spread: "Spread") -> str:
    return f"{spread['min']:.0f} to {spread['max']:.0f}, median {spread['median']:.0f}"


def _quantiles(spread: "Spread", form: str = ",.0f") -> str:
    shown = {name: format(value, form) for name, value in spread.items()}
    return (
        f"{shown['min']} to {shown['max']}, mean {shown['mean']}, "
        f"median {shown['median']}, 80% within {shown['p10']} to {shown['p90']}"
    )


def _group_row(group: "Group") -> list[str]:
    tokens = group["tokens"]
    return [
        group["model"],
        group["benchmark"],
        f"{group['problems']:,}",
        f"{group['rollouts']:,}",
        f"{tokens['mean']:,.0f}" if tokens else "",
        f"{group['density']['mean']:.2f}",
    ]
