"""The files that ship: whole, small, and what the manifest says; the sample pool is fresh and exact."""

import gzip
import hashlib
import json
from itertools import pairwise

import pytest

from fot import reasoner
from fot.errors import EngineError, PoolCorrupt
from fot.tasks.arithmetic import parse_problem, split_of

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def rows():
    with gzip.open(reasoner.sample_pool_path(), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_files_are_those_of_the_manifest():
    reasoner.verify()


def test_the_manifest_names_what_made_the_weights():
    manifest = reasoner.manifest()
    assert manifest["rebuild"]
    assert set(manifest["sha256"]) == {"reasoner.gguf", "sample.jsonl.gz"}
    assert {"documents", "phases", "tokenizer", "parameters"} <= set(manifest["recipe"])


@pytest.mark.parametrize(("name", "error"), [("model_path", EngineError), ("sample_pool_path", PoolCorrupt)])
def test_a_damaged_file_is_refused_with_a_hint(tmp_path, monkeypatch, name, error):
    damaged = tmp_path / getattr(reasoner, name)().name
    damaged.write_bytes(b"damaged")
    monkeypatch.setattr(reasoner, name, lambda: damaged)
    with pytest.raises(error) as caught:
        reasoner.verify()
    assert caught.value.hint


def test_sizes():
    assert reasoner.model_path().stat().st_size <= 8 * MEGABYTE
    assert reasoner.sample_pool_path().stat().st_size <= 3 * MEGABYTE


def test_the_weights_are_a_gguf_with_the_stated_context():
    head = reasoner.model_path().read_bytes()[:4]
    assert head == b"GGUF"
    assert reasoner.CONTEXT_TOKENS == 1024


def test_the_prompt_leaves_room_for_a_whole_rollout(rows):
    longest = max(row["prompt_tokens"] for row in rows)
    assert longest + reasoner.SAMPLING.max_tokens <= reasoner.CONTEXT_TOKENS


def test_the_sample_pool_has_at_least_60_problems_of_32_rollouts(rows):
    by_problem = {}
    for row in rows:
        by_problem.setdefault(row["problem_id"], []).append(row["rollout_id"])
    assert len(by_problem) >= 60
    assert all(ids == list(range(32)) for ids in by_problem.values())


def test_every_recorded_problem_is_unseen_and_its_gold_exact(rows):
    for row in rows:
        problem = parse_problem(row["problem_id"])
        assert split_of(problem) == "test"
        assert (row["problem"], row["gold"]) == (problem.text, problem.gold)


def test_token_ends_are_exact(rows):
    for row in rows:
        ends = row["token_ends"]
        assert len(ends) == row["n_tokens"]
        assert ends[-1] == len(row["text"])
        assert all(a <= b for a, b in pairwise(ends))


def test_nothing_is_boxed_while_thinking(rows):
    assert [row for row in rows if "\\boxed{" in row["text"].partition("</think>")[0]] == []


def test_a_rollout_that_stops_has_answered_and_one_that_is_cut_has_not(rows):
    """Sampling may garble a sentence now and then, so not every last one."""
    stopped = [row for row in rows if row["finish_reason"] == "stop"]
    cut = [row for row in rows if row["finish_reason"] == "length"]
    assert len(stopped) + len(cut) == len(rows)
    assert sum("\\boxed{" in row["text"] for row in stopped) > 0.99 * len(stopped)
    assert all(row["n_tokens"] == reasoner.SAMPLING.max_tokens for row in cut)


def test_the_pool_is_worth_a_vote(rows):
    """A demonstration needs rollouts that are right, wrong and undecided."""
    answers = [row["text"].rpartition("\\boxed{")[2].partition("}")[0] for row in rows]
    right = sum(answer == row["gold"] for answer, row in zip(answers, rows, strict=True)) / len(rows)
    assert 0.35 <= right <= 0.70
    assert any(row["finish_reason"] == "length" for row in rows)


def test_prompt_is_the_question_between_the_control_tokens():
    assert reasoner.prompt("Q?") == "<|user|>Q?<|assistant|><think>\n"


def test_checksums_of_the_manifest_are_sha256(rows):
    digest = hashlib.sha256(reasoner.model_path().read_bytes()).hexdigest()
    assert reasoner.manifest()["sha256"]["reasoner.gguf"] == digest
