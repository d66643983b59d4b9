import json

import pytest

from fot.cli.main import main
from fot.engines.scripted import Pace
from tests.cli.serving import serving, spelled

PROBLEMS = ("What is one and one?", "What is two and three?")
ANSWERS = ("2", "5")
K, REPEATS = 4, 2
FUNNEL = "fot:checkpoints=20/40,keep=0.5"


def recorded():
    """Of each problem every third rollout is wrong, long and full of doubt."""
    rollouts = []
    for number, (problem, answer) in enumerate(zip(PROBLEMS, ANSWERS, strict=True)):
        for at in range(K * REPEATS):
            is_wrong = at % 3 == 2
            thought = "Wait, no. But wait. " * 20 if is_wrong else "It is plain and calm. "
            text = f"{thought}</think>\\boxed{{{9 if is_wrong else answer}}}"
            rollouts.append(spelled(f"p{number}", problem, at, text))
    return rollouts


@pytest.fixture
def problems(tmp_path):
    file = tmp_path / "problems.jsonl"
    rows = [{"problem": p, "gold": a} for p, a in zip(PROBLEMS, ANSWERS, strict=True)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def bench(url, problems, *more, policies=("pass", "sc", FUNNEL)):
    named = [word for policy in policies for word in ("--policy", policy)]
    return main(["bench", str(problems), "--base-url", url, "-k", str(K), *named, *more])


def test_the_online_table(capsys, problems):
    with serving(recorded(), pace=Pace(token_s=0.0001, chunk_tokens=2)) as (url, _):
        assert bench(url, problems, "--repeats", str(REPEATS), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "fot.bench/1"
    assert (told["problems"], told["k"], told["repeats"], told["lost_rollouts"]) == (2, K, REPEATS, 0)
    alone, majority, funnel = told["methods"]
    assert majority["accuracy"] == funnel["accuracy"] == 1.0
    assert 0 < alone["accuracy"] < 1  # the mean of all single rollouts
    assert set(majority["savings"].values()) == {0.0}
    for cost in ("attention", "tokens", "latency", "kv_peak"):
        low, high = funnel["savings_ci95"][cost]
        assert low <= funnel["savings"][cost] <= high
    assert funnel["savings"]["tokens"] > 0
    assert len(funnel["wall_s_by_repeat"]) == len(funnel["wall_saved_by_repeat"]) == REPEATS
    assert majority["wall_saved_by_repeat"] == [0.0] * REPEATS
    assert funnel["tokens"] < majority["tokens"] == sum(len(r.text) for r in recorded()) / REPEATS


def test_runs_are_kept_and_not_made_again(capsys, problems, tmp_path):
    runs = tmp_path / "runs.jsonl"
    with serving(recorded()) as (url, engine):
        assert bench(url, problems, "--per-run", str(runs)) == 0
        first = capsys.readouterr().out
        lines = runs.read_bytes().splitlines(keepends=True)
        assert len(lines) == 2 * 3
        generated = sum(engine.generated.values())
        assert bench(url, problems, "--per-run", str(runs)) == 0
        assert capsys.readouterr().out == first
        assert sum(engine.generated.values()) == generated
        runs.write_bytes(b"".join(lines[:4]) + lines[4][:20])  # as a crash leaves it
        assert bench(url, problems, "--per-run", str(runs)) == 0
        again = [json.loads(line) for line in runs.read_bytes().splitlines()]
        assert len({(run["policy"], run["problem_id"]) for run in again}) == len(again) == 2 * 3
        assert bench(url, problems, "--per-run", str(runs), "--seed", "43") != 0
    assert "other settings" in capsys.readouterr().err


def test_without_sc_it_runs_all_the_same(capsys, problems):
    with serving(recorded()) as (url, _):
        assert bench(url, problems, "--json", policies=(FUNNEL,)) == 0
    assert [row["policy"] for row in json.loads(capsys.readouterr().out)["methods"]] == ["sc", FUNNEL]
