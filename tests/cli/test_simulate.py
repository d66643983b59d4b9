"""The command as a person calls it, and everything that can be wrong with the call."""

import json

import pytest

from fot.cli.main import main

ROW = {"model": "m", "benchmark": "b", "problem": None, "finish_reason": "stop", "gold": "1"}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FOT_HOME", str(tmp_path / "home"))


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    with path.open("w") as out:
        for problem in range(3):
            for at in range(4):
                text = "Wait, " * at + f"so \\boxed{{{1 if at > problem else 2}}}"
                out.write(
                    json.dumps(ROW | {"problem_id": f"p{problem}", "rollout_id": at, "text": text, "n_tokens": 8})
                )
                out.write("\n")
    return path


def test_json_is_the_contracts(rows, capsys, tmp_path):
    lines = tmp_path / "rows.out"
    assert main(["simulate", str(rows), "--policy", "sc", "--policy", "fot:checkpoints=2", "--k", "4", "--json",
                 "--per-problem", str(lines)]) == 0  # fmt: skip
    result = json.loads(capsys.readouterr().out)
    assert result["schema"] == "fot.simulate/1"
    pool = {key: result["pool"][key] for key in ("problems", "rollouts", "k", "cut", "models", "benchmarks")}
    assert pool == {"problems": 3, "rollouts": 12, "k": 4, "cut": "interpolated", "models": ["m"], "benchmarks": ["b"]}
    sc, fot = result["methods"]
    assert (sc["policy"], sc["correct"], fot["spec"]) == ("sc", 1, "fot:checkpoints=2")
    keys = {"policy", "spec", "correct", "accuracy", "delta", "wins", "losses", "mcnemar_p", "ci95_pp", "savings"}
    assert keys <= sc.keys()
    assert set(sc["savings"]) == {"attention", "attention_macro", "tokens", "latency", "full_model"}
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [(row["problem_id"], row["policy"]) for row in written[::3]] == [("p0", "sc"), ("p0", "fot")]
    assert written[0] | {"answer": "1", "correct": True, "stops": [8, 8, 8, 8], "votes": {"2": 1, "1": 3}} == written[0]
    assert written[0]["fates"] == ["finished"] * 4


def test_a_table_by_default(rows, capsys):
    assert main(["simulate", str(rows)]) == 0
    out = capsys.readouterr().out
    for name in ("sc", "pass", "fot", "random", "oracle", "pass@4 (the ceiling)"):
        assert f"\n{name}" in out


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["--k", "9"], 1, "no problem has 9 rollouts"),
        (["--k", "0"], 2, "k is 0"),
        (["--k", "many"], 2, "many"),
        (["--policy", "fto"], 2, "Did you mean 'fot'"),
        (["--policy", "fot:keep=7"], 2, "keep must lie"),
        (["--commit", "box"], 2, "Did you mean 'boxed'"),
        (["--grader", "exakt"], 2, "Did you mean 'exact'"),
        (["--cost-model", "QwQ"], 2, "unknown model shape"),
        (["--per-problem", "/nowhere/at/all.jsonl"], 1, "No such file or directory: /nowhere/at/all.jsonl\n"),
        (["--nonsense"], 2, "nonsense"),
    ],
)
def test_a_wrong_call_has_one_clear_message(rows, capsys, arguments, code, complaint):
    assert main(["simulate", str(rows), *arguments]) == code
    said = capsys.readouterr()
    assert complaint in said.err
    assert "Traceback" not in said.err
    assert said.err.count("error:") == 1


def test_a_wrong_pool_has_one_clear_message(tmp_path, capsys):
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    for path in (empty, tmp_path / "absent", tmp_path):
        assert main(["simulate", str(path)]) == 1
        assert capsys.readouterr().err.count("error:") == 1


def test_what_may_mislead_is_said(rows, capsys):
    assert main(["simulate", str(rows), "--commit", "choice", "--policy", "sc"]) == 0
    assert "is it the right detector" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["simulate"], ["sweep", "--folds", "3", "--kernels", "21"]])
def test_without_reference_answers_it_is_said(rows, capsys, command):
    rows.write_text(rows.read_text().replace('"gold": "1"', '"gold": null'))
    assert main([*command, str(rows), "--json"]) == 0
    assert "no reference answers: nothing can be correct" in capsys.readouterr().err


def test_checkpoints_past_every_end_are_told(rows, capsys):
    specs = ["sc", "random", "fot", "fot:checkpoints=2"]
    assert main(["simulate", str(rows), "-k", "4", *(word for spec in specs for word in ("--policy", spec))]) == 0
    assert "note: random, fot stopped nothing; are the checkpoints past the ends?" in capsys.readouterr().err
