"""`fot plan` as a person calls it, and the way from a timed server to a plan."""

import json
from xml.etree import ElementTree

import pytest

from fot.cli.main import main
from fot.core.rollout import Rollout
from fot.core.timing import Knot, Timing
from fot.engines.scripted import Pace
from tests.cli.serving import serving


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = []
    for problem in range(3):
        for at in range(4):
            text = ("Wait, " * (9 * at) + "so it goes on " * 9)[:100] + r"\boxed{1}"
            row = {"model": "m", "benchmark": "b", "problem_id": f"p{problem}", "rollout_id": at, "gold": "1"}
            lines.append(json.dumps(row | {"text": text, "n_tokens": 50 + at, "prompt_tokens": 10}))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def timing(tmp_path):
    path = tmp_path / "timing.json"
    speed = Timing(knots=(Knot(1, 1.0), Knot(4, 2.0)), kv_s=0.01, slots=8)
    path.write_text(json.dumps(speed.as_json() | {"engine": "vllm", "model": "m", "error": 0.03}))
    return path


def test_a_plan_as_json(rows, timing, capsys):
    words = ["--policy", "sc", "--policy", "fot:checkpoints=20,keep=0.5", "--concurrency", "1", "--concurrency", "2"]
    assert main(["plan", str(rows), "--timing", str(timing), *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "fot.plan/1"
    assert told["pool"]["problems"] == 3
    assert told["timing"] == {"engine": "vllm", "model": "m", "made": None, "error": 0.03}
    assert told["room"] == {"slots": 8, "kv_tokens": None}
    plans = {(plan["policy"], plan["concurrency"]): plan for plan in told["plans"]}
    assert set(plans) == {("sc", 1), ("sc", 2), ("fot", 1), ("fot", 2)}
    sc, fot = plans["sc", 1], plans["fot", 1]
    assert sc["tokens"] == 3 * (50 + 51 + 52 + 53)
    assert sc["kv"]["peak"] > fot["kv"]["mean"] > 0
    assert fot["wall_s"] < sc["wall_s"]
    assert fot["tokens"] < sc["tokens"]
    assert plans["sc", 2]["wall_s"] < sc["wall_s"]
    assert sc["batch"]["peak"] == 4
    assert plans["sc", 2]["batch"]["peak"] == 8


def test_a_plan_as_a_table_with_a_picture(rows, timing, capsys, tmp_path):
    picture = tmp_path / "plan.svg"
    assert main(["plan", str(rows), "--timing", str(timing), "--slots", "3", "--figure", str(picture)]) == 0
    out, err = capsys.readouterr()
    assert "3 slots" in out
    assert "KV positions" in out
    assert "█" in out
    assert "no limit of KV positions" in err
    drawn = ElementTree.fromstring(picture.read_text())
    assert len(drawn.findall("{*}path")) == 2 * (1 + 2)  # an axis and two lines in each panel


@pytest.mark.parametrize("policy", ["dsc", "ac", "esc", "waves", "oracle", "fot:checkpoints=20+decided", "dsc+fot"])
def test_methods_of_both_axes(rows, timing, capsys, policy):
    assert main(["plan", str(rows), "--timing", str(timing), "--policy", policy, "--policy", "sc", "--json"]) == 0
    found, sc = json.loads(capsys.readouterr().out)["plans"]
    assert 0 < found["tokens"] <= sc["tokens"] + found["overshoot_tokens"]
    assert found["wall_s"] > 0


def test_little_room_is_seen(rows, timing, capsys):
    assert main(["plan", str(rows), "--timing", str(timing), "--kv-tokens", "130", "--policy", "sc", "--json"]) == 0
    (tight,) = json.loads(capsys.readouterr().out)["plans"]
    assert tight["kv"]["peak"] <= 130
    assert tight["queue_s"] > 0


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--timing", "absent.json"], 2, "there is no absent.json"),
        (["--timing", "TIMING", "--concurrency", "0"], 2, "concurrency is 0"),
        (["--timing", "TIMING", "--slots", "0"], 2, "0 slots"),
        (["--timing", "TIMING", "--kv-tokens", "20"], 2, "does not fit into 20"),
        (["--timing", "TIMING", "--way", "barrier", "--slots", "2"], 2, "do not fit into 2"),
        (["--timing", "TIMING", "--policy", "fto"], 2, "Did you mean 'fot'"),
        (["--timing", "TIMING", "--policy", "deepconf"], 2, "token confidences"),
        (["--timing", "ROWS"], 2, "no JSON"),
        ([], 2, "timing"),
    ],
)
def test_a_wrong_call_has_one_clear_message(rows, timing, capsys, words, code, complaint):
    places = {"TIMING": str(timing), "ROWS": str(rows)}
    assert main(["plan", str(rows), *(places.get(word, word) for word in words)]) == code
    err = capsys.readouterr().err
    assert complaint in err
    assert "Traceback" not in err
    assert err.count("error:") == 1


def test_an_unknown_number_of_slots_is_asked_for(rows, tmp_path, capsys):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(Timing(knots=(Knot(1, 1.0),)).as_json()))
    assert main(["plan", str(rows), "--timing", str(path)]) == 2
    assert "--slots" in capsys.readouterr().err


def test_from_a_server_to_a_plan(rows, tmp_path, capsys):
    texts = [f"thought {at} goes on " * 60 for at in range(4)]
    spoken = [
        Rollout(model="m", benchmark="b", problem_id="p", rollout_id=at, text=text, n_tokens=200, prompt_tokens=30)
        for at, text in enumerate(texts)
    ]
    out = tmp_path / "timing.json"
    with serving(spoken, "vllm", pace=Pace(token_s=0.0005, chunk_tokens=4)) as (url, _):
        words = ["--k", "2", "--tokens", "60", "--context", "10", "--out", str(out)]
        assert main(["doctor", "--calibrate", "--base-url", url, *words]) == 0
    assert "measured ms a step" in capsys.readouterr().out
    told = json.loads(out.read_text())
    assert (told["schema"], told["engine"]) == ("fot.timing/1", "vllm")
    assert [knot["batch"] for knot in told["knots"]] == [1, 2]
    assert main(["plan", str(rows), "--timing", str(out), "--slots", "4", "--policy", "sc"]) == 0
    assert "sc" in capsys.readouterr().out
