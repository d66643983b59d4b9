"""The demonstration is a live run: the model in the box, both methods on the same seeds."""

import json

import pytest

from fot import reasoner
from fot.cli.main import main


def test_the_demo_runs_the_funnel_and_the_full_vote(capsys):
    assert main(["demo", "--k", "4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "fot.demo/1"
    funnel, majority = told["funnel"], told["majority"]
    assert len(funnel["rollouts"]) == len(majority["rollouts"]) == 4
    assert {rollout["fate"] for rollout in majority["rollouts"]} == {"finished"}
    assert told["savings"].keys() >= {"attention", "tokens", "latency"}
    assert told["gold"].isdigit()


def test_the_demo_says_what_its_lines_mean_shows_thoughts_and_replays_the_sample(capsys):
    assert main(["demo", "--k", "3"]) == 0
    said = capsys.readouterr()
    assert "self-consistency" in said.out
    assert "saved:" in said.err
    *before, last = reasoner.CHECKPOINTS
    assert f"{', '.join(map(str, before))} and {last}" in said.err
    assert said.err.count("per 1,000 characters:") == 2
    assert "fot solve" in said.err
    assert "51 of 64" in said.out
    assert "prunes at random" in said.out


def test_the_demo_tells_where_its_recorded_rollouts_are(capsys):
    assert main(["demo", "--pool"]) == 0
    assert capsys.readouterr().out.strip() == str(reasoner.sample_pool_path())


@pytest.mark.parametrize("given", [["--problem=-1"], ["--k", "0"], ["--k", "1"]])
def test_what_cannot_be_shown_is_refused(given, capsys):
    assert main(["demo", *given]) == 2
    assert "hint:" in capsys.readouterr().err
