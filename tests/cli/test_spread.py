"""Shared out, a command gives the same bytes as alone, whatever the number of workers and whatever befalls them."""

import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fot.cli import executors
from fot.cli.executors import Job, array_script
from fot.cli.main import main
from fot.pools import chunks, write
from fot.pools.read import Pool
from fot.replay import graded, kept, tree

POLICIES = ["ac", "fot:checkpoints=60/120", "adaptive", "dsc", "sc+decided"]
SIMULATE = ["--json", *(word for policy in POLICIES for word in ("--policy", policy))]
STEPS = {
    "pool index": ["--json"],
    "grade": ["--grader", "math", "--json"],
    "simulate": SIMULATE,
    "sweep": ["--json", "--scale", "0.01", "--kernels", "1/21"],
}


def rows(problems=30, k=6):
    chance = random.Random(5)
    words = ["so ", "Wait, ", "perhaps ", "then ", "x = 3 ", "\\boxed{1}", "\\boxed{2}", "\\boxed{\\frac{1}{2}}"]
    for problem in range(problems):
        for rollout in range(k):
            text = "".join(chance.choices(words, [20, 2, 2, 20, 20, 1, 1, 1], k=chance.randint(20, 120)))
            keys = {"model": "m", "benchmark": "b", "problem_id": f"p{problem}", "rollout_id": rollout}
            yield keys | {
                "gold": str(problem % 9),
                "text": f"{text}\\boxed{{{chance.choice('1123')}}}",
                "n_tokens": len(text) // 3,
            }


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    """So that a small pool has more pieces than there are workers."""
    monkeypatch.setattr(write, "GROUP_CHARS", 4000)
    monkeypatch.setattr(chunks, "CHUNK_GROUPS", 1)
    monkeypatch.setattr(kept, "BLOCK_PROBLEMS", 4)
    monkeypatch.setattr(tree, "_BLOCK_PROBLEMS", 4)
    monkeypatch.setattr(graded, "_PIECE_PAIRS", 2)


@pytest.fixture
def pool(tmp_path):
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    assert main(["pool", "import", str(lines), "--out", str(tmp_path / "pool")]) == 0
    return tmp_path / "pool"


def told(capsysbinary, *words):
    """What a command writes on stdout."""
    capsysbinary.readouterr()
    assert main([str(word) for word in words]) == 0
    return capsysbinary.readouterr().out


def forget(pool):
    """Delete all that was derived from a pool."""
    shutil.rmtree(pool / "index", ignore_errors=True)
    (pool / "grades.sqlite").unlink(missing_ok=True)


def index_bytes(pool):
    return {path.relative_to(pool): path.read_bytes() for path in sorted(pool.glob("index/*/[mc]*/*"))}


@pytest.mark.parametrize("world", [2, 3, 7])
@pytest.mark.parametrize("step", STEPS)
def test_shards_do_not_show(pool, step, world, capsysbinary, monkeypatch):
    alone = told(capsysbinary, *step.split(), pool, *STEPS[step])
    files = index_bytes(pool)
    forget(pool)
    main(["pool", "index", str(pool)])
    if step == "pool index":
        forget(pool)
    for rank in reversed(range(world)):
        assert told(capsysbinary, *step.split(), pool, *STEPS[step], "--shard", f"{rank}/{world}") == b""
    for module, work in ((kept, "packed"), (tree, "_play"), (chunks.scanning, "scan")):
        monkeypatch.setattr(module, work, lambda *_: pytest.fail("there is work left"))
    assert told(capsysbinary, *step.split(), pool, *STEPS[step]) == alone
    assert index_bytes(pool) == files


def test_the_rows_of_a_simulation_are_those_of_one_worker(pool, tmp_path, capsysbinary):
    whole, joined = tmp_path / "whole.jsonl", tmp_path / "joined.jsonl"
    told(capsysbinary, "simulate", pool, *SIMULATE, "--per-problem", whole)
    forget(pool)
    for rank in range(3):
        told(capsysbinary, "simulate", pool, *SIMULATE, "--shard", f"{rank}/3")
    told(capsysbinary, "simulate", pool, *SIMULATE, "--per-problem", joined)
    assert joined.read_bytes() == whole.read_bytes()
    assert len(whole.read_text().splitlines()) == 30 * len(POLICIES)


KILLED = """
import os, signal, sys
from fot.cli.main import main
from fot.pools import chunks, pieces
from fot.replay import graded, kept, tree
chunks.CHUNK_GROUPS, kept.BLOCK_PROBLEMS, tree._BLOCK_PROBLEMS, graded._PIECE_PAIRS = 1, 4, 4, 2

def dying(keep, seen=[]):
    def kept_or_killed(*given):
        seen.append(1)
        if len(seen) > 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return keep(*given)
    return kept_or_killed

chunks.keep_derived = dying(chunks.keep_derived)
pieces.Pieces.keep = dying(pieces.Pieces.keep)
main(sys.argv[1:])
"""


@pytest.mark.parametrize("step", STEPS)
def test_a_worker_killed_in_the_middle_changes_nothing(pool, step, capsysbinary):
    alone = told(capsysbinary, *step.split(), pool, *STEPS[step])
    forget(pool)
    if step != "pool index":
        main(["pool", "index", str(pool)])
    words = [*step.split(), str(pool), *STEPS[step]]
    ran = subprocess.run([sys.executable, "-c", KILLED, *words, "--shard", "0/2"], check=False, env=environment())
    assert ran.returncode == -signal.SIGKILL
    left = {path: path.stat().st_mtime_ns for path in pool.glob("index/*/pieces/*") if path.name[0] != "."}
    assert bool(left) == (step != "pool index")
    told(capsysbinary, *words, "--shard", "0/2")
    assert {path: path.stat().st_mtime_ns for path in left} == left  # nothing is done twice
    assert told(capsysbinary, *words) == alone


def environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def test_processes(pool, capsysbinary, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    alone = told(capsysbinary, "sweep", pool, *STEPS["sweep"])
    forget(pool)
    words = ("spread", "--shards", "3", "--at-once", "2", "--", "sweep", pool, *STEPS["sweep"])
    assert told(capsysbinary, *words) == alone


def test_failed_workers_are_named_and_their_work_is_done(pool, capsysbinary, monkeypatch):
    alone = told(capsysbinary, "sweep", pool, *STEPS["sweep"])
    forget(pool)
    script = "import os, sys; print('error: no luck', file=sys.stderr); sys.exit(3) if {} else os.kill(os.getpid(), 9)"
    monkeypatch.setattr(Job, "words", lambda job, shard: [sys.executable, "-c", script.format(shard == "0/2")])
    assert main(["spread", "--shards", "2", "--", "sweep", str(pool), *STEPS["sweep"]]) == 0
    said = capsysbinary.readouterr()
    assert said.out == alone
    assert b"shard 0 of 2 failed (exit code 3: error: no luck)" in said.err
    assert b"shard 1 of 2 failed (signal 9" in said.err


def test_an_array_script_run_by_hand(pool, tmp_path, capsysbinary):
    alone = told(capsysbinary, "simulate", pool, *SIMULATE)
    forget(pool)
    script = tmp_path / "array.sh"
    words = ("spread", "--shards", "3", "--at-once", "2", "--sbatch=--time=10:00", "--script", script, "--", "simulate")
    assert told(capsysbinary, *words, pool, *SIMULATE) == b""
    assert script.read_text().splitlines()[1:4] == [
        "#SBATCH --array=0-2%2",
        "#SBATCH --job-name=fot",
        "#SBATCH --time=10:00",
    ]
    for task in range(3):
        subprocess.run(["bash", script], check=True, env=environment() | {"SLURM_ARRAY_TASK_ID": str(task)})
    assert told(capsysbinary, "simulate", pool, *SIMULATE) == alone


def test_the_scripts_exit_code_is_the_workers(tmp_path):
    def code(*command):
        script = tmp_path / "array.sh"
        script.write_text(array_script(Job(command=command, world=2)))
        env = environment() | {"SLURM_ARRAY_TASK_ID": "0"}
        return subprocess.run(["bash", script], check=False, env=env, capture_output=True).returncode

    small = ("--problems", "1", "--benchmark", "AIME24", "-k", "1")
    assert code("pool", "synth", "--out", str(tmp_path / "made"), *small) == 0
    assert code("pool", "index", str(tmp_path / "nothing")) == 1


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("ray", None if importlib.util.find_spec("ray") else "ray is not installed"),
        ("slurm", None if shutil.which("sbatch") and "SLURM_CONF" in os.environ else "no Slurm (SLURM_CONF)"),
    ],
)
def test_clusters(name, missing, pool, capsysbinary, monkeypatch):
    if missing:
        pytest.skip(missing)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    alone = told(capsysbinary, "sweep", pool, *STEPS["sweep"])
    forget(pool)
    words = ["spread", "--executor", name, "--shards", "3", "--", "sweep", str(pool), *STEPS["sweep"]]
    command = [sys.executable, "-m", "fot", *words]
    ran = subprocess.run(command, check=True, env=environment(), capture_output=True, cwd=pool.parent)
    assert ran.stdout == alone
    assert b"failed" not in ran.stderr
    assert len(list(pool.glob("index/*/pieces/sweep-*"))) == 1


def test_what_cannot_be_shared_out(tmp_path, capsys, monkeypatch):
    for words, said in (
        (["--", "report", "pool"], "cannot be shared out"),
        (["--shards", "0", "--", "sweep", "pool"], "must be at least 1"),
        (["--executor", "slrum", "--", "sweep", "pool"], "Did you mean 'slurm'"),
    ):
        assert main(["spread", *words]) == 2
        assert said in capsys.readouterr().err
    monkeypatch.setattr(executors.shutil, "which", lambda name: None)
    assert main(["spread", "--executor", "slurm", "--", "sweep", "pool"]) == 2
    assert "--script" in capsys.readouterr().err
    lines = Path(tmp_path, "pairs.jsonl")
    lines.write_text('{"gold": "1", "answer": "1"}\n')
    assert main(["grade", str(lines), "--grader", "exact", "--shard", "0/2"]) == 2


def test_a_damaged_piece_is_made_again(pool, capsysbinary):
    alone = told(capsysbinary, "simulate", pool, *SIMULATE)
    for piece in pool.glob("index/*/pieces/*"):
        piece.write_bytes(piece.read_bytes()[:-1])
    assert told(capsysbinary, "simulate", pool, *SIMULATE) == alone


def test_a_pool_that_cannot_be_written_is_simulated_all_the_same(pool, capsysbinary, monkeypatch):
    alone = told(capsysbinary, "simulate", pool, *SIMULATE)
    forget(pool)
    (pool / "index").write_text("in the way")
    monkeypatch.setenv("FOT_HOME", "/proc/nowhere")
    assert told(capsysbinary, "simulate", pool, *SIMULATE) == alone
    assert Pool.open(pool).manifest.problems == 30
