"""Whole pools judged: counts, the grades kept beside them, and what a kill leaves behind."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from fot.cli.main import main
from fot.grading.base import grader
from fot.grading.exact import ExactGrader
from fot.grading.store import GradeStore
from fot.pools.importing import import_rows
from fot.pools.read import Pool
from fot.replay.graded import grade_pool
from fot.replay.sheet import Sheet
from fot.replay.study import choose, judge_of
from tests.pools.rows import row, write_lines

ROWS = [
    row("p1", 0, r"so \boxed{04}", gold="4"),
    row("p1", 1, r"so \boxed{5}", gold="4"),
    row("p1", 2, "nothing", gold="4"),
    row("p1", 3, r"so \boxed{4}", gold="4", unbiased=False),
    row("p2", 0, r"so \boxed{4}"),
    row("p3", 0, r"so \boxed{4}", gold="4", model="n"),
]


@pytest.fixture
def pool(tmp_path):
    import_rows([write_lines(tmp_path / "rows.jsonl", ROWS)], tmp_path / "pool")
    return Pool.open(tmp_path / "pool")


def test_every_unbiased_rollout_has_a_grade(pool):
    told = []
    with grader("exact") as judge:
        graded = grade_pool(pool, commit="boxed", grader=judge, progress=lambda done, total: told.append((done, total)))
    assert [(r.problem.problem_id, r.rollout_id, r.answer, r.grade.verdict.value) for r in graded.rows()] == [
        ("p1", 0, "04", "correct"), ("p1", 1, "5", "wrong"), ("p1", 2, None, "no_answer"),
        ("p2", 0, "4", "undecided"), ("p3", 0, "4", "correct"),
    ]  # fmt: skip
    assert graded.counts() == {
        ("m", "b"): Counter(correct=1, wrong=1, no_answer=1, undecided=1),
        ("n", "b"): Counter(correct=1),
    }
    assert graded.undecided() == {"there is no reference answer": 1}
    assert (graded.distinct, graded.left_out) == (5, 1)
    assert told[-1] == (5, 5)
    with GradeStore(pool.path / "grades.sqlite") as store:
        assert sum(store.counts()["exact/2"].values()) == 5


def test_a_program_of_one_line_reaches_its_grader_as_it_was_written(tmp_path):
    program = "print(' '.join('ab'))"
    text = f"</think>\n```python\n{program}\n```"
    gold = json.dumps({"inputs": [""], "outputs": ["a b"], "fn_name": None})
    lines = write_lines(tmp_path / "rows.jsonl", [row(text=text, gold=gold)])
    import_rows([lines], tmp_path / "pool")
    with grader("exact") as judge:
        (graded,) = grade_pool(Pool.open(tmp_path / "pool"), commit="code", grader=judge).rows()
    assert graded.answer.strip() == program
    heard = []

    class Listening(ExactGrader):
        name = version = "listening"

        def grade_all(self, pairs, progress=lambda _: None):
            heard.extend(pairs)
            return super().grade_all(pairs, progress)

    chosen = choose([tmp_path / "pool"], None)
    sheets = [Sheet(chosen.pools[0], chosen.selections[0].parts, "code")]
    judge_of(chosen, sheets, Listening()).judge([gold], sheets[0].finals[0])
    assert heard == [(gold, f"{program}\n")]


def test_the_command_counts_keeps_and_writes(pool, tmp_path, capsys):
    out = tmp_path / "graded.jsonl"
    assert main(["grade", str(pool.path), "--grader", "exact", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "5 rollouts, --commit boxed" in printed.out
    assert "5 distinct pairs of reference and answer by exact/2" in printed.err
    assert "1 undecided: there is no reference answer" in printed.err
    assert "1 rollouts with unbiased = false are left out" in printed.err
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [each["verdict"] for each in rows] == ["correct", "wrong", "no_answer", "undecided", "correct"]
    assert {each["grader"] for each in rows} == {"exact/2"}
    assert main(["grade", str(pool.path), "--grader", "exact", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["rollouts"], told["distinct"]) == ("fot.grade/1", 5, 5)
    assert told["groups"][0] == {
        "model": "m", "benchmark": "b", "correct": 1, "wrong": 1, "undecided": 1, "no_answer": 1,
    }  # fmt: skip


def test_a_file_of_rollouts_is_told_from_a_file_of_pairs(tmp_path, capsys):
    lines = write_lines(tmp_path / "rows.jsonl", [*ROWS, {"model": "m"}])
    assert main(["grade", str(lines), "--grader", "exact", "--json"]) == 4  # a row that is none
    assert json.loads(capsys.readouterr().out)["rollouts"] == 5
    assert main(["grade", str(lines), "--grader", "exact", "--gold", "1"]) == 2
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"gold": "1", "answer": "1", "text": "kept"}\n')
    assert main(["grade", str(pairs), "--grader", "exact", "--json"]) == 0
    assert main(["grade", str(pairs), "--grader", "exact", "--out", str(tmp_path / "x")]) == 2


KILLED = """
import os, signal, sys
from fot.grading.exact import ExactGrader
from fot.pools.read import Pool
from fot.replay.graded import grade_pool

class Mortal(ExactGrader):
    left = 2
    def grade_all(self, pairs, progress=lambda _: None):
        if not Mortal.left:
            os.kill(os.getpid(), signal.SIGKILL)
        Mortal.left -= 1
        return super().grade_all(pairs, progress)

grade_pool(Pool.open(sys.argv[1]), commit="boxed", grader=Mortal())
"""


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    rows = [row("p", at, rf"\boxed{{{at}}}", gold="4") for at in range(1_000)]
    import_rows([write_lines(tmp_path / "rows.jsonl", rows)], tmp_path / "pool")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-c", KILLED, str(tmp_path / "pool")]
    assert subprocess.run(command, check=False, env=environment).returncode == -signal.SIGKILL
    with GradeStore(tmp_path / "pool" / "grades.sqlite") as store:
        kept = sum(store.counts()["exact/2"].values())
    assert 0 < kept < 1_000
    told = []
    with grader("exact") as judge:
        graded = grade_pool(
            Pool.open(tmp_path / "pool"), commit="boxed", grader=judge, progress=lambda done, _: told.append(done)
        )
    assert told[0] == kept
    assert graded.counts()["m", "b"] == {"correct": 1, "wrong": 999}
