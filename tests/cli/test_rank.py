"""`fot rank`, and what `fot simulate` makes of it."""

import json
import re

import pytest

from fot.cli.engines import EngineFlags
from fot.cli.main import main
from fot.engines.base import Capabilities, Chunk
from fot.errors import EngineUnavailable


class Judge:
    """Thinks that a problem is as hard as the number in it. It answers in 12 tokens, to prompts of 100."""

    name = "judge"

    def __init__(self, *, deaf=False, mute=False):
        self.asked = 0
        self.deaf = deaf
        self.mute = mute

    async def capabilities(self):
        return Capabilities(exact_counts=True, token_ends=False, seeds=True, abort="none", resume=False)

    async def stream(self, request):
        self.asked += 1
        if self.deaf:
            raise EngineUnavailable("gone", retryable=False)
        named = re.findall(r"^Q(\d+): hard (\d+)$", request.messages[0]["content"], re.M)
        order = ", ".join(f"Q{label}" for label, _ in sorted(named, key=lambda one: int(one[1])))
        yield Chunk(text="Hm.</think>" + ("pass" if self.mute else order), tokens=12, prompt_tokens=100)
        yield Chunk(text="", tokens=12, finish_reason="stop", prompt_tokens=100)

    async def abort(self, request_id): ...
    async def counters(self): ...
    async def close(self): ...


@pytest.fixture
def pool(tmp_path):
    """Twelve problems; the higher the number, the later rollouts agree."""
    rows = [
        {
            "model": "m", "benchmark": "b", "problem_id": f"p{at}", "problem": f"hard {at}", "gold": "1",
            "rollout_id": r, "text": f"\\boxed{{{1 if at < 10 else r % 2}}}", "n_tokens": 1000,
        }
        for at in range(12)
        for r in range(8)
    ]  # fmt: skip
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture
def judged_by(monkeypatch):
    def use(judge):
        monkeypatch.setattr(EngineFlags, "options", lambda self: {"engine": judge})
        return judge

    return use


def simulated(pool, capsys, *options):
    capsys.readouterr()
    assert main(["simulate", str(pool), "--json", "--policy", "dsc:ranking=given,draws=1", *options]) == 0
    told = capsys.readouterr()
    return json.loads(told.out)["methods"][0], told.err


def test_a_model_ranks_and_dsc_charges_it(pool, tmp_path, judged_by, capsys):
    judge, out = judged_by(Judge()), tmp_path / "order.jsonl"
    assert main(["rank", str(pool), "--out", str(out), "--batch", "8", "--rounds", "5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["problems"], told["calls"], told["dropped"], told["tokens"]) == (12, 10, 0, 120)
    rows = {row["problem_id"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert rows["p0"]["difficulty"] == 0
    assert rows["p11"]["difficulty"] == 7
    assert judge.asked == 10

    assert main(["rank", str(pool), "--out", str(out)]) == 0
    assert judge.asked == 10  # all calls were made already

    free, said = simulated(pool, capsys)
    assert "no difficulty is given" in said
    charged, said = simulated(pool, capsys, "--ranking", str(out))
    assert "length" not in said
    # Two hard problems of 8 rollouts, one of 4 that ends the walk, nine of 1; and 120 tokens of judging.
    assert charged["savings"]["tokens"] == pytest.approx(1 - (2 * 8 + 4 + 9 + 0.12) / 96)
    assert free["savings"]["tokens"] != charged["savings"]["tokens"]


def test_calls_that_fail_leave_no_ranking(pool, tmp_path, judged_by, capsys):
    judged_by(Judge(deaf=True))
    assert main(["rank", str(pool), "--out", str(tmp_path / "order.jsonl")]) == 4
    assert "calls are missing" in capsys.readouterr().err
    assert not (tmp_path / "order.jsonl").exists()


def test_answers_that_say_nothing_are_told(pool, tmp_path, judged_by, capsys):
    judged_by(Judge(mute=True))
    out = tmp_path / "order.jsonl"
    assert main(["rank", str(pool), "--out", str(out)]) == 4
    assert "12 problems have no place" in capsys.readouterr().err
    assert "no difficulty is given" in simulated(pool, capsys, "--ranking", str(out))[1]


def test_what_cannot_be_ranked_is_refused(pool, tmp_path, capsys):
    silent = tmp_path / "silent.jsonl"
    silent.write_text(pool.read_text().replace('"problem": "hard 3"', '"problem": null'))
    assert main(["rank", str(silent), "--out", str(tmp_path / "o")]) == 2
    assert "p3" in capsys.readouterr().err
    one = tmp_path / "one.jsonl"
    one.write_text("".join(line for line in pool.read_text().splitlines(keepends=True) if '"p3"' in line))
    assert main(["rank", str(one), "--out", str(tmp_path / "o")]) == 2
    assert "two problems" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "complaint"), [("{}\n", "line 1"), ("no\n", "line 1")])
def test_a_file_that_is_no_ranking_is_named(pool, tmp_path, capsys, text, complaint):
    file = tmp_path / "order.jsonl"
    file.write_text(text)
    assert main(["simulate", str(pool), "--ranking", str(file)]) == 2
    assert complaint in capsys.readouterr().err
    assert main(["simulate", str(pool), "--ranking", str(tmp_path / "none")]) == 2
