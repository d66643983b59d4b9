"""Time and memory of every step on pools of rising size, and what an added rollout costs.

    fot pool synth --out paper                    # 115,200 rollouts, or any pool
    python -m benchmarks.scale paper --folder out --rollouts 1000 4000 16000 64000 115200
    python -m benchmarks.scale paper --folder out --summary --times 100 10000 --figure docs/images/scale.svg

A smaller pool holds every n-th problem of the large one, as JSON lines. Each step is a command of its own in a fresh
process; wall and processor time are the operating system's, and so is the peak of resident memory, of all processes of
the command together (what they share is counted for each), with the files that they have mapped and without.

`library` goes over the same texts in the same run, on one core: the column engine's search for all markers at once,
with the time to read the texts told apart, and on a sixteenth of the texts the other ways that libraries have, a pass
for each marker. What is measured is appended to a file in the folder, so sizes and steps may be measured one by one.

The summary fits straight lines, and tells what one through the sizes up to a quarter of the largest would have told of
the largest. `--times` goes on with those through the sizes from an eighth of the largest up.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from fot.core.markers import PAPER_KERNEL, count
from fot.pools.read import Pool

STEPS = ("synth", "import", "index", "library", "grade", "simulate", "sweep", "sweep again", "report")
PAPER_ROLLOUTS = 115_200
METHODS = ("sc", "pass", "fot", "random", "oracle", "ac", "esc", "dsc")


class Measured(msgspec.Struct, frozen=True):
    """One step on one size."""

    step: str
    rollouts: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    own_mb: float
    """The same without the files that are mapped, which the system takes back when it needs the room."""
    megabytes: float
    """Of text."""
    note: str = ""


def main() -> None:
    """Measure, or sum up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pool", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rollouts", type=int, nargs="+", default=[1000, 4000, 16000, 64000])
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS[1:-1])
    parser.add_argument("--prepare", action="store_true", help="write the rows, measure nothing")
    parser.add_argument("--summary", action="store_true", help="tables of what was measured so far")
    parser.add_argument("--times", type=float, nargs="+", default=[], help="foretell so many times the paper's pool")
    parser.add_argument("--figure", type=Path, help="draw time and memory by size as SVG")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    journal = options.folder / "measured.jsonl"
    if options.summary:
        measured = [msgspec.json.decode(line, type=Measured) for line in journal.read_bytes().splitlines()]
        summary(measured)
        foretell(measured, options.times)
        if options.figure:
            draw(measured, options.figure)
        return
    pool = Pool.open(options.pool)
    for size in options.rollouts:
        work = Work(pool, size, options.folder)
        for step in () if options.prepare else options.steps:
            found = work.measure(step)
            with journal.open("ab") as out:
                out.write(msgspec.json.encode(found) + b"\n")
            print(told(found), flush=True)


def told(found: Measured) -> str:
    """A line about a step."""
    rate = found.megabytes / max(found.cpu_s, 1e-9)
    times = f"wall {found.wall_s:8.2f} s  CPU {found.cpu_s:8.2f} s  {rate:7.0f} MB/s a core"
    peak = f"peak {found.peak_mb:6,.0f} MB ({found.own_mb:,.0f} without files)"
    return f"{found.step:12} {found.rollouts:8,} rollouts  {times}  {peak}  {found.note}"


class Work:
    """The steps on one size."""

    def __init__(self, pool: Pool, rollouts: int, folder: Path) -> None:
        self.rollouts = rollouts
        self.rows = folder / f"{rollouts}.jsonl"
        self.pool = folder / str(rollouts)
        self.made_up = folder / f"{rollouts}-made-up"
        self.out = folder / "out"
        self.megabytes = 0.0
        if not self.rows.exists():
            write_rows(pool, rollouts, self.rows)

    def measure(self, step: str) -> Measured:
        """Run one step."""
        if step == "library":
            return library(self.pool, self.rollouts)
        for stale in self.stale(step):
            shutil.rmtree(stale) if stale.is_dir() else stale.unlink()
        wall, cpu, peak, own = timed([sys.executable, "-m", "fot", *self.words(step)], self.out)
        pool = self.made_up if step == "synth" else self.pool
        chars = msgspec.json.decode((pool / "manifest.json").read_bytes())["chars"]
        return Measured(step, self.rollouts, wall, cpu, peak, own, chars / 1e6)

    def stale(self, step: str) -> Iterable[Path]:
        """What a step before has left that would spare this one its work."""
        left = {
            "synth": [self.made_up],
            "import": [self.pool],
            "index": [self.pool / "index"],
            "grade": self.pool.glob("grades*"),
            "simulate": self.pool.glob("index/*/pieces/outcomes-*"),
            "sweep": self.pool.glob("index/*/pieces/sweep-*"),
        }
        return [path for path in left.get(step, ()) if path.exists()]

    def words(self, step: str) -> list[str]:
        """The command."""
        pool = str(self.pool)
        policies = [word for method in METHODS for word in ("--policy", method)]
        scale = str(self.rollouts / PAPER_ROLLOUTS)
        return {
            "synth": ["pool", "synth", "--out", str(self.made_up), "--scale", scale],
            "import": ["pool", "import", str(self.rows), "--out", pool, "--synthetic", "fot pool synth"],
            "index": ["pool", "index", pool],
            "grade": ["grade", pool, "--grader", "math", "--json"],
            "simulate": ["simulate", pool, *policies, "--json"],
            "sweep": ["sweep", pool, "--json"],
            "sweep again": ["sweep", pool, "--json"],
            "report": ["report", pool, "--out", str(self.pool.with_suffix(".html")), "--paper", "--json"],
        }[step]


def write_rows(pool: Pool, rollouts: int, path: Path) -> None:
    """Every n-th problem of the pool as JSON lines."""
    whole = len(pool.rollout_id)
    wanted = max(1, round(len(pool.problems) * min(rollouts, whole) / whole))
    chosen = [pool.problems[at * len(pool.problems) // wanted] for at in range(wanted)]
    partial = path.with_suffix(".partial")
    with partial.open("wb") as out:
        for first in range(0, wanted, 64):
            parts = [np.arange(one.first, one.first + one.count) for one in chosen[first : first + 64]]
            for rollout in pool.rollouts(np.concatenate(parts)):
                row = {name: value for name, value in msgspec.to_builtins(rollout).items() if value is not None}
                row.pop("extra")
                out.write(msgspec.json.encode(row) + b"\n")
    partial.rename(path)


def timed(words: Sequence[str], out: Path) -> list[float]:
    """Wall seconds, processor seconds and the two peaks in MB of a command; what it prints goes to a file."""
    # Through a small process: what a command is started from counts towards its peak.
    with out.open("wb") as stream:
        ran = subprocess.run(
            [sys.executable, "-I", "-c", METER, *words], check=False, stdout=stream, stderr=subprocess.PIPE, text=True
        )
    if ran.returncode:
        raise SystemExit(f"{' '.join(words)}: {ran.stderr}")
    return msgspec.json.decode(ran.stderr.splitlines()[-1], type=list[float])


METER = """
import glob, json, os, resource, subprocess, sys, time
page = resource.getpagesize() / 2**20
def resident(pid):
    try:
        with open(f"/proc/{pid}/statm") as told:
            _, whole, files = map(int, told.read().split()[:3])
        found = [page * whole, page * (whole - files)]
        for thread in glob.glob(f"/proc/{pid}/task/*/children"):
            with open(thread) as told:
                for child in told.read().split():
                    found = [a + b for a, b in zip(found, resident(child))]
        return found
    except OSError:
        return [0, 0]
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:])
peaks = [0, 0]
while process.poll() is None:
    peaks = [max(pair) for pair in zip(peaks, resident(process.pid))]
    time.sleep(0.02)
wall = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
peaks[0] = max(peaks[0], used.ru_maxrss / 1024)
print(json.dumps([wall, used.ru_utime + used.ru_stime, *peaks]), file=sys.stderr)
sys.exit(process.returncode)
"""


def library(path: Path, rollouts: int) -> Measured:
    """Library searches for all markers, on one core: the best of them over all texts, the others on a share."""
    pool = Pool.open(path)
    read, searched = 0.0, 0.0
    megabytes = sampled = 0.0
    others = dict.fromkeys(OTHERS, 0.0)
    for group in range(pool.row_groups):
        began = time.process_time()
        column = pool.group(group, "text")
        read += time.process_time() - began
        size = column.nbytes / 1e6
        series = pl.Series(pl.from_arrow(column))
        searched += seconds(lambda: series.str.find_many(list(PAPER_KERNEL.markers)).list.len().sum())  # noqa: B023
        megabytes += size
        if group % 16 == 0:
            for name, work in OTHERS.items():
                others[name] += seconds(lambda: work(column))  # noqa: B023
            sampled += size
    told = ", ".join(f"{name} {sampled / spent:.0f} MB/s" for name, spent in others.items())
    note = f"of which reading {read:.2f} s; without reading: find_many {megabytes / searched:.0f} MB/s, {told}"
    return Measured("library", rollouts, read + searched, read + searched, 0.0, 0.0, megabytes, note)


OTHERS: dict[str, Callable[[pa.Array], object]] = {
    "polars count_matches": lambda column: [
        pl.Series(pl.from_arrow(column)).str.count_matches(marker, literal=True).sum()
        for marker in PAPER_KERNEL.markers
    ],
    "pyarrow count_substring": lambda column: [pc.count_substring(column, marker) for marker in PAPER_KERNEL.markers],
    "str.count": lambda column: sum(map(count, column.to_pylist())),
}
"""Passes over a column of texts, one for each marker."""


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began


def lines(measured: Sequence[Measured], step: str, value: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes, and the median of what was measured at each."""
    own = [one for one in measured if one.step == step]
    sizes = sorted({one.rollouts for one in own})
    middle = [float(np.median([getattr(one, value) for one in own if one.rollouts == size])) for size in sizes]
    return np.array(sizes, float), np.array(middle)


def summary(measured: Sequence[Measured]) -> None:
    """Slopes of time and memory, and what the sizes up to a quarter of the largest foretell of the largest."""
    heads = " ".join(f"{name:>9}" for name in ("CPU s", "wall s", "MB", "no files")) + "  r² of CPU"
    print("per 1,000 rollouts:")
    print(f"{'step':12} {heads}   CPU s of the largest: foretold, measured")
    for step in dict.fromkeys(one.step for one in measured):
        sizes, cpu = lines(measured, step, "cpu_s")
        if len(sizes) < 2:
            continue
        series = [lines(measured, step, what)[1] for what in ("cpu_s", "wall_s", "peak_mb", "own_mb")]
        slopes = [1000 * np.polyfit(sizes, values, 1)[0] for values in series]
        straight = np.corrcoef(sizes, cpu)[0, 1] ** 2
        small = sizes <= sizes[-1] / 4
        largest = ""
        if small.sum() > 1:
            guess = float(np.polyval(np.polyfit(sizes[small], cpu[small], 1), sizes[-1]))
            largest = f"{guess:8.1f} {cpu[-1]:8.1f}  ({guess / cpu[-1] - 1:+.0%})"
        told = " ".join(f"{slope:9.4f}" for slope in slopes)
        print(f"{step:12} {told} {straight:10.4f}   {largest}")


def foretell(measured: Sequence[Measured], times: Sequence[float]) -> None:
    """What the lines say of pools that nobody has here."""
    for factor in times:
        size = factor * PAPER_ROLLOUTS
        print(f"{factor:,g} times the paper's pool, {size:,.0f} rollouts:")
        for step in dict.fromkeys(one.step for one in measured):
            sizes, _ = lines(measured, step, "cpu_s")
            large = sizes >= sizes[-1] / 8
            if large.sum() > 1:
                series = [lines(measured, step, what)[1][large] for what in ("cpu_s", "peak_mb", "own_mb")]
                cpu, peak, own = (float(np.polyval(np.polyfit(sizes[large], one, 1), size)) for one in series)
                memory = f"{peak / 1000:8,.1f} GB at once ({own / 1000:,.1f} without files)"
                print(f"{step:12} {cpu / 3600:12,.3f} core hours  {memory}")


def draw(measured: Sequence[Measured], path: Path) -> None:
    """Time and memory by size, on logarithmic axes: a straight line of slope one is linear growth."""
    from fot.report import drawing
    from fot.report.exhibit import Figure

    def on(canvas: object) -> None:
        for at, (value, name) in enumerate((("cpu_s", "processor seconds"), ("own_mb", "peak of memory, MB")), 1):
            axes = drawing.panel(canvas, 1, 2, at, x="rollouts", y=name)  # type: ignore[arg-type]
            steps = [step for step in STEPS if step not in ("synth", "library", "sweep again")]
            for which, step in enumerate(steps):
                sizes, values = lines(measured, step, value)
                if len(sizes):
                    mark, dash, color = drawing.MARKS[which], drawing.DASHES[which], drawing.SERIES[which]
                    axes.loglog(sizes, values, marker=mark, ls=dash, color=color, label=step if at == 1 else None)
        drawing.legend(canvas, 6, "outside upper center")

    path.write_text(drawing.svg(Figure("scale", "Time and memory by pool size", on, 7.2, 3.0), "synthetic texts"))


if __name__ == "__main__":
    main()
