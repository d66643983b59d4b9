"""A sweep gives what single runs give, goes on where it stopped, and chooses without seeing what it reports."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fot.cli.main import main
from fot.core.markers import PAPER_KERNEL
from fot.errors import ConfigError
from fot.grading.base import grader
from fot.methods import parse
from fot.pools.index import index_of
from fot.pools.pieces import Pieces
from fot.replay import tree
from fot.replay.evaluate import Judge, Study
from fot.replay.grid import KEEPS, KERNEL_SIZES, NAMED, SCHEDULES, Configuration, grid, scaled
from fot.replay.sheet import Sheet
from fot.replay.sweep import BANNER, best, front, nested, sweep
from tests.replay import pools
from tests.replay.pools import as_pool

SMALL = grid(
    schedules=[(3,), (3, 6), (3, 9), (5,), (5, 6, 8, 30), (1, 2, 4)], keeps=[0.34, 0.5, 0.85], kernels=[1, 3, 21]
)


def sheet_of(pool):
    return Sheet(pool, pool.select().parts, "boxed")


def judge():
    return Judge(grader("exact"))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pools.problems, min_size=1, max_size=9))
def test_every_configuration_does_what_it_does_alone(tmp_path_factory, problems):
    sheet = sheet_of(as_pool(tmp_path_factory.mktemp("pool"), problems))
    answers = index_of(sheet.pool, PAPER_KERNEL, "boxed").answers
    cells = tree.sweep_sheet(sheet, SMALL)
    for at, configuration in enumerate(SMALL):
        alone = sheet.run(configuration.spec)
        assert [answers[one] if one >= 0 else None for one in cells.winners[at]] == list(alone.winners)
        assert cells.attention[at].tolist() == [bill.attention for bill in alone.bills]
        assert cells.tokens[at].tolist() == [bill.tokens for bill in alone.bills]
        assert cells.latency[at].tolist() == [bill.latency for bill in alone.bills]
        assert cells.votes[at].tolist() == list(alone.votes)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pools.problems, min_size=2, max_size=8))
def test_figures_are_those_of_simulate(tmp_path_factory, problems):
    pool = as_pool(tmp_path_factory.mktemp("pool"), problems, model="QwQ-32B")
    swept = sweep([sheet_of(pool)], judge(), SMALL)
    figures, study = swept.figures(), Study([sheet_of(pool)], judge())
    for at in range(0, len(SMALL), 7):
        alone = study.evaluate(SMALL[at].spec)
        assert figures.correct[at] == alone.correct
        assert (figures.delta[at], figures.wins[at], figures.losses[at]) == (alone.delta, alone.wins, alone.losses)
        for name in ("attention", "attention_macro", "tokens", "latency", "full_model"):
            assert getattr(figures, name)[at] == pytest.approx(getattr(alone.savings, name), abs=1e-12), name
        assert figures.votes[at] == pytest.approx(alone.votes_mean)


def test_the_grid_is_the_papers_size_and_holds_every_schedule_it_names():
    assert len(set(SCHEDULES)) == 68
    assert len(grid()) == len(set(grid())) == 340
    assert len(grid(kernels=KERNEL_SIZES)) == 340 * 8
    assert set(NAMED.values()) <= set(SCHEDULES)
    assert {len(schedule) for schedule in SCHEDULES} == {1, 2, 3, 4, 5}
    assert Configuration(NAMED["Mid"], 0.67) in grid()
    assert Configuration(NAMED["Mid"], 0.67).spec == parse("fot")
    assert KEEPS == (0.50, 0.60, 0.67, 0.75, 0.85)


def test_schedules_can_be_scaled():
    assert scaled([(6000, 10000)], 0.5) == ((3000, 5000),)
    with pytest.raises(ConfigError):
        scaled(SCHEDULES, 0)
    with pytest.raises(ConfigError):
        grid(kernels=[22])


def rollouts(right, wrong, *, hesitant=True):
    """`wrong` rollouts hesitate when `hesitant`, else the right ones; all commit at their end only."""
    marks = {True: "perhaps perhaps perhaps ", False: "so it is plain that "}
    rows = [{"text": marks[not hesitant] * 3 + "\\boxed{1}", "n_tokens": 20} for _ in range(right)]
    return rows + [{"text": marks[hesitant] * 3 + "\\boxed{2}", "n_tokens": 20} for _ in range(wrong)]


def test_blocks_and_a_resumed_sweep_change_nothing(tmp_path, monkeypatch):
    problems = [rollouts(3, 4), rollouts(4, 3), rollouts(1, 5), rollouts(2, 2), rollouts(5, 5)]
    sheet = sheet_of(as_pool(tmp_path, problems))
    whole = tree.sweep_sheet(sheet, SMALL)
    monkeypatch.setattr(tree, "_BLOCK_CELLS", 200)
    played = []
    play = tree._play
    monkeypatch.setattr(tree, "_play", lambda *args: played.append(1) or play(*args))
    folder = tmp_path / "kept"
    told = []
    first = tree.sweep_sheet(sheet, SMALL, pieces=Pieces([folder]), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 5
    assert len(played) == len(told) > 1
    next(iter(folder.iterdir())).unlink()  # as if the sweep had been stopped before this block
    again = tree.sweep_sheet(sheet, SMALL, pieces=Pieces([folder]))
    assert len(played) == len(told) + 1
    for name in tree.Cells.__slots__:
        assert np.array_equal(getattr(whole, name), getattr(first, name))
        assert np.array_equal(getattr(whole, name), getattr(again, name))
    tree.sweep_sheet(sheet, SMALL[:4], pieces=Pieces([folder]))  # other configurations: nothing there is theirs
    assert len(played) > len(told) + 1


@pytest.fixture
def swept(tmp_path):
    """On six problems early pruning saves the vote, on two it ruins it."""
    problems = [rollouts(3, 4) for _ in range(6)] + [rollouts(4, 3, hesitant=False) for _ in range(2)]
    return sweep([sheet_of(as_pool(tmp_path, problems))], judge(), SMALL)


def test_a_choice_is_made_on_other_problems_than_it_is_reported_on(swept):
    choice = nested(swept, count=4, seed=1)
    assert sum(one.reported_on for one in choice.choices) == choice.problems == 8
    assert all(one.tuned_on + one.reported_on == 8 for one in choice.choices)
    assert choice.delta == sum(one.reported_delta for one in choice.choices) == choice.wins - choice.losses
    assert not choice.tuned_on_test


def test_a_choice_on_the_test_is_at_least_as_flattering_and_says_so(swept):
    greedy = nested(swept, on_test=True)
    assert greedy.tuned_on_test
    assert greedy.delta == swept.figures().delta.max() >= nested(swept, count=4).delta
    assert front(swept, on_test=True).figures.problems == 8


def test_the_front_is_found_on_one_half_and_measured_on_the_other(swept):
    found = front(swept, seed=2)
    assert (found.tuned_on, found.figures.problems) == (4, 4)
    tuned = swept.figures(swept.everything)
    everything = front(swept, on_test=True)
    savings = tuned.attention[list(everything.configurations)]
    assert (np.diff(savings) > 0).all()
    assert (np.diff(tuned.balanced[list(everything.configurations)]) < 0).all()
    for at in range(len(SMALL)):
        beaten = (tuned.balanced >= tuned.balanced[at]) & (tuned.attention > tuned.attention[at])
        assert at not in everything.configurations or not beaten.any()


def test_the_rules_of_choice(swept):
    figures = swept.figures()
    most = best(figures, "accuracy")
    assert figures.balanced[most] == figures.balanced.max()
    thrifty = best(figures, "saving")
    harmless = figures.delta >= 0
    assert figures.attention[thrifty] == figures.attention[harmless].max()


def test_one_question_to_several_models_lies_in_one_fold(tmp_path):
    sheets = [sheet_of(as_pool(tmp_path / model, [rollouts(3, 4)] * 6, model=model)) for model in ("one", "another")]
    swept = sweep(sheets, judge(), SMALL)
    choice = nested(swept, count=3)
    assert [one.reported_on for one in choice.choices] == [4, 4, 4]
    with pytest.raises(ConfigError, match="6 problems cannot be dealt into 7 folds"):
        nested(swept, count=7)


def test_the_command(tmp_path, capsys):
    pool = as_pool(tmp_path, [rollouts(3, 4) for _ in range(6)])
    assert main(["sweep", str(pool.path), "--json", "--scale", "0.001", "--kernels", "1/21"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "fot.sweep/1"
    assert len(told["configurations"]) == 680
    assert told["banner"] is None
    entry = told["configurations"][123]
    assert main(["simulate", str(pool.path), "--policy", entry["spec"], "--json"]) == 0
    (alone,) = json.loads(capsys.readouterr().out)["methods"]
    for name in ("correct", "delta", "wins", "losses", "accuracy"):
        assert entry[name] == alone[name]
    assert main(["sweep", str(pool.path), "--tune-on-test"]) == 0
    assert BANNER in " ".join(capsys.readouterr().out.split())
    assert main(["sweep", str(pool.path), "--tune-on-test", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["banner"] == BANNER
    assert main(["sweep", str(pool.path), "--kernels", "many"]) == 2
