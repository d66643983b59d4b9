"""Votes by answer class, on both paths, and grades that are kept beside the pool."""

import json

import pytest

from fot.grading.base import Grade, Judgement
from fot.grading.keys import vote_keys
from fot.methods import parse
from fot.pools.importing import import_rows
from fot.pools.read import Pool
from fot.replay.evaluate import Judge
from fot.replay.sheet import Sheet
from fot.replay.study import choose, cost_model, study_of, winners_merged


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("merging")
    with (folder / "rows.jsonl").open("w") as out:
        for problem, answers in {
            "split": ("3", "3", "1/2", "0.5", "\\frac12"),
            "plain": ("7", "700", "7", "7", "8"),
        }.items():
            for at, answer in enumerate(answers):
                row = {"model": "m", "benchmark": "b", "problem_id": problem, "rollout_id": at, "finish_reason": "stop"}
                row |= {"problem": None, "text": f"so \\boxed{{{answer}}}. Done.", "n_tokens": 9, "gold": "0.5"}
                out.write(json.dumps(row) + "\n")
    return import_rows([folder / "rows.jsonl"], folder / "pool").pool


def test_equal_answers_vote_together_on_every_path(pool):
    parts = Pool(pool).select().parts
    with vote_keys("math") as keys:
        merged, exact = Sheet(Pool(pool), parts, "boxed", keys), Sheet(Pool(pool), parts, "boxed")
        assert list(exact.run(parse("sc")).winners) == ["3", "7"]
        for text in ("sc", "fot:checkpoints=8"):
            fast, plain = merged.run(parse(text)), merged.simulate_plainly(parse(text))
            assert list(fast.winners) == list(plain.winners)
            votes = [fast.outcome(at).verdict.votes for at in range(2)]
            assert sorted(votes[0].values()) == [2, 3]
            assert votes[1] == {"7": 3, "700": 1, "8": 1}


def test_the_report_says_how_often_that_changed_a_winner(pool):
    merging = winners_merged(choose([pool], None), "boxed", "math")
    assert (merging.problems, merging.winners_changed) == (2, 1)


def test_grades_are_kept_beside_the_pool(pool):
    chosen = choose([pool], None)
    study = study_of(chosen, commit="boxed", grader="math", shape=cost_model(None), seed=0, keys="math")
    assert study.evaluate(parse("sc")).correct == 1
    store = chosen.pools[0].path / "grades.sqlite"
    assert store.exists()

    class Never:
        name, version = study._judge._grader.name, study._judge._grader.version

        def grade_all(self, pairs):
            raise AssertionError(f"{pairs} were judged before")

    again = Judge(Never(), store)
    winner = study.sheets[0].run(parse("sc")).winners[0]
    assert again.judge(["0.5"], [winner]) == [Judgement.CORRECT]


def test_what_is_undecided_is_shown(pool, monkeypatch, capsys):
    from fot.cli.main import main
    from fot.grading.exact import ExactGrader

    undecided = Grade(Judgement.UNDECIDED, "for the test")
    monkeypatch.setattr(ExactGrader, "grade_all", lambda self, pairs, progress=None: [undecided for _ in pairs])
    assert main(["simulate", str(pool), "--policy", "sc"]) == 0
    assert "0 (2 undecided)" in capsys.readouterr().out
