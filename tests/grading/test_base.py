import pytest

from fot.errors import ConfigError
from fot.grading.base import GraderOptions, Judgement, grader, grader_names


def test_the_names_of_verdicts_are_the_contract_s():
    assert [judgement.value for judgement in Judgement] == ["correct", "wrong", "undecided", "no_answer"]


def test_an_unknown_grader_is_met_with_a_guess():
    with pytest.raises(ConfigError, match=r"unknown grader 'exat'. Did you mean 'exact'\?"):
        grader("exat")


@pytest.mark.parametrize("name", grader_names())
def test_nothing_committed_is_no_answer_and_no_gold_is_undecided(name):
    with grader(name) as judge:
        assert judge.name == name
        assert judge.version.startswith(f"{name}/")
        for nothing in (None, "", "  \n"):
            assert judge.grade("7", nothing).verdict is Judgement.NO_ANSWER
            assert judge.grade(nothing, "7").verdict is Judgement.UNDECIDED
            assert judge.grade(nothing, nothing).verdict is Judgement.NO_ANSWER


@pytest.mark.parametrize("options", [{"workers": 0}, {"limit_s": 0.0}, {"limit_s": float("nan")}])
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(ConfigError):
        GraderOptions(**options)


@pytest.mark.parametrize(
    ("gold", "answer", "verdict"),
    [
        ("033", "33", "correct"),
        ("33", r"\text{33}", "correct"),
        (r"\frac{1}{2}", r"$\dfrac{1}{2}$", "correct"),
        ("B", r"\text{(B)}", "correct"),
        ("7", "700", "wrong"),
        ("0.5", "50", "wrong"),
        ("10001", "10000", "wrong"),
        ("1/2", "0.5", "wrong"),
    ],
)
def test_exact_compares_keys(gold, answer, verdict):
    assert grader("exact").grade(gold, answer).verdict == verdict


def test_many_pairs_come_back_in_order_and_each_distinct_pair_is_judged_once():
    counts: list[int] = []
    grades = grader("exact").grade_all([("1", "1"), ("1", "2"), ("1", None), ("1", "1")], counts.append)
    assert [grade.verdict for grade in grades] == ["correct", "wrong", "no_answer", "correct"]
    assert counts == [3]
