import pytest

from fot.grading.base import grader
from fot.grading.choice import read_choice

SAME = [
    "C", "(C)", "C.", "C)", "[C]", "c", "(c)", "C:", " C ", "{C}", "$C$", "**C**", "C) 5 m", "(C) 5 m",
    r"\text{C}", r"\text{(C)}", r"\textbf{(C)}", r"\mathrm{C}", r"\mathbf{C}.", r"$\text{C}$", r"\textbf{(C)}\ 5",
    "Option C", "option (C)", "Choice C", "Answer: C", "The answer is C", "C. five metres", r"\text{Option C}",
    "The correct answer is (C).",
]  # fmt: skip


@pytest.mark.parametrize("written", SAME)
def test_a_letter_counts_however_it_is_written(written):
    assert read_choice(written)[0] == "C"
    assert grader("choice").grade("C", written).verdict == "correct"
    assert grader("choice").grade(written, "C").verdict == "correct"
    assert grader("choice").grade("D", written).verdict == "wrong"


@pytest.mark.parametrize(
    ("gold", "answer", "verdict"),
    [
        ("C) 5 m", "5 m", "correct"),
        ("C) 5 m", r"\text{5 m}", "correct"),
        (r"C) $\frac{1}{2}$", r"\dfrac{1}{2}", "correct"),
        ("C) 5 m", "B", "wrong"),
        ("C) 5 m", "6 m", "undecided"),
        ("C", "5 m", "undecided"),
        ("A", "A cat", "undecided"),
        ("A", "Apple", "undecided"),
        ("K", "K", "undecided"),
        ("C", "A, C", "wrong"),
        ("C", "B and C", "wrong"),
        ("C", "C or D", "wrong"),
        ("five", "5", "undecided"),
        ("C", "C" * 5000, "undecided"),
        ("C", "", "no_answer"),
        (None, "C", "undecided"),
    ],
)
def test_what_names_no_option_is_not_guessed_at(gold, answer, verdict):
    assert grader("choice").grade(gold, answer).verdict == verdict


def test_the_order_of_grades_is_that_of_pairs():
    grades = grader("choice").grade_all([("A", "B"), ("A", "A"), ("A", "B"), ("A", None)])
    assert [grade.verdict for grade in grades] == ["wrong", "correct", "wrong", "no_answer"]
