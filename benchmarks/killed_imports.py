"""Kill an import at random moments, many times, and see what stands there afterwards.

    python benchmarks/killed_imports.py [FILE] [--times N] [--seed N]

Two pools are imported over and over: one where none stands, one in place of the other half of the same rows. After each
kill the first must be absent or whole, and the second one of the two halves, whole: every text is read and hashed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from fot.pools.importing import import_rows
from fot.pools.read import Pool


def main() -> None:
    """Kill, look, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), options.file, options.times, random.Random(options.seed))
    for what, times in sorted(found.items()):
        print(f"{times:4} times: {what}")


def run(folder: Path, file: Path | None, times: int, moments: random.Random) -> Counter[str]:
    """What stood there after each kill; raises `SystemExit` when something did that must not."""
    halves = split(file, folder)
    digests = {}
    for name, half in halves.items():
        import_rows([half], folder / name)
        digests[digest(folder / name)] = name
    started = time.perf_counter()
    start(halves["first"], folder / "timed").wait()
    whole = time.perf_counter() - started
    found: Counter[str] = Counter()
    import_rows([halves["first"]], folder / "replaced")
    for _ in range(times):
        fresh = folder / "fresh"
        kill(start(halves["first"], fresh), moments.uniform(0, 1.3 * whole))
        found["nothing yet" if not fresh.exists() else f"a new pool, the {known(digests, fresh)} half"] += 1
        shutil.rmtree(fresh, ignore_errors=True)
        standing = known(digests, folder / "replaced")
        other = "second" if standing == "first" else "first"
        kill(start(halves[other], folder / "replaced"), moments.uniform(0, 1.3 * whole))
        found["replaced" if known(digests, folder / "replaced") == other else "not replaced"] += 1
    return found


def split(file: Path | None, folder: Path) -> dict[str, Path]:
    """Two files of rows, with the odd and the even rollouts of `file`, or of word salad."""
    halves = {"first": folder / "first.jsonl", "second": folder / "second.jsonl"}
    rows = map(rollout_line, Pool.open(file)) if file else salad(random.Random(1))
    with halves["first"].open("w") as first, halves["second"].open("w") as second:
        for at, line in enumerate(rows):
            (second if at % 2 else first).write(line + "\n")
    return halves


def rollout_line(rollout: object) -> str:
    """The part of a rollout that is needed to tell it from others."""
    names = ("model", "benchmark", "problem_id", "rollout_id", "text")
    return json.dumps({name: getattr(rollout, name) for name in names})


def salad(source: random.Random) -> Iterable[str]:
    """Rows of random letters, so that they take some time to write."""
    for at in range(2000):
        text = "".join(source.choices("abcdefghijklmnop ", k=20_000))
        yield json.dumps({"model": "m", "benchmark": "b", "problem_id": str(at % 50), "rollout_id": at, "text": text})


def start(rows: Path, out: Path) -> subprocess.Popen[bytes]:
    """An import in a process of its own."""
    command = [sys.executable, "-m", "fot", "pool", "import", str(rows), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill(process: subprocess.Popen[bytes], after: float) -> None:
    """Let a process live for so many seconds."""
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.wait()


def digest(path: Path) -> str:
    """Of every text of a pool, with its place."""
    whole = hashlib.sha256()
    for rollout in Pool.open(path):
        whole.update(f"{rollout.problem_id} {rollout.rollout_id} {rollout.text}\0".encode())
    return whole.hexdigest()


def known(digests: dict[str, str], path: Path) -> str:
    """Which pool stands at `path`."""
    found = digest(path)
    if found not in digests:
        raise SystemExit(f"{path} reads wrong")
    return digests[found]


if __name__ == "__main__":
    main()
