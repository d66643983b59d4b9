"""The writer of training chains: exact when calm, erring and recovering when not, the same from the same seed."""

import dataclasses
import importlib.util
import random
import re
import sys
from itertools import islice
from pathlib import Path

import pytest

from fot import reasoner
from fot.core.markers import PAPER_KERNEL
from fot.tasks.arithmetic import draw_problems

TRAINING = Path(__file__).parents[2] / "training"


def load(name):
    """A module of `training/`, which is no package and ships in no wheel."""
    spec = importlib.util.spec_from_file_location(name, TRAINING / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


chains = load("chains")
behaviour = load("behaviour")
card = load("card")
NEVER = (0.0, 0.0, 0.0, 0.0)
FAULTLESS = {"slip": NEVER, "belief": NEVER, "belief_on_redo": 0.0, "spiral_goes_on": 0.5}
NOISES = [chains.CALM, chains.REALISTIC, chains.LEGIBLE, chains.CONTRASTING]
each_noise = pytest.mark.parametrize("noise", NOISES, ids=["calm", "realistic", "legible", "contrasting"])


def problems(count, seed=0):
    return list(islice(draw_problems("train", 4, seed=seed), count))


def answer(text):
    return text.rpartition("\\boxed{")[2].removesuffix("}.")


@each_noise
def test_without_slips_and_beliefs_every_chain_is_right_and_shows_no_wrong_step(noise):
    rng = random.Random(0)
    for problem in problems(200):
        text = chains.write_chain(problem, dataclasses.replace(noise, **FAULTLESS), rng)
        assert answer(text) == problem.gold
        assert not behaviour.shows_wrong_step(problem, text)


@each_noise
def test_a_wrong_answer_always_comes_with_a_wrong_step(noise):
    rng = random.Random(1)
    wrong = 0
    for problem in problems(300):
        text = chains.write_chain(problem, noise, rng)
        if answer(text) != problem.gold:
            wrong += 1
            assert behaviour.shows_wrong_step(problem, text)
    assert 20 < wrong < 250


@each_noise
def test_some_wrong_steps_are_recovered_from(noise):
    rng = random.Random(2)
    texts = [(problem, chains.write_chain(problem, noise, rng)) for problem in problems(300)]
    erring = [(problem, text) for problem, text in texts if behaviour.shows_wrong_step(problem, text)]
    assert sum(answer(text) == problem.gold for problem, text in erring) / len(erring) > 0.2


@each_noise
def test_chains_end_once_with_one_box_after_thinking(noise):
    rng = random.Random(3)
    for problem in problems(200):
        text = chains.write_chain(problem, noise, rng)
        assert re.fullmatch(r"[^<]*\n</think>\nThe answer is \\boxed\{\d{1,3}\}\.", text)


def test_equal_seeds_write_equal_chains():
    problem = problems(1)[0]
    first = [chains.write_chain(problem, chains.REALISTIC, random.Random(4)) for _ in range(2)]
    assert first[0] == first[1]
    assert first[0] != chains.write_chain(problem, chains.REALISTIC, random.Random(5))


def test_the_vocabulary_of_doubt_is_the_papers_kernel():
    rng = random.Random(6)
    text = "".join(chains.write_chain(problem, chains.REALISTIC, rng) for problem in problems(500))
    assert [marker for marker in PAPER_KERNEL.markers if marker not in text] == []


def test_confusion_lowers_accuracy():
    calm = dataclasses.replace(chains.CONTRASTING, start=(1, 0, 0, 0))
    lost = dataclasses.replace(chains.CONTRASTING, start=(0, 0, 0, 1))
    rng = random.Random(7)
    right = {
        name: sum(answer(chains.write_chain(p, noise, rng)) == p.gold for p in problems(300))
        for name, noise in (("calm", calm), ("lost", lost))
    }
    assert right["calm"] > right["lost"] + 30


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Step 1: 345+678. 5+8+0=13,4+7+1=12,3+6+1=10. So 023.", False),
        ("Step 1: 345+678. 5+8+0=14,4+7+1=12,3+6+1=10. So 024.", True),
        ("Step 1: 345+678. 5+8+0=13,4+7+1=12,3+6+1=10. So 123.", True),
        ("Step 1: 345+678. 5+8+0=14, no, 5+8+0=13,4+7+1=12,3+6+1=10. So 023.", True),
        ("Step 1: 345-678. 15-8-0=7,13-7-1=5,12-6-1=5. So 567.", True),
        ("Step 2: 345+678. 5+8+0=13,4+7+1=12,3+6+1=10. So 023.", True),
    ],
)
def test_wrong_steps_are_told_from_right_ones(text, wrong):
    problem = next(p for p in draw_problems("train", 1, seed=0))
    problem = dataclasses.replace(
        problem, start=345, steps=(dataclasses.replace(problem.steps[0], operation="+", operand=678),)
    )
    assert behaviour.shows_wrong_step(problem, text) is wrong


def test_auroc_is_one_when_separated_and_half_when_tied():
    assert behaviour.auroc([(1, False), (2, True)]) == 1
    assert behaviour.auroc([(1, False), (1, True)]) == 0.5
    assert behaviour.auroc([(2, False), (1, True)]) == 0


def test_doubt_tells_wrong_from_right_in_what_is_learnt_last():
    rng = random.Random(8)
    texts = [(chains.write_chain(problem, chains.CONTRASTING, rng), problem.gold) for problem in problems(300)]
    assert behaviour.auroc([(behaviour.density(text), answer(text) != gold) for text, gold in texts]) > 0.75


def test_the_profile_tells_outcomes_apart():
    problem = problems(1)[0]
    gold = f"\\boxed{{{problem.gold}}}"
    attempts = [
        behaviour.Attempt(gold, 100, problem.gold),
        behaviour.Attempt(gold, 300, problem.gold),
        behaviour.Attempt("\\boxed{1000}", 400, problem.gold),
        behaviour.Attempt("Wait, perhaps", 900, problem.gold),
    ]
    told = behaviour.profile([problem], [attempts])
    columns = told["by outcome"]
    assert [columns[name]["share"]["value"] for name in behaviour.OUTCOMES] == [0.5, 0.25, 0.25]
    assert [columns[name]["tokens"]["value"] for name in behaviour.OUTCOMES] == [200, 400, 900]
    assert columns["incorrect"]["attention"]["value"] == 3.2  # 400² over the mean of 100² and 300²
    assert told["length incorrect/correct"]["value"] == 2
    assert told["length not correct/correct"]["value"] == 3.25
    assert told["no answer"]["value"] == 0.25


@pytest.mark.parametrize("name", ["calm", "realistic", "legible", "contrasting"])
def test_the_writer_is_the_one_that_the_weights_learnt_from(name):
    """A changed writer needs new weights: the manifest ties the two together."""
    noises = dict(zip(("calm", "realistic", "legible", "contrasting"), NOISES, strict=True))
    assert chains.digest(noises[name]) == reasoner.manifest()["recipe"]["chains"][name]


def test_figures_go_between_their_marks_and_nowhere_else():
    text = "a\n<!-- profile -->\nold\n<!-- end of profile -->\nb"
    assert card.fill(text, "profile", "new") == "a\n<!-- profile -->\nnew\n<!-- end of profile -->\nb"
    with pytest.raises(ValueError, match="outcomes"):
        card.fill(text, "outcomes", "new")


@pytest.mark.parametrize("mark", ["outcomes", "profile", "replay", "beliefs"])
def test_the_model_card_has_its_figures(mark):
    figures = card.CARD.read_text(encoding="utf-8").partition(f"<!-- {mark} -->\n")[2]
    assert figures.partition(f"<!-- end of {mark} -->")[0].count("\n|") > 3
