"""The demonstration is a live run: the model in the box, both methods on the same seeds."""

import json

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


def test_the_demo_can_be_read(capsys):
    assert main(["demo", "--k", "2", "--problem", "1"]) == 0
    said = capsys.readouterr()
    assert "self-consistency" in said.out
    assert "saved:" in said.err
