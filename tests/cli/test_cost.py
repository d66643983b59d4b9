"""`fot cost` as a person calls it: what a pool takes, and many times it."""

import json
import shutil

import pytest

from fot.cli.main import main
from fot.core.cost import ACCELERATORS, Work, decode_flops, decoding, served_s
from fot.core.shapes import shape_of
from fot.core.timing import Knot, Timing
from fot.pools.wholeness import cache_folder

MODELS = {"deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": 0, "Qwen/QwQ-32B": 5}


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = []
    for model, longer in MODELS.items():
        for problem in range(3):
            for at in range(4):
                row = {"model": model, "benchmark": "b", "problem_id": f"p{problem}", "rollout_id": at, "gold": "1"}
                text = ("so it goes on " * 20)[:200] + (r"\boxed{1}" if at else "")
                lines.append(json.dumps(row | {"text": text, "n_tokens": 50 + longer + at, "prompt_tokens": 10}))
    path.write_text("\n".join(lines))
    return path


def told(capsys, *words):
    assert main(["cost", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def works():
    """By hand."""
    found = {}
    for model, longer in MODELS.items():
        tokens = [50 + longer + at for _ in range(3) for at in range(4)]
        found[model] = Work(3, 12, sum(tokens), sum(t * t for t in tokens), 120)
    return found


def test_the_sum_over_models(rows, capsys):
    found = told(capsys, rows, "--policy", "sc", "--times", 1, "--times", 100, "--use", "0.5")
    assert found["schema"] == "fot.cost/1"
    one, many = found["costs"]
    assert one["tokens"] == sum(work.tokens for work in works().values())
    assert one["flops"] == sum(decode_flops(work, shape_of(model)) for model, work in works().items())
    hours = sum(
        decoding(work, shape_of(model), ACCELERATORS["h100"], use=0.5).hours(work.tokens)
        for model, work in works().items()
    )
    assert one["accelerator_hours"] == pytest.approx(hours)
    for name in ("tokens", "flops", "accelerator_hours"):
        assert many[name] == pytest.approx(100 * one[name])
    assert one["bytes"]["text"] == pytest.approx(24 * 200 + 18 * 9)
    assert one["server_s"] is None


def test_a_funnel_takes_less(rows, capsys):
    sc, fot = told(capsys, rows, "--policy", "sc", "--policy", "fot:checkpoints=20,keep=0.5")["costs"]
    assert fot["tokens"] == sc["tokens"] - 3 * (32 + 33) - 3 * (37 + 38)  # two of four are pruned at 20 tokens
    assert fot["flops"] < sc["flops"]
    assert fot["bytes"]["text"] < sc["bytes"]["text"]


def test_what_runs_have_kept_is_not_counted_as_index(rows, capsys, tmp_path):
    pool = tmp_path / "pool"
    assert main(["pool", "import", str(rows), "--out", str(pool)]) == 0
    capsys.readouterr()
    before = told(capsys, pool)["costs"]
    assert main(["simulate", str(pool), "--policy", "fot+decided"]) == 0
    assert list(pool.glob("index/*/pieces/*"))
    capsys.readouterr()
    assert told(capsys, pool)["costs"] == before


def test_arrays_in_two_places_are_counted_once(rows, capsys, tmp_path):
    pool = tmp_path / "pool"
    assert main(["pool", "import", str(rows), "--out", str(pool)]) == 0
    capsys.readouterr()
    before = told(capsys, pool)["costs"][0]["bytes"]["index"]
    shutil.copytree(pool / "index", cache_folder("index"), dirs_exist_ok=True)
    assert told(capsys, pool)["costs"][0]["bytes"]["index"] == before


def test_hours_of_a_server_that_was_timed(rows, capsys, tmp_path):
    timing = Timing(knots=(Knot(1, 1.0), Knot(8, 2.0)), kv_s=0.01, prefill_s=0.5, shared=0.5, slots=8)
    path = tmp_path / "timing.json"
    path.write_text(json.dumps(timing.as_json()))
    (one,) = told(capsys, rows, "--policy", "sc", "--timing", path)["costs"]
    assert one["server_s"] == pytest.approx(sum(served_s(work, timing, 8) for work in works().values()))


def test_an_accelerator_in_figures_and_a_table(rows, capsys):
    assert main(["cost", str(rows), "--accelerator", "989e12/3.35e12/80e9", "--use", "0.5"]) == 0
    said = capsys.readouterr().out
    assert main(["cost", str(rows), "--accelerator", "h100", "--use", "0.5"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == said.splitlines()[1:]
    assert "at 50% of its data sheet" in said


def test_a_model_of_unknown_shape_has_tokens_and_no_flops(tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    row = {"model": "unheard-of", "benchmark": "b", "problem_id": "p", "gold": "1", "text": "so it goes", "n_tokens": 9}
    path.write_text("\n".join(json.dumps(row | {"rollout_id": at}) for at in range(4)))
    assert main(["cost", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    cost = json.loads(out)["costs"][0]
    assert (cost["tokens"], cost["flops"], cost["accelerator_hours"]) == (36, None, None)
    assert "unheard-of" in err
    assert "--cost-model" in err
    assert told(capsys, path, "--cost-model", "QwQ-32B")["costs"][0]["flops"] > 0


def test_rollouts_of_no_tokens_cost_nothing(tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    row = {"model": "QwQ-32B", "benchmark": "b", "problem_id": "p", "text": "", "n_tokens": 0}
    path.write_text("\n".join(json.dumps(row | {"rollout_id": at}) for at in range(2)))
    (cost,) = told(capsys, path, "--policy", "sc")["costs"]
    assert (cost["tokens"], cost["flops"], cost["accelerator_hours"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--accelerator", "h10"], "Did you mean"),
        (["--accelerator", "1/2/x"], "no number"),
        (["--times", "0"], "--times is 0"),
        (["--times", "1", "--times", "nan"], "--times is nan"),
        (["--use", "1.5"], "1.5"),
    ],
)
def test_what_makes_no_sense_is_refused(words, said, rows, capsys):
    assert main(["cost", str(rows), *words]) == 2
    assert said in capsys.readouterr().err
