"""Slim-SC with an embedder that can be worked out by hand: a text is the vector of its first letter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.core.policy import Fate
from fot.methods import slimsc
from fot.methods.decided import decided
from fot.methods.embedding import _Words, embedder
from fot.methods.slimsc import SlimSc, SlimScPlan, Thoughts
from fot.replay.simulator import simulate
from tests.methods.script import Line, Prefix, Script


class Letters:
    """Equal last words are equal thoughts; texts asked for are kept."""

    def __init__(self):
        self.asked = []

    def embed(self, texts):
        self.asked += texts
        words = [text.split()[-1] for text in texts]
        return np.array([[word == other for other in ("red", "blue", "green", "grey")] for word in words], float)


def thinking(*colours, answer="1"):
    """Each thought makes ten tokens; the last one stays incomplete."""
    text = "".join(f"Wait {colour} ".ljust(20, ".").replace(".", " ") for colour in colours)
    return Line(10 * len(colours), ((10 * len(colours), answer),), text=text)


def policy_for(lines, letters=None, **changed):
    options = {"threshold": 0.9, "warmup": 1, "interval": 10, "delay": 0, "shortest": 1, "embedder": "wordllama"}
    embedder = letters or Letters()
    return SlimSc(len(lines), SlimScPlan(**(options | changed)), lambda: embedder)


def run(lines, **changed):
    letters = Letters()
    policy = policy_for(lines, letters, **changed)
    return policy, simulate(policy, Script(lines)), letters


def test_thoughts_are_told_apart_by_the_words_that_open_them():
    text = "First. Wait, no. But wait, awaiting. An alternative is 2. Another is 3 </think> Wait, the answer"
    thoughts = Thoughts(0)
    thoughts.read(Prefix(0, Line(10, text=text), 10))
    assert thoughts.texts == ["First. ", "Wait, no. ", "But wait, awaiting. An ", "alternative is 2. "]
    assert not thoughts.is_reasoning


def test_thoughts_do_not_depend_on_how_often_one_looks():
    text = "so Wait a Another b perhaps another c Oh wait d Alternative e But another f Wait, Wait g" * 3
    whole, piecewise = Thoughts(0), Thoughts(0)
    line = Line(len(text), text=text)
    whole.read(Prefix(0, line, len(text)))
    for tokens in range(1, len(text) + 1):
        piecewise.read(Prefix(0, line, tokens))
    assert piecewise.texts == whole.texts


def test_short_thoughts_are_not_counted():
    thoughts = Thoughts(5)
    thoughts.read(Prefix(0, Line(10, text="Wait a Wait something rather longer Wait"), 10))
    assert thoughts.texts == ["Wait something rather longer "]


def test_one_of_two_that_think_alike_goes():
    lines = [thinking("red", "blue", "red", "green", "grey"), thinking("green", "grey", "red", "blue", "red")]
    policy, outcome, _ = run(lines)
    # At 30 tokens both have two complete thoughts, and more than the warm-up: grey against red and blue. At 40 both
    # have thought red, but the first repeats itself and goes.
    assert outcome.fates == (Fate.PRUNED, Fate.FINISHED)
    assert outcome.stops == (40, 50)
    assert policy._inherited[1] == 1


def test_nothing_happens_in_the_warm_up_or_before_the_delay():
    lines = [thinking("red", "blue", "red", "green"), thinking("red", "blue", "red", "green")]
    assert run(lines, warmup=9)[1].fates == (Fate.FINISHED,) * 2
    assert run(lines, delay=9)[1].fates == (Fate.FINISHED,) * 2
    assert run(lines, warmup=9)[2].asked == []  # nothing is embedded for nothing


def test_the_last_one_stays_and_pairs_lose_one_at_a_time():
    same = [thinking("red", "blue", "red", "blue", "red") for _ in range(4)]
    _, outcome, _ = run(same)
    assert outcome.fates.count(Fate.FINISHED) == 1


@pytest.mark.parametrize(("strategy", "loser"), [("fewest", 0), ("most", 1), ("diversity", 1)])
def test_who_goes(strategy, loser):
    policy = SlimSc(2, SlimScPlan(strategy=strategy), Letters)
    red, blue = np.eye(2)
    policy._vectors = {0: np.array([red, blue]), 1: np.array([red, red, red])}
    assert policy._choose(0, 1) == (loser, 1 - loser)
    assert policy._choose(1, 0) == (loser, 1 - loser)
    policy._vectors = {0: np.array([red, red]), 1: np.array([red, red])}
    assert policy._choose(1, 0) == (1, 0)  # alike in every way: the current one
    assert policy.sameness(0) == 0.5  # pairs are wholly alike, for each of two thoughts


def test_random_choices_are_seeded():
    lines = [thinking("red", "blue", "red", "blue", "red") for _ in range(5)]
    first, second = (run(lines, strategy="random")[1] for _ in range(2))
    assert first == second


def test_a_tie_goes_to_who_stands_for_more():
    alike = ["red", "blue", "red", "blue", "red", "blue"]
    lines = [Line(60, ((60, "2"),), text="nothing " * 10), thinking(*alike), thinking(*alike)]
    _, outcome, _ = run(lines)
    assert outcome.verdict.votes == {"1": 1, "2": 1}
    assert outcome.verdict.answer == "1"


COLOURS = st.lists(st.sampled_from(["red", "blue", "green", "grey"]), min_size=1, max_size=7)


@given(st.lists(st.tuples(COLOURS, st.sampled_from(["1", "2", None])), min_size=1, max_size=6))
def test_the_lossless_stop_changes_no_answer_and_no_pruned_rollout_votes(thoughts):
    lines = [thinking(*colours, answer=answer) for colours, answer in thoughts]
    policy, alone, _ = run(lines)
    stopped = simulate(decided(policy_for(lines)), Script(lines))
    assert stopped.verdict.answer == alone.verdict.answer
    assert all(a.tokens <= b.tokens for a, b in zip(stopped.charges, alone.charges, strict=True))
    assert not any(alone.fates[ballot.rollout] is Fate.PRUNED for ballot in policy.ballots())


def test_the_static_embedder_out_of_its_wheel():
    pytest.importorskip("wordllama")
    vectors = embedder("wordllama").embed(["Wait, the sum is even.", "Wait, the sum is even!", "A boat on a lake", ""])
    assert np.linalg.norm(vectors[:3], axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.9 > vectors[0] @ vectors[2]
    assert not vectors[3].any()
    assert isinstance(embedder("wordllama"), _Words)
    assert "mpnet" in slimsc.EMBEDDERS
