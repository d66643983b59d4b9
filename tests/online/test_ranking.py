import pytest

from fot.core.ledger import Charge, bill, reach
from fot.errors import ConfigError
from fot.online.ranking import Asked, batches, calls, order_of, question, ranked


def test_every_problem_is_in_every_round_and_the_last_batch_is_filled():
    made = batches(19, 8, 5, seed=3)
    assert len(made) == 15
    for first in range(0, 15, 3):
        one = made[first : first + 3]
        assert [len(set(batch)) for batch in one] == [8, 8, 8]
        assert set().union(*one) == set(range(19))
        assert len(set(one[2]) & set(one[1])) == 5  # 3 are left, and 5 come from the batch before
    assert made == batches(19, 8, 5, seed=3)
    assert made != batches(19, 8, 5, seed=4)
    with pytest.raises(ConfigError, match="at least 2"):
        batches(4, 1, 5, seed=0)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("Q2, Q1, Q3", [1, 0, 2]),
        ("Q1, Q2, Q3? No. Q3, Q1, Q2", [2, 0, 1]),  # the last three count
        ("Q1, Q2, Q3</think>\n**Q3**, Q2, Q1.", [2, 1, 0]),
        ("Q1, Q2, Q3</think> I cannot tell.", None),
        ("Q2, Q1", None),
        ("Q1, Q2, Q2", None),
        ("Q1, Q2, Q4", None),
    ],
)
def test_what_an_answer_says(text, order):
    assert order_of(text, 3) == order


def test_places_are_means_and_every_token_is_charged():
    asked = [Asked("b", name, f"the text of {name}") for name in "xyz"]
    made = [[0, 1, 2], [2, 0, 1], [0, 1, 2]]
    told = ["Q1, Q2, Q3", "Q1, Q3, Q2", "who knows"]
    rows = [{"problem_id": str(at), "text": text, "n_tokens": 30, "prompt_tokens": 100} for at, text in enumerate(told)]
    found, unread = ranked(asked, made, reversed(rows))
    # y is behind x in both; z was put last, and then first.
    assert [one.difficulty for one in found] == [1.0, 1.0, 1.0]
    assert [one.places for one in found] == [[2, 0], [1, 1], [0, 2]]
    assert unread == 1
    assert found[0].charges == [Charge(10, 110)] * 3
    # Dealt out, the three shares cost what a call of 30 tokens behind a prompt of 100 costs.
    shares = [one.charges[0] for one in found]
    assert bill([], shares).attention == reach(130) - reach(100)
    assert bill([], shares).tokens == 30


def test_a_problem_that_was_never_placed_has_no_difficulty():
    asked = [Asked("b", name, name) for name in "xy"]
    found, unread = ranked(asked, [[0, 1]], [{"problem_id": "0", "text": "no", "rollout_id": 0}])
    assert [one.difficulty for one in found] == [None, None]
    assert unread == 1
    assert found[0].charges[0].start > 0  # estimated from the question's length


def test_the_question_holds_every_text_under_its_label():
    (task,) = calls([Asked("b", "x", "one thing"), Asked("b", "y", "another")], [[1, 0]], "m")
    assert task.prompt == question(["another", "one thing"])
    assert "Q1: another" in task.prompt
    assert "Q2: one thing" in task.prompt
