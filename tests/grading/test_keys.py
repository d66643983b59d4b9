"""Vote keys: classes are an equivalence, whatever the order of the answers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
        (["5", "x+y=5", "x-y=5"], [["5"], ["x+y=5"], ["x-y=5"]]),
        (["100, 200", "100200"], [["100, 200"], ["100200"]]),
        (["9^{9^{9}}", "9^{9^9}", "1"], [["1"], ["9^{9^9}"], ["9^{9^{9}}"]]),
        ([], []),
    ],
)
def test_classes(keys, answers, expected):
    assert classes_of(keys, answers) == sorted(map(sorted, expected))


WRITINGS = [
    "1/3", "0.333333", r"0.\overline{3}", r"\frac{1}{3}", r"\frac{2}{6}", r"\pi", "3.141593", r"\frac{355}{113}",
    "x=3", "3", "y=3", r"3\text{ cm}", r"3\text{ m}", "3.0", "-3", "|3|", r"\sqrt{9}", "x+y=3", "x-y=3", "3,4", "4,3",
    r"\{3,4\}", "(3,4)", "[3,4]", "x>3", "3<x", r"(3,\infty)", r"33\frac{1}{3}\%", r"\sqrt{12}", r"2\sqrt{3}", "1,234",
    "1, 234", "1234", "(1,234)", r"\pm 3", "3,-3", "i", r"\sqrt{-1}", "east", "seat", "East", "", "9^{9^{9}}",
]  # fmt: skip


@settings(max_examples=40)
@given(st.lists(st.sampled_from(WRITINGS), max_size=12), st.randoms(use_true_random=False))
def test_classes_are_classes_whatever_the_order_and_number_of_votes(keys, answers, chance):
    """Symmetric and transitive: `classes` names one representative each; free of order: shuffling changes nothing."""
    classes = keys.classes(answers)
    shuffled = chance.sample(answers, len(answers))
    assert keys.classes(shuffled) == keys.classes([*shuffled, *shuffled[:4]]) == classes
    for stands in classes.values():
        assert keys.classes([*answers, stands])[stands] == stands  # its own representative


@settings(max_examples=10)
@given(st.permutations(["1/3", "0.333333", r"\frac{1}{3}", "0.3333333", "1/2", "0.5"]))
def test_a_chain_of_equals_is_one_class(keys, answers):
    """Two roundings of a third differ from each other, and both are a third: one class."""
    classes = keys.classes(answers)
    assert len({classes[third] for third in ("1/3", "0.333333", r"\frac{1}{3}", "0.3333333")}) == 1
    assert classes["1/2"] == classes["0.5"] != classes["1/3"]


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
