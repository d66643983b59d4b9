"""Grades on disk: found again by version and pair, kept through a kill, refused when damaged."""

import os
import signal
import subprocess
import sys

import pytest

from fot.errors import GradingError
from fot.grading.base import Grade, Judgement, grader
from fot.grading.exact import ExactGrader
from fot.grading.store import GradeStore, grade_stored


class Counting(ExactGrader):
    """Exact, and remembers what it was asked."""

    def __init__(self, version=ExactGrader.version):
        self.version = version
        self.asked = []

    def grade_all(self, pairs, progress=lambda _: None):
        self.asked += pairs
        return super().grade_all(pairs, progress)


PAIRS = [("1", str(number % 700)) for number in range(2_000)]


def test_a_pair_is_judged_once_for_each_version(tmp_path):
    first, again, newer = Counting(), Counting(), Counting("newer")
    with GradeStore(tmp_path / "grades") as store:
        grades = grade_stored(first, PAIRS, store)
        assert grades == ExactGrader().grade_all(PAIRS)
        assert len(first.asked) == 700
        assert grade_stored(again, PAIRS, store) == grades
        assert again.asked == []
        grade_stored(newer, PAIRS, store)
        assert len(newer.asked) == 700
        assert store.counts() == {
            version: {"correct": 1, "wrong": 699} for version in (ExactGrader.version, newer.version)
        }


def test_pairs_that_read_alike_are_kept_apart(tmp_path):
    pairs = [("1", "23"), ("12", "3"), ("", "123"), (None, "123"), ("123", None), ("123", ""), ("1\0", "2")]
    with GradeStore(tmp_path / "grades") as store:
        store.add("v", [(pair, Grade(Judgement.WRONG, str(place))) for place, pair in enumerate(pairs)])
        assert {pair: int(grade.reason) for pair, grade in store.find("v", pairs).items()} == {
            pair: place for place, pair in enumerate(pairs)
        }


def test_what_was_undecided_is_tried_again(tmp_path):
    judge = Counting()
    with GradeStore(tmp_path / "grades") as store:
        store.add(
            judge.version,
            [(("1", "1"), Grade(Judgement.UNDECIDED, "no time")), (("1", "2"), Grade(Judgement.WRONG, ""))],
        )
        assert [grade.verdict for grade in grade_stored(judge, [("1", "1"), ("1", "2")], store)] == ["correct", "wrong"]
    assert judge.asked == [("1", "1")]


def test_progress_counts_distinct_pairs(tmp_path):
    counts = []
    with GradeStore(tmp_path / "grades") as store:
        grade_stored(grader("exact"), PAIRS, store, counts.append)
    assert counts[-1] == 700
    assert counts == sorted(counts)


KILLED = """
import os, signal, sys
from pathlib import Path
from fot.grading.exact import ExactGrader
from fot.grading.store import GradeStore, grade_stored

class Mortal(ExactGrader):
    left = 3
    def grade_all(self, pairs, progress=lambda _: None):
        Mortal.left -= 1
        if not Mortal.left:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().grade_all(pairs, progress)

with GradeStore(Path(sys.argv[1])) as store:
    grade_stored(Mortal(), [("1", str(number)) for number in range(2000)], store)
"""


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "grades"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, env=environment)
    assert ended.returncode == -signal.SIGKILL
    judge = Counting()
    with GradeStore(path) as store:
        grade_stored(judge, [("1", str(number)) for number in range(2000)], store)
        assert store.counts() == {ExactGrader.version: {"correct": 1, "wrong": 1999}}
    assert 0 < len(judge.asked) < 2000


def test_a_file_that_is_something_else_is_refused(tmp_path):
    path = tmp_path / "grades"
    path.write_bytes(b"something else entirely, and long enough" * 100)
    with pytest.raises(GradingError, match="cannot be used as a file of grades"):
        GradeStore(path)
    with pytest.raises(GradingError, match="cannot be used"):
        GradeStore(tmp_path / "no" / "such" / "folder")
