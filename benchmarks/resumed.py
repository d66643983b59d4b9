"""Every step killed in the middle, and what the second run then costs: nothing is done twice, and the output is alike.

    python -m benchmarks.resumed rows.jsonl --folder out [--scale 0.25] [--share 0.6]

For each step: a run from nothing, undisturbed; one that is killed with all its processes (SIGKILL) after `--share` of
that time; a second run, which goes on; a third, which finds everything done. Each is a process of its own. What the
runs print must be the same bytes, and so must what they leave (import: the manifest's digests).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

POLICIES = ("adaptive", "ac+fot", "fot+decided")
"""Methods that are run by the state machine."""


def main() -> None:
    """Every step, in the order of their work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="a file of rows")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=0.25, help="of fot pool synth")
    parser.add_argument("--share", type=float, default=0.6, help="of a whole run's time, after which it is killed")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = options.folder.absolute()
    pool, made_up = folder / "pool", folder / "made-up"
    policies = [word for policy in POLICIES for word in ("--policy", policy)]
    kept: dict[str, tuple[list[str], list[Path]]] = {
        "pool synth": (
            ["--scale", str(options.scale), "--out", str(made_up)],
            [made_up, made_up.with_name(".made-up*")],
        ),
        "pool import": ([str(options.rows), "--out", str(pool)], [pool, pool.with_name(".pool*")]),
        "pool index": ([str(pool)], [pool / "index"]),
        "grade": ([str(pool), "--grader", "math"], [pool / "grades*"]),
        "simulate": ([str(pool), *policies], [pool / "index/*/pieces/outcomes-*"]),
        "sweep": ([str(pool), "--kernels", "1/5/9/13/17/21"], [pool / "index/*/pieces/sweep-*"]),
    }
    print(f"{'step':12} {'whole':>9} {'killed at':>10} {'second run':>11} {'third run':>10}")
    for name, (flags, left) in kept.items():
        print(f"{name:12} {line([*name.split(), *flags], left, options.share)}", flush=True)


def line(words: Sequence[str], left: Sequence[Path], share: float) -> str:
    """The times of one step's runs."""
    forget(left)
    whole, told = run(words)
    found = rows_of(left[0])
    forget(left)
    start(words, share * whole)
    seconds = []
    for which in ("second", "third"):
        took, again = run(words)
        seconds.append(took)
        if again != told or rows_of(left[0]) != found:
            raise SystemExit(f"{' '.join(words)}: the {which} run does not give what an undisturbed run gives")
    return f"{whole:8.2f}s {share * whole:9.2f}s {seconds[0]:10.2f}s {seconds[1]:9.2f}s"


def forget(left: Sequence[Path]) -> None:
    """Delete what a step has left."""
    for pattern in left:
        for path in Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def rows_of(pool: Path) -> object:
    """The digest of a pool's rows, where this is a pool."""
    manifest = pool / "manifest.json"
    return msgspec.json.decode(manifest.read_bytes())["sha256"] if manifest.exists() else None


def run(words: Sequence[str]) -> tuple[float, bytes]:
    """A whole run: its seconds, and what it printed."""
    began = time.perf_counter()
    process = start(words)
    told, said = process.communicate()
    if process.returncode:
        raise SystemExit(f"{' '.join(words)}: {said.decode()}")
    return time.perf_counter() - began, told


def start(words: Sequence[str], seconds: float | None = None) -> subprocess.Popen[bytes]:
    """A run; after so many seconds it is killed, with all processes that it started."""
    command = [sys.executable, "-m", "fot", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    if seconds is not None:
        time.sleep(seconds)
        if process.poll() is not None:
            raise SystemExit(f"{' '.join(words)} was done before it was killed: give a smaller --share")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return process


if __name__ == "__main__":
    main()
