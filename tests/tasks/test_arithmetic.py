"""The arithmetic benchmark: exact answers, disjoint splits, the same problems from the same seed."""

import re
from itertools import islice

import pytest

from fot.errors import ConfigError
from fot.tasks.arithmetic import DIFFICULTIES, MODULUS, Problem, Step, draw_problems, parse_problem, split_of


def answer_from_text(text: str) -> int:
    """Solve a question from its words alone, knowing nothing of how it was made."""
    value = int(re.match(r"Start with (\d+)\.", text).group(1))
    for verb, operand in re.findall(r"Step \d: (add|subtract|multiply by) (\d+)\.", text):
        value = {"add": value + int(operand), "subtract": value - int(operand), "multiply by": value * int(operand)}[
            verb
        ]
    return value % MODULUS  # once, at the end: equal to reducing at every step


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_answers_agree_with_an_independent_solution(difficulty):
    for problem in islice(draw_problems("test", DIFFICULTIES[difficulty], seed=3), 500):
        assert int(problem.gold) == answer_from_text(problem.text)


def test_gold_has_no_leading_zeros():
    assert Problem(100, (Step("-", 100),)).gold == "0"
    assert Problem(345, (Step("+", 678),)).gold == "23"


def test_a_negative_value_wraps():
    assert Problem(100, (Step("-", 101), Step("*", 2))).gold == "998"


def test_splits_never_share_a_problem():
    train = {problem for seed in range(3) for problem in islice(draw_problems("train", 2, seed=seed), 3000)}
    test = {problem for seed in range(3) for problem in islice(draw_problems("test", 2, seed=seed), 3000)}
    assert not train & test
    assert all(split_of(problem) == "train" for problem in train)
    assert all(split_of(problem) == "test" for problem in test)


def test_the_test_split_is_about_an_eighth():
    problems = list(islice(draw_problems("test", 1, seed=0), 200)) + list(
        islice(draw_problems("train", 1, seed=0), 200)
    )
    steps = [Problem(start, problem.steps) for problem in problems for start in range(100, 130)]
    share = sum(split_of(problem) == "test" for problem in steps) / len(steps)
    assert 0.11 < share < 0.14


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_a_difficulty_is_a_number_of_operations(difficulty):
    for problem in islice(draw_problems("test", DIFFICULTIES[difficulty], seed=1), 50):
        assert len(problem.steps) == DIFFICULTIES[difficulty]
        assert problem.text.count("Step ") == DIFFICULTIES[difficulty]


def test_equal_seeds_give_equal_problems_and_others_differ():
    first = list(islice(draw_problems("test", 4, seed=5), 100))
    assert first == list(islice(draw_problems("test", 4, seed=5), 100))
    assert first != list(islice(draw_problems("test", 4, seed=6), 100))
    assert len(set(first)) == 100


def test_the_first_problems_of_a_seed_stay_what_they_are():
    """A recorded pool names its problems: changing what a seed gives would orphan it."""
    ids = [problem.problem_id for problem in islice(draw_problems("test", 2, seed=0), 3)]
    assert ids == ["474-809+243", "833-732*2", "501*6*3"]


def test_a_problem_id_is_the_problem():
    problem = Problem(345, (Step("+", 678), Step("*", 7), Step("-", 123)))
    assert problem.problem_id == "345+678*7-123"
    assert problem.text == (
        "Start with 345. Step 1: add 678. Step 2: multiply by 7. Step 3: subtract 123. What is the result modulo 1000?"
    )


@pytest.mark.parametrize(("split", "operations"), [("dev", 2), ("test", 0), ("test", 7)])
def test_unknown_splits_and_sizes_are_refused_with_a_hint(split, operations):
    with pytest.raises(ConfigError) as caught:
        next(draw_problems(split, operations, seed=0))
    assert caught.value.hint


@pytest.mark.parametrize("operations", range(1, 7))
def test_an_id_is_parsed_back_to_its_problem(operations):
    for problem in islice(draw_problems("test", operations, seed=9), 100):
        assert parse_problem(problem.problem_id) == problem


@pytest.mark.parametrize("name", ["", "345", "345+67", "345+678*1", "345+678*12", "345/678", "045+678", "345+678 "])
def test_other_names_are_refused_with_a_hint(name):
    with pytest.raises(ConfigError) as caught:
        parse_problem(name)
    assert caught.value.hint
