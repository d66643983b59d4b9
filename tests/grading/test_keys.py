"""Vote keys: classes are an equivalence, whatever the order of the answers."""

import itertools
import random

import pytest

from fot.errors import ConfigError
from fot.grading.base import GraderOptions
from fot.grading.keys import ExactKeys, MathKeys, vote_keys, winners_changed


@pytest.fixture(scope="module")
def keys():
    pytest.importorskip("math_verify", reason="the extra 'math' is not installed")
    with MathKeys(GraderOptions(workers=2)) as held:
        yield held


def classes_of(keys, answers):
    classes = keys.classes(answers)
    by_class: dict[str, set[str]] = {}
    for answer in answers:
        by_class.setdefault(classes[answer], set()).add(answer)
    return sorted(map(sorted, by_class.values()))


def test_exact_keys_are_the_answers_keys():
    assert ExactKeys().classes(["033", "33", r"\text{B}"]) == {"033": "33", "33": "33", r"\text{B}": "B"}


def test_an_unknown_kind_is_refused():
    with pytest.raises(ConfigError, match="unknown kind of vote keys 'maths'"):
        vote_keys("maths")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["1/2", "0.5", r"\frac{2}{4}", "2"], [["0.5", "1/2", r"\frac{2}{4}"], ["2"]]),
        (["7", "700", "07"], [["07", "7"], ["700"]]),
        (["0.5", "50", r"50\%"], [["0.5"], ["50", r"50\%"]]),
        (["5", r"5\text{ cm}"], [["5", r"5\text{ cm}"]]),
        (["5", r"5\text{ cm}", r"5\text{ m}"], [["5"], [r"5\text{ cm}"], [r"5\text{ m}"]]),
        (["5", "x=5", "x = 5"], [["5", "x = 5", "x=5"]]),
        (["5", "x=5", "y=5"], [["5"], ["x=5"], ["y=5"]]),
        (["(1,2)", "[1,2]", "(2,1)", "(1, 2)"], [["(1, 2)", "(1,2)"], ["(2,1)"], ["[1,2]"]]),
        ([r"\sqrt{8}", r"2\sqrt{2}", r"2\sqrt{3}"], [[r"2\sqrt{2}", r"\sqrt{8}"], [r"2\sqrt{3}"]]),
        (["east", "seat", r"\text{East}"], [[r"\text{East}", "east"], ["seat"]]),
        (["9^{9^{9}}", "9^{9^9}", "1"], [["1"], ["9^{9^9}"], ["9^{9^{9}}"]]),
        ([], []),
    ],
)
def test_classes(keys, answers, expected):
    assert classes_of(keys, answers) == sorted(map(sorted, expected))


def test_the_relation_is_symmetric_transitive_and_free_of_order(keys):
    pytest.importorskip("math_verify")
    answers = ["1/3", "0.333333", r"0.\overline{3}", r"\frac{1}{3}", r"\pi", "3.141593", r"\frac{355}{113}", "x=3", "3"]
    answers += ["3,4", "4,3", r"\{3,4\}", "(3,4)", "x>3", "3<x", r"(3,\infty)", r"33\frac{1}{3}\%", "-3", "|3|"]
    expected = keys.classes(answers)
    chance = random.Random(0)
    for _ in range(20):
        shuffled = chance.sample(answers, len(answers))
        assert keys.classes(shuffled) == expected
        assert keys.classes(shuffled + shuffled[:4]) == expected
    for a, b in itertools.combinations(answers, 2):  # a representative stands for itself, so classes are classes
        assert (expected[a] == expected[b]) == (expected[b] == expected[a])
    assert {expected.get(representative, representative) for representative in expected.values()} <= set(
        expected.values()
    )


def test_how_often_a_winner_changes_is_counted(keys):
    votes = [
        ["1/2", "2", "2", "0.5", r"\frac{1}{2}"],  # exact: 2; merged: one half
        ["7", "7", "8"],
        [],
    ]
    merging = winners_changed(keys, votes)
    assert (merging.problems, merging.winners_changed) == (3, 1)
    assert (merging.answers_before, merging.answers_after) == (6, 4)
    assert winners_changed(ExactKeys(), votes).winners_changed == 0
