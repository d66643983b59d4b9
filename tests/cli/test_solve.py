import io
import json
import signal
import subprocess
import sys
import time

import pytest

from fot.cli.main import main
from fot.engines.faults import Fault
from fot.engines.scripted import Pace
from tests.cli.serving import serving, spelled

TEXTS = [r"It is \boxed{42}." + " so" * 60, "Wait, " * 40, "calm " * 60 + r"\boxed{42}", "calm " * 50 + r"\boxed{41}"]


def recorded(texts=TEXTS, problem="What is 6 times 7?", name="p"):
    return [spelled(name, problem, at, text, prompt_tokens=9) for at, text in enumerate(texts)]


FUNNEL = ("--policy", "fot:checkpoints=50,keep=0.67", "--k", "4")


def solve(capsys, *arguments):
    code = main(["solve", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("way", ["stream", "pause"])
@pytest.mark.parametrize("dialect", ["vllm", "llamacpp", "sglang", "openai"])
def test_json_is_the_contracts_object(capsys, dialect, way):
    with serving(recorded(), dialect) as (url, engine):
        code, out, err = solve(capsys, "What is 6 times 7?", "--base-url", f"{url}/v1", *FUNNEL, "--way", way, "--json")
    if (dialect, way) == ("openai", "pause"):
        assert code == 2
        assert "cannot resume from a prefix" in err
        return
    assert code == 0
    told = json.loads(out)
    assert told["schema"] == "fot.solve/1"
    assert told["answer"] == "42"
    assert told["votes"] == {"42": 2, "41": 1}
    fates = [rollout["fate"] for rollout in told["rollouts"]]
    if told["counts"] == "exact":
        assert fates == ["banked", "pruned", "finished", "finished"]
        assert [rollout["tokens"] for rollout in told["rollouts"]][:2] == [50, 50]
        assert [rollout["finish_reason"] for rollout in told["rollouts"]][2:] == ["stop", "stop"]
        generated = sum(engine.generated.values())
        assert 0 <= generated - told["usage"]["completion_tokens"] <= 16 * 4  # what a cut connection kept from us
    assert set(told["savings"]) == {"attention", "attention_macro", "tokens", "latency", "full_model", "basis"}
    assert told["savings"]["full_model"] is None
    assert told["wall_s"] > 0
    usage = told["usage"]
    assert usage["completion_tokens"] == sum(r["tokens"] for r in told["rollouts"]) + usage["overshoot_tokens"]
    assert usage["prompt_tokens"] >= 36


def test_the_answer_goes_to_stdout_and_the_rest_to_stderr(capsys):
    with serving(recorded()) as (url, _):
        code, out, err = solve(capsys, "What is 6 times 7?", "--base-url", url, *FUNNEL)
    assert (code, out) == (0, "42\n")
    assert "votes: 42 x2, 41 x1; rollouts: 1 banked, 1 pruned, 2 finished" in err


def test_problems_from_a_file_and_rows_for_replay(capsys, tmp_path):
    problems = [("What is 6 times 7?", "p"), ("And 6 times 8?", "q")]
    rollouts = [row for problem, name in problems for row in recorded(problem=problem, name=name)]
    rows = [{"problem": problem, "problem_id": name, "gold": "42"} for problem, name in problems]
    file, pool = tmp_path / "problems.jsonl", tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0]]))
    with serving(rollouts) as (url, _):
        code, out, _ = solve(capsys, "--file", str(file), "--base-url", url, *FUNNEL, "--json", "--record", str(pool))
    assert code == 0
    told = [json.loads(line) for line in out.splitlines()]
    assert [one["problem_id"] for one in told] == ["p", "q"]
    assert main(["simulate", str(pool), *FUNNEL, "--json", "--per-problem", str(tmp_path / "replayed.jsonl")]) == 0
    capsys.readouterr()
    for live, line in zip(told, (tmp_path / "replayed.jsonl").read_text().splitlines(), strict=True):
        replayed = json.loads(line)
        assert replayed["answer"] == live["answer"]
        assert replayed["stops"] == [rollout["tokens"] for rollout in live["rollouts"]]
        assert replayed["fates"] == [rollout["fate"] for rollout in live["rollouts"]]
        assert replayed["votes"] == live["votes"]


def test_a_pool_that_is_played_live_decides_as_its_replay(capsys, tmp_path):
    pool, lines = tmp_path / "rows.jsonl", tmp_path / "replayed.jsonl"
    problem = "What is 6 times 7?"
    with serving(recorded(problem=problem)) as (url, _):
        whole = ("--policy", "sc", "-k", "4", "--record", str(pool))
        assert solve(capsys, problem, "--base-url", url, *whole)[0] == 0
    code, out, _ = solve(capsys, problem, "--engine", "scripted", "--model", str(pool), *FUNNEL, "--json")
    assert code == 0
    assert main(["simulate", str(pool), *FUNNEL, "--json", "--per-problem", str(lines)]) == 0
    capsys.readouterr()
    live, replayed = json.loads(out), json.loads(lines.read_text())
    assert [rollout["tokens"] for rollout in live["rollouts"]] == replayed["stops"]
    assert [rollout["fate"] for rollout in live["rollouts"]] == replayed["fates"]
    assert main(["solve", problem, "--engine", "scripted"]) == 2
    assert "--model POOL" in capsys.readouterr().err


@pytest.mark.parametrize("problem", ["-", "-6 times -7 is what?"])
def test_a_hyphen_alone_is_standard_input_and_a_negative_number_a_problem(capsys, monkeypatch, problem):
    monkeypatch.setattr("sys.stdin", io.StringIO("What is 6 times 7?\n"))
    with serving(recorded(problem=None)) as (url, _):
        code, out, err = solve(capsys, problem, "--base-url", url, "--policy", "sc", "-k", "4", "--json")
    assert (code, json.loads(out)["answer"]) == (0, "42"), err


def test_a_lost_rollout_makes_the_result_partial(capsys):
    with serving(recorded(), faults={("p", 3): [Fault("fatal", 4)]}) as (url, _):
        flags = ("--base-url", url, "--policy", "sc", "-k", "4", "--retries", "1", "--json")
        code, out, err = solve(capsys, "What is 6 times 7?", *flags)
    assert code == 4
    told = json.loads(out)
    assert told["rollouts"][3]["fate"] == "failed"
    assert told["rollouts"][3]["failure"]
    assert told["votes"] == {"42": 2}
    assert "rollout 3 was lost" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give a problem"),
        (["p", "--file", "x"], 2, "give a problem"),
        (["p", "--base-url", "http://127.0.0.1:9"], 3, ""),
        (["p", "--engine", "sglan"], 2, "sglang"),
        (["p", "--policy", "fott"], 2, "fot"),
        (["p", "--policy", "oracle"], 2, "final length"),
        (["p", "--commit", "box"], 2, "boxed"),
        (["p", "-k", "0"], 2, "k is 0"),
        (["--bogus", "p"], 2, "no such option"),
        (["@/nowhere", "--json"], 1, "No such file"),
        (["p", "--engine", "embedded", "--base-url", "http://127.0.0.1:9"], 2, "runs here"),
    ],
)
def test_what_cannot_be_is_said_in_one_message(capsys, arguments, code, message):
    found, out, err = solve(capsys, *arguments)
    assert found == code, err
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert "Traceback" not in err


def test_a_file_with_a_bad_line(capsys, tmp_path):
    file = tmp_path / "problems.jsonl"
    file.write_text('{"problem": "x"}\n[]\n')
    code, _, err = solve(capsys, "--file", str(file))
    assert code == 2
    assert "line 2" in err


def test_an_interruption_gives_the_vote_so_far(tmp_path):
    texts = [r"\boxed{42}", "so " * 4000, "so " * 4000]
    with serving(recorded(texts), pace=Pace(token_s=0.002, chunk_tokens=4)) as (url, engine):
        command = [sys.executable, "-m", "fot", "solve", "What is 6 times 7?", "--base-url", url, "-k", "3", "--json"]
        command += ["--policy", "sc"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            try:
                deadline = time.monotonic() + 60
                while not all(engine.generated["p", at] > 60 for at in (1, 2)):
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
                running.send_signal(signal.SIGINT)
                out, err = running.communicate(timeout=30)
            finally:
                running.kill()
    assert running.returncode == 130, err
    told = json.loads(out)
    assert told["interrupted"]
    assert told["votes"] == {"42": 1}
    assert "Traceback" not in err


def test_the_lanes_are_drawn():
    from rich.console import Console

    from fot.cli.lanes import Lanes
    from fot.online.events import Banked, Cancelled, Failed, Finished, Progress, Pruned, Retried, Started, Voted

    lanes = Lanes(8, "fot: what is it?")
    happened = [Started(at, at) for at in range(7)]
    happened += [Progress(0, 120, 2.5, None), Finished(1, 200, "42", "stop"), Banked(2, 50, 0.0, "42")]
    happened += [Pruned(3, 50, 31.5), Cancelled(4, 90), Retried(5, 10, "gone", 1.0), Failed(6, 10, "gone")]
    for event in [*happened, Voted("42", {"42": 2.0, "7": 1.0}, False)]:
        lanes.take(event)
    screen = Console(width=100, record=True, file=io.StringIO())
    screen.print(lanes.draw(100))
    drawn = screen.export_text()
    for state in ("running", "finished", "banked", "pruned", "cancelled", "retried", "failed", "waiting"):
        assert state in drawn
    assert "42 x2" in drawn
    assert "31.5" in drawn
