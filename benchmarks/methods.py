"""All methods that a pool allows, side by side: accuracy with a paired interval, all savings, and how long each took.

    python -m benchmarks.methods POOL:K:COMMIT... [--half odd|even] [--slimsc EMBEDDER] [--ablations] [--out FILE.md]

Writes one Markdown table for each pool (pool, rollouts a problem, commitment detector), then the adaptive funnel
against its targets. Outcomes that an earlier run kept are not used, the index is. `--half` takes the problems whose id
has an odd or even CRC-32: settings are chosen on one half, and may be reported on the other. Nothing of a pool's texts
is written.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from fot.grading.base import grader
from fot.methods import parse
from fot.pools.read import Part, Pool
from fot.replay.evaluate import Judge, MethodResult, Study
from fot.replay.sheet import Sheet

SPECS = (
    *("sc", "pass", "first-n:n=8", "first-n:n=15"),
    *("ac", "ac:criterion=dirichlet", "ac:criterion=entropy", "ac:criterion=majority", "ac:mode=cancel", "esc"),
    *("dsc", "dsc+fot", "ac+fot", "certaindex", "parallel-probe:probe=off"),
    *("fot", "random", "oracle", "fot:eager=on", "fot+decided", "fot:eager=on+bayes", "sc+decided", "sc+bayes"),
    *("waves", "waves:first=12,more=9", "waves:first=16,more=16", "waves+fot"),
    *("adaptive", "adaptive:signal=random", "adaptive:keep=1", "adaptive:keep=0.5", "adaptive:stop=none"),
    *("adaptive:first=0.75", "adaptive:first=1", "adaptive:first=1,signal=random"),
)
READING_TEXTS = ("fot:signal=repetition", "fot:signal=agreement/density", "adaptive:signal=repetition")
ABLATIONS = (
    *(f"{name}:keep={keep},early_voting={early}" for early in ("on", "off") for keep in (0.33, 0.5, 0.67, 0.85)
      for name in ("fot", "random")),
    *("fot:keep=1", "fot:keep=1,early_voting=off"),
    *(f"fot:kernel=top-{size}" for size in (1, 2, 3, 5, 8, 13, 21)),
)  # fmt: skip
SIZES = (8, 16, 24, 32)
HEAD = (
    "| method | correct | gained | won/lost | 95% (pp) | attention | macro | tokens | latency | full | votes | wall s |"
)


class Source(NamedTuple):
    """A pool, how many rollouts of each problem, and what counts as a commitment."""

    path: Path
    k: int
    commit: str


class Measured(NamedTuple):
    """One method's result, and how long it took: on the clock, and on the processor."""

    result: MethodResult
    seconds: float
    cpu_seconds: float


def source(text: str) -> Source:
    """Read `POOL:K:COMMIT`."""
    path, k, commit = text.rsplit(":", 2)
    return Source(Path(path), int(k), commit)


def study_of(source: Source, half: str | None) -> Study:
    """Self-consistency and everything else on this pool, or on one half of its problems."""
    pool = Pool.open(source.path)
    parts = [part for part in pool.select(source.k).parts if in_half(part, half)]
    return Study([Sheet(pool, parts, source.commit)], Judge(grader("exact")))


def in_half(part: Part, half: str | None) -> bool:
    """Does the problem belong to this half (None: any)?"""
    return half is None or crc32(part.problem.problem_id.encode()) % 2 == (half == "odd")


def measure(study: Study, specs: Iterable[str]) -> dict[str, Measured]:
    """Run methods, each timed on its own; the index is there already."""
    measured = {}
    for text in specs:
        start, cpu_start = time.perf_counter(), time.process_time()
        result = study.evaluate(parse(text))
        measured[text] = Measured(result, time.perf_counter() - start, time.process_time() - cpu_start)
    return measured


def table(measured: dict[str, Measured]) -> list[str]:
    """One pool's methods as a Markdown table."""
    lines = [HEAD, "|" + "---|" * HEAD.count(" |")]
    for spec, (result, seconds, _) in measured.items():
        saved = result.savings
        shares = (saved.attention, saved.attention_macro, saved.tokens, saved.latency, saved.full_model)
        cells = [
            f"`{spec}`",
            f"{result.correct:.1f}".removesuffix(".0"),
            f"{result.delta:+.1f}",
            f"{result.wins:.1f}/{result.losses:.1f}",
            f"{result.ci95_pp.low:+.1f} to {result.ci95_pp.high:+.1f}",
            *("-" if share is None else f"{100 * share:.1f}%" for share in shares),
            f"{result.votes_mean:.1f}",
            f"{seconds:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def targets(found: Sequence[dict[str, Measured]], name: str = "adaptive") -> list[str]:
    """How one set of defaults does over all pools, against `sc` and `fot`."""
    gained = sum(pool[name].result.delta for pool in found)
    left = [(1 - pool[name].result.savings.attention, 1 - pool["fot"].result.savings.attention) for pool in found]
    latency = [pool[name].result.savings.latency for pool in found]
    share = sum(ours for ours, _ in left) / sum(theirs for _, theirs in left)
    by_pool = ", ".join(f"{ours:.3f} of {theirs:.3f}" for ours, theirs in left)
    return [
        f"- `{name}`: {gained:+.1f} problems over `sc` in the sum over pools; attention left {by_pool}, which is "
        f"{100 * share:.0f}% of what `fot` leaves on average; latency cut by {100 * sum(latency) / len(latency):.1f}% "
        f"on average ({', '.join(f'{100 * cut:.1f}%' for cut in latency)})."
    ]


def ablations(found: Sequence[dict[str, Measured]], pools: Sequence[Source]) -> list[str]:
    """What each part of the funnel is worth, on every pool: problems gained, their interval, attention saved."""
    names = " | ".join(f"{name_of(one)}, k = {one.k}" for one in pools)
    lines = ["", "## Ablations", "", f"| setting | {names} |", "|---|" + "---|" * len(pools)]
    for spec in ABLATIONS:
        lines.append(f"| `{spec}` | {' | '.join(brief(pool[spec].result) for pool in found)} |")
    return lines


def brief(result: MethodResult) -> str:
    """A method in one cell."""
    gained = f"{result.delta:+.1f}".removesuffix(".0")
    low, high = result.ci95_pp
    return f"{gained} ({low:+.1f} to {high:+.1f} pp), {100 * result.savings.attention:.1f}%"


def sizes(pools: Sequence[Source], half: str | None) -> list[str]:
    """The default funnel on pools of fewer and of more rollouts, each on the problems that have as many."""
    names = " | ".join(name_of(one) for one in pools)
    lines = ["", f"| k | {names} |", "|---|" + "---|" * len(pools)]
    for k in SIZES:
        cells = [sized(one._replace(k=k), half) for one in pools]
        lines.append(f"| {k} | {' | '.join(cells)} |")
    return lines


def sized(one: Source, half: str | None) -> str:
    """The default funnel at this k, and on how many problems."""
    if not Pool.open(one.path).select(one.k).parts:
        return "-"
    study = study_of(one, half)
    return f"{brief(study.evaluate(parse('fot')))}, {len(study.problems)} problems"


def name_of(one: Source) -> str:
    """What a pool is called."""
    return one.path.name.split(".")[0]


def report(options: argparse.Namespace, say: Callable[[str], None] = print) -> list[str]:
    """The whole page's measured part."""
    specs = [*SPECS, *READING_TEXTS, *([f"slimsc:embedder={options.slimsc}"] if options.slimsc else [])]
    lines: list[str] = []
    found = []
    for one in options.pools:
        study = study_of(one, options.half)
        measured = measure(study, [*specs, *(ABLATIONS if options.ablations else ())])
        found.append(measured)
        wall = sum(measured[spec].seconds for spec in SPECS)
        cpu = sum(measured[spec].cpu_seconds for spec in SPECS)
        problems = f"{len(study.problems)} problems" + (f" ({options.half} half)" if options.half else "")
        name = name_of(one)
        lines += ["", f"## {name}, k = {one.k}, {problems}, `--commit {one.commit}`", ""]
        lines += table({spec: measured[spec] for spec in specs})
        lines += [
            "",
            f"The {len(SPECS)} methods that read no text took {wall:.1f} s together, {cpu:.1f} s of processor time.",
        ]
        say(f"{name}: {sum(one.seconds for one in measured.values()):.1f} s")
    lines += ["", "## Over all pools", "", *targets(found), *targets(found, "adaptive:signal=random")]
    lines += targets(found, "adaptive:first=1")
    if options.ablations:
        lines += [*ablations(found, options.pools), *sizes(options.pools, options.half)]
    return [*lines, ""]


def main() -> None:
    """Measure, and write or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", type=source, nargs="+")
    parser.add_argument("--half", choices=("odd", "even"))
    parser.add_argument("--slimsc", metavar="EMBEDDER")
    parser.add_argument("--ablations", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = report(options, say=print if options.out else lambda _: None)
    if options.out:
        options.out.write_text("\n".join(lines), encoding="utf-8")
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
