r"""The `math` grader: the table of pairs, the limits, the workers.

In the table, `equal` says what is true: `yes`, `no`, or `ask` where only the question could tell. A pair that is not
equal must never be accepted, and one that only the question could tell is undecided.
"""

import os
import random
import signal
from pathlib import Path

import pytest

from fot.grading.base import GraderOptions, Judgement, grader
from fot.grading.forms import read_form
from fot.grading.limits import static_limit
from fot.grading.math import MathGrader
from fot.grading.numerals import read_numeral

pytest.importorskip("math_verify", reason="the extra 'math' is not installed")

TABLE = Path(__file__).with_name("pairs.tsv")
NOT_FOUND = {
    ("0.333...", r"\frac{1}{3}"): Judgement.UNDECIDED,
    (r"7 \bmod 3", "1"): Judgement.UNDECIDED,
    (r"10\ \mathrm{m\,s^{-1}}", r"10\text{ m/s}"): Judgement.UNDECIDED,
    (r"\frac{\pi^2}{6}", r"\zeta(2)"): Judgement.UNDECIDED,
    (r"\text{DNE}", r"\text{does not exist}"): Judgement.WRONG,
    ("FF_{16}", "255_{10}"): Judgement.WRONG,
    ("1/2", r"\frac{1}{2} \text{ or } 0.5"): Judgement.WRONG,
    ("10:18", "5:9"): Judgement.UNDECIDED,
    (r"\text{no solutions}", r"\text{no solution}"): Judgement.UNDECIDED,
    ("100", r"\text{one hundred}"): Judgement.UNDECIDED,
    ("125", r"\text{one hundred twenty-five}"): Judgement.UNDECIDED,
    (r"\frac{1}{2}", r"\text{one half}"): Judgement.UNDECIDED,
    (r"\frac{1}{2}", "half"): Judgement.UNDECIDED,
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}^T"): Judgement.UNDECIDED,
    (r"\text{lcm}(4,6)", "12"): Judgement.UNDECIDED,
}
"""Equal, and not found to be: the pairs of the table that err, on the safe side."""
VERDICTS = {"yes": Judgement.CORRECT, "no": Judgement.WRONG, "ask": Judgement.UNDECIDED}


@pytest.fixture(scope="module")
def math():
    with grader("math", GraderOptions(workers=2)) as judge:
        yield judge


def rows():
    return [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]


def test_the_table_is_graded_as_it_should_be(math):
    table = rows()
    assert len(table) >= 300
    grades = math.grade_all([(gold, answer) for _, gold, answer, _ in table])
    wrong = [
        (gold, answer, grade)
        for (_, gold, answer, equal), grade in zip(table, grades, strict=True)
        if grade.verdict is not NOT_FOUND.get((gold, answer), VERDICTS[equal])
    ]
    assert wrong == []


def test_what_is_not_equal_is_accepted_in_neither_direction(math):
    unequal = [(answer, gold) for _, gold, answer, equal in rows() if equal == "no"]
    accepted = [
        pair for pair, grade in zip(unequal, math.grade_all(unequal), strict=True) if grade.verdict is Judgement.CORRECT
    ]
    assert accepted == []


LOOK_ALIKES = [("7", "700"), ("0.5", "50"), ("10001", "10000"), ("700", "7"), ("50", "0.5"), ("10000", "10001")]


@pytest.mark.parametrize(("gold", "answer"), LOOK_ALIKES)
@pytest.mark.parametrize("name", ["exact", "math"])
def test_look_alikes_are_wrong(name, gold, answer, math):
    judge = math if name == "math" else grader(name)
    assert judge.grade(gold, answer).verdict is Judgement.WRONG


BOMBS = [
    "9^{9^{9}}",
    "10^{10^{10}}+1",
    "9^9^9",
    "1000000!",
    r"\binom{1000000}{500000}",
    "{" * 1_000_000 + "}" * 1_000_000,
    "1" * 100_000,
    r"\sum_{i=1}^{1000000000} i",
    "x^{99999}",
    "+".join("x" * 900),
    r"\frac{" * 500,
]


@pytest.mark.parametrize("bomb", BOMBS, ids=[bomb[:20] for bomb in BOMBS])
def test_a_bomb_is_stopped_before_any_algebra(bomb):
    with MathGrader() as judge:
        for gold, answer in ((bomb, "1"), ("1", bomb)):
            grade = judge.grade(gold, answer)
            assert grade.verdict is Judgement.UNDECIDED
            assert "limit" in grade.reason
        assert judge.process_ids == []  # no worker was even started


SLOW = [r"(x+y+z)^{900}", r"\prod_{k=1}^{400} (x^{k}+y^{k})", r"((((3^9)^9)^9)^9)!"]


@pytest.mark.parametrize("slow", SLOW)
def test_what_passes_the_limits_and_takes_too_long_is_undecided(slow):
    with grader("math", GraderOptions(workers=1, limit_s=0.5)) as judge:
        assert judge.grade(slow, r"\sqrt{x}+1").verdict is Judgement.UNDECIDED
        assert judge.grade(r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}").verdict is Judgement.CORRECT


def test_a_worker_that_is_killed_is_replaced_and_its_pair_undecided(math):
    assert math.grade(r"\sqrt{12}", r"2\sqrt{3}").verdict is Judgement.CORRECT
    for process_id in math.process_ids:
        os.kill(process_id, signal.SIGKILL)
    grades = math.grade_all([(rf"\sqrt{{{4 * n}}}", rf"2\sqrt{{{n}}}") for n in range(13, 23)])
    verdicts = [grade.verdict for grade in grades]
    assert verdicts.count(Judgement.CORRECT) >= 8
    assert set(verdicts) <= {Judgement.CORRECT, Judgement.UNDECIDED}


def test_a_pair_is_judged_once(math, monkeypatch):
    first = math.grade(r"\sqrt{20}", r"2\sqrt{5}")
    monkeypatch.setattr(math, "_pool", None)  # a second judgement would need the workers
    assert math.grade_all([(r"\sqrt{20}", r"2\sqrt{5}")] * 3) == [first] * 3


def test_closing_ends_the_workers_and_does_not_end_the_grader():
    judge = MathGrader(GraderOptions(workers=1))
    assert judge.grade(r"\sqrt{28}", r"2\sqrt{7}").verdict is Judgement.CORRECT
    running = judge.process_ids
    assert running
    judge.close()
    for process_id in running:
        with pytest.raises(ProcessLookupError):
            os.kill(process_id, 0)
    assert judge.grade(r"\sqrt{28}", r"3\sqrt{7}").verdict is Judgement.WRONG
    judge.close()


def test_progress_counts_distinct_pairs(math):
    counts: list[int] = []
    math.grade_all([("1", "1"), ("1", "2"), (r"\sqrt{44}", r"2\sqrt{11}"), ("1", "2")], counts.append)
    assert counts[-1] == 3
    assert counts == sorted(counts)


def test_random_strings_are_judged_without_failing(math):
    """Hostile, not only odd: pieces of LaTeX thrown together."""
    chance = random.Random(6)
    pieces = [r"\frac", "{", "}", "(", ")", "[", "^", "_", "1", "23", "x", r"\sqrt", ",", "=", "%", "!", r"\pm", " "]
    pieces += [r"\text{", r"\begin{pmatrix}", r"\end{pmatrix}", "&", r"\\", "<", r"\infty", "|", "$", "\n", r"\%", ":"]
    pairs = [("".join(chance.choices(pieces, k=chance.randint(1, 12))), "5") for _ in range(300)]
    for (text, _), grade in zip(pairs, math.grade_all(pairs), strict=True):
        assert isinstance(grade.verdict, Judgement), text


@pytest.mark.parametrize(
    "filler", [" ", "{", "(", "\\", "\\text{", ",", "^", "1", "1,", "a", "$", "_", "\\%", "x=", "1 "]
)
def test_reading_is_bounded_for_every_repetition(filler):
    text = (filler * 5000)[:4096]
    static_limit(text)
    read_numeral(read_form(text).body)
