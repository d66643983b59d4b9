"""The figures of a study, worked by hand on a pool of four problems."""

import json

import pytest

from fot.errors import ConfigError, PoolError
from fot.grading.base import grader
from fot.methods import parse
from fot.pools.importing import import_rows
from fot.pools.read import Pool
from fot.replay.evaluate import Judge, Study
from fot.replay.sheet import Sheet
from fot.replay.study import choose, cost_model, study_of

BOX = "\\boxed{%s}"
PROBLEMS = {  # answers of three rollouts, "-" for none; the reference is always 1
    "clear": ("1", "1", "2"),
    "tied": ("2", "1", "-"),
    "hopeless": ("2", "2", "2"),
    "silent": ("-", "-", "-"),
}


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    with path.open("w") as out:
        for name, answers in PROBLEMS.items():
            for at, answer in enumerate(answers):
                text = "Wait, " * at + ("" if answer == "-" else BOX % answer) + "." * 20
                row = {"model": "QwQ-32B", "benchmark": "toy", "problem_id": name, "rollout_id": at, "gold": "1"}
                row |= {"problem": None, "text": text, "n_tokens": 10 * (at + 1), "finish_reason": "stop"}
                out.write(json.dumps(row) + "\n")
    return path


@pytest.fixture
def study(rows, tmp_path):
    pool = Pool(import_rows([rows], tmp_path / "pool").pool)
    return Study([Sheet(pool, pool.select().parts, "boxed")], Judge(grader("exact")))


def test_self_consistency_is_the_mark(study):
    sc = study.evaluate(parse("sc"))
    assert (sc.correct, sc.accuracy, sc.delta, sc.wins, sc.losses) == (1, 0.25, 0, 0, 0)
    assert sc.votes_mean == (3 + 2 + 3 + 0) / 4
    assert (sc.savings.attention, sc.savings.tokens, sc.savings.latency, sc.savings.full_model) == (0, 0, 0, 0)


def test_pass_is_the_mean_rollout_and_the_ceiling(study):
    result = study.evaluate(parse("pass"))
    assert result.correct == pytest.approx(2 / 3 + 1 / 3)
    assert result.pass_at == {1: pytest.approx(0.25), 2: pytest.approx((1 + 2 / 3) / 4), 3: pytest.approx(0.5)}
    assert result.savings.tokens == pytest.approx(2 / 3)
    assert result.savings.latency == pytest.approx(1 - 20 / 30)
    assert result.savings.attention == pytest.approx(2 / 3)
    assert (result.wins, result.losses) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


def test_a_method_that_draws_reports_means(study):
    drawn = study.evaluate(parse("random:checkpoints=5,keep=0.67,draws=40,early_voting=off"))
    assert drawn.draws == 40
    assert 0 < drawn.correct < 2
    assert drawn.correct * 40 == pytest.approx(round(drawn.correct * 40))
    assert drawn.delta == pytest.approx(drawn.wins - drawn.losses)
    again = study.evaluate(parse("random:checkpoints=5,keep=0.67,draws=40,early_voting=off"))
    assert again.correct == drawn.correct


def test_per_problem_rows_add_up(study):
    for text in ("sc", "fot:checkpoints=5/12", "pass", "sc+decided"):
        rows = {row.problem.problem_id: row for row in study.rows(parse(text))}
        assert list(rows) == list(PROBLEMS)
        assert all(len(row.outcome.stops) == 3 for row in rows.values())
    assert rows["hopeless"].outcome.stops == (10, 20, 20)  # two of three agree at 20: nothing can change it
    assert rows["clear"].judgement.value == "correct"


def test_choosing(rows, tmp_path):
    pool = import_rows([rows], tmp_path / "pool").pool
    chosen = choose([pool], 2)
    assert (chosen.problems, chosen.rollouts, chosen.left_out, chosen.cut) == (4, 8, 0, "interpolated")
    with pytest.raises(PoolError, match="no problem has 4 rollouts") as error:
        choose([pool], 4)
    assert "--k 3" in error.value.hint
    with pytest.raises(PoolError, match="more than one pool"):
        choose([pool, pool], 2)
    study = study_of(chosen, commit="boxed", grader="exact", shape=cost_model(None), seed=0)
    assert study.evaluate(parse("sc")).correct == 1


def test_what_prices_a_model(tmp_path):
    assert cost_model("QwQ-32B")("anything").layers == 64
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 3}))
    assert cost_model(str(config))("anything").layers == 3
    assert cost_model(str(tmp_path))("anything").layers == 3
    with pytest.raises(ConfigError, match="QwQ-32B"):
        cost_model("QwQ-32")
    config.write_text("[]")
    with pytest.raises(ConfigError, match="no JSON object"):
        cost_model(str(config))
    with pytest.raises(ConfigError, match="cannot be read"):
        cost_model(str(tmp_path / "absent.json"))


def test_what_a_pool_does_not_hold_is_refused(study, monkeypatch):
    from fot.core.policy import Need
    from fot.methods.spec import Spec

    monkeypatch.setattr(Spec, "needs", frozenset({Need.LOGPROBS}))
    with pytest.raises(ConfigError, match="token confidences"):
        study.evaluate(parse("fot"))
