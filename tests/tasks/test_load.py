"""Benchmarks are read out of files of their published form; the problems here are ours."""

import csv
import hashlib
import json
import sys
import types

import pytest

from fot.cli.main import main
from fot.core.commit import DETECTORS
from fot.errors import ConfigError, MissingExtra
from fot.grading.base import GRADERS
from fot.grading.code_tests import read_tests
from fot.tasks.catalog import BENCHMARKS, benchmark
from fot.tasks.load import TaskError, load, load_own


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_every_benchmark_names_things_that_exist():
    assert {"aime24", "aime25", "amc23", "math500", "gsm8k", "gpqa-diamond", "lcb-lite-v6"} <= set(BENCHMARKS)
    for spec in BENCHMARKS.values():
        assert spec.detector in DETECTORS
        assert spec.grader in GRADERS
        assert "{problem}" in spec.prompt
        if spec.source is not None:
            assert len(spec.source.revision) == 40
            assert int(spec.source.revision, 16)
            assert spec.source.sha256 is None or len(spec.source.sha256) == 64


def test_an_unknown_benchmark_is_met_with_a_guess():
    with pytest.raises(ConfigError, match=r"Did you mean 'aime2[45]'"):
        benchmark("aime2")


@pytest.mark.parametrize("written", ["AIME24", "aime_24", "GPQA", "GPQA-Diamond", "MATH-500", "LCB-Lite-v6"])
def test_names_are_taken_as_they_are_written_elsewhere(written):
    assert benchmark(written).name in BENCHMARKS


def test_math_rows(tmp_path):
    rows = [
        {"id": 7, "problem": r"What is $\frac{1}{2}+{options}$?", "answer": "033", "solution": "..."},
        {"problem": "And {problem}?", "answer": 27.0},
        {"question": "Third?", "answer": r"\frac{1}{2}"},
    ]
    loaded = load("math500", file=write_rows(tmp_path / "own.jsonl", rows))
    assert [item.problem_id for item in loaded.items] == ["7", "1", "2"]
    assert [item.gold for item in loaded.items] == ["033", "27", r"\frac{1}{2}"]
    assert loaded.items[0].prompt.startswith(r"What is $\frac{1}{2}+{options}$?")
    assert loaded.items[0].prompt.endswith(r"\boxed{}.")
    assert loaded.items[1].prompt.startswith("And {problem}?")


def test_gsm8k_rows(tmp_path):
    rows = [{"question": "How many?", "answer": "First #### not this.\nThen <<2*500=1000>>.\n#### 1,000"}]
    assert load("gsm8k", file=write_rows(tmp_path / "own.jsonl", rows)).items[0].gold == "1000"


def gpqa_file(path, number=20):
    with path.open("w", encoding="utf-8", newline="") as file:
        names = ["Record ID", "Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3))]
        writer = csv.DictWriter(file, [*names, "Canary String"])
        writer.writeheader()
        for n in range(number):
            texts = [f"rec{n}", f"Question {n},\nwith a line break?", f"right {n}", "w1", "w2", " w3 "]
            writer.writerow(dict(zip(names, texts, strict=True)))
    return path


def test_gpqa_options_are_shuffled_by_a_seed_that_is_recorded(tmp_path):
    file = gpqa_file(tmp_path / "gpqa.csv")
    first, again, other = (load("gpqa-diamond", file=file, seed=seed) for seed in (0, 0, 1))
    assert first.items == again.items
    assert first.origin.seed == 0
    assert [item.gold for item in first.items] != [item.gold for item in other.items]
    assert set("".join(item.gold for item in first.items)) == set("ABCD")
    for place, item in enumerate(first.items):
        assert sorted(item.options) == sorted([f"right {place}", "w1", "w2", "w3"])
        assert item.options["ABCD".index(item.gold)] == f"right {place}"
        assert f"{item.gold}) right {place}" in item.prompt
    # A problem's order is its own: it does not depend on which others are loaded.
    assert load("gpqa-diamond", file=gpqa_file(tmp_path / "few.csv", 3)).items == first.items[:3]


def test_livecodebench_rows_carry_their_tests(tmp_path):
    tests = [{"input": "1", "output": "2", "testtype": "stdin"}]
    rows = [
        {
            "question_id": "abc_a", "question_content": "Add one.", "starter_code": "",
            "public_test_cases": json.dumps(tests), "private_test_cases": json.dumps(tests), "metadata": "{}",
        },
        {
            "question_id": "1234", "question_content": "Add one.",
            "starter_code": "class Solution:\n    def f(self, a):\n", "public_test_cases": json.dumps(tests),
            "private_test_cases": "[]", "metadata": json.dumps({"func_name": "f"}),
        },
    ]  # fmt: skip
    loaded = load("lcb-lite-v6", file=write_rows(tmp_path / "own.jsonl", rows))
    assert read_tests(loaded.items[0].gold).inputs == ("1", "1")
    assert read_tests(loaded.items[1].gold).function == "f"
    assert "standard input" in loaded.items[0].prompt
    assert "def f(self, a):" in loaded.items[1].prompt


def test_arithmetic_needs_no_file():
    loaded = load("arithmetic-hard", seed=3, limit=5)
    assert len(loaded.items) == 5
    assert loaded.items == load("arithmetic-hard", seed=3, limit=5).items
    assert loaded.items != load("arithmetic-hard", seed=4, limit=5).items
    assert len({item.problem_id for item in load("arithmetic-easy").items}) == 100


def test_a_file_of_one_s_own_is_a_benchmark(tmp_path):
    rows = [
        {"problem": "One?", "gold": "1"},
        {"problem_id": "x", "problem": "Two?", "gold": 2, "prompt": "Say two."},
        {"problem": "Which?", "gold": "b", "options": ["a", "b"]},
        {"problem": "Which?", "gold": "A", "options": ["yes", "no"]},
    ]
    loaded = load_own(write_rows(tmp_path / "mine.jsonl", rows), prompt="Q: {problem}\nA:", grader="exact")
    assert loaded.benchmark.name == "mine"
    assert loaded.benchmark.grader == "exact"
    assert [item.prompt for item in loaded.items[:2]] == ["Q: One?\nA:", "Say two."]
    assert [item.gold for item in loaded.items] == ["1", "2", "B", "A"]
    assert [item.problem_id for item in loaded.items] == ["0", "x", "2", "3"]
    assert len(load_own(write_rows(tmp_path / "mine.jsonl", rows[:2]), limit=1).items) == 1


def test_a_file_of_multiple_choice_is_asked_and_judged_as_such(tmp_path):
    rows = [{"problem": "Which?", "gold": "b", "options": ["a", "b"]}]
    loaded = load_own(write_rows(tmp_path / "mine.jsonl", rows))
    assert (loaded.benchmark.detector, loaded.benchmark.grader, loaded.items[0].gold) == ("choice", "choice", "B")
    assert "A) a\nB) b" in loaded.items[0].prompt
    plain = load_own(write_rows(tmp_path / "mine.jsonl", [{"problem": "One?", "gold": "1"}]))
    assert (plain.benchmark.detector, plain.benchmark.grader) == ("boxed", "math")
    with pytest.raises(ConfigError, match="1 of 2 problems have options"):
        load_own(write_rows(tmp_path / "mine.jsonl", [*rows, {"problem": "One?", "gold": "1"}]))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"problem": "One?"}\n', "row 1 has no field 'gold'"),
        ('{"gold": "1"}\n', "row 1 has no field 'problem'"),
        ('{"problem": 1, "gold": "1"}\n', "field 'problem' is not text"),
        ("nonsense\n", "line 1 is not JSON"),
        ("[1]\n", "line 1 is not a JSON object"),
        ('{"problem": "?", "gold": "c", "options": ["a", "b"]}\n', "neither an option nor its letter"),
        ('{"problem": "?", "gold": "a", "options": "ab"}\n', "not a list of texts"),
        ('{"problem_id": 1, "problem": "?", "gold": "a"}\n' * 2, "two problems are called '1'"),
    ],
)
def test_rows_that_are_no_problems_are_refused(tmp_path, content, says):
    file = tmp_path / "mine.jsonl"
    file.write_text(content, encoding="utf-8")
    with pytest.raises((ConfigError, TaskError), match=says):
        load_own(file)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(TaskError, match="no file of rows"):
        load_own(tmp_path / "a.txt")
    with pytest.raises(TaskError, match="cannot read"):
        load("aime25", file=tmp_path / "absent.jsonl")
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(TaskError, match="is damaged"):
        load_own(tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match=r"no \{problem\}"):
        load_own(write_rows(tmp_path / "b.jsonl", []), prompt="no place")


def test_parquet_rows(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"question": ["One?"], "answer": [27.0], "id": [3]}), tmp_path / "a.parquet")
    assert load("amc23", file=tmp_path / "a.parquet").items[0][:2] == ("3", "One?")
    assert load("amc23", file=tmp_path / "a.parquet").items[0].gold == "27"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub that has one file for every request, and writes down what it was asked."""
    asked = []
    file = write_rows(tmp_path / "hub.jsonl", [{"problem": f"{n}?", "answer": str(n)} for n in range(30)])

    def hf_hub_download(repository, name, *, repo_type, revision):
        asked.append((repository, name, repo_type, revision))
        return str(file)

    module = types.ModuleType("huggingface_hub")
    module.hf_hub_download = hf_hub_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return asked, file


def test_a_benchmark_is_fetched_at_its_pinned_commit_and_checked(hub, monkeypatch):
    asked, file = hub
    source = BENCHMARKS["aime25"].source
    with pytest.raises(TaskError, match="not the file that was pinned"):
        load("aime25")
    assert asked == [(source.repository, source.file, "dataset", source.revision)]
    loaded = load("aime25", revision="0" * 40)
    assert asked[-1][-1] == "0" * 40
    assert loaded.origin.revision == "0" * 40
    assert loaded.origin.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert len(loaded.items) == 30


def test_a_file_of_the_wrong_length_is_refused(hub, monkeypatch):
    _, file = hub
    spec = BENCHMARKS["aime25"]
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    from dataclasses import replace

    monkeypatch.setattr(
        "fot.tasks.load.benchmark", lambda name: replace(spec, source=replace(spec.source, sha256=digest), problems=31)
    )
    with pytest.raises(TaskError, match="has 30 problems, and should have 31"):
        load("aime25")


def test_what_the_hub_refuses_is_told(monkeypatch):
    module = types.ModuleType("huggingface_hub")

    def refuse(*args, **kwargs):
        raise OSError("gated")

    module.hf_hub_download = refuse
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    with pytest.raises(TaskError, match="cannot be had") as refused:
        load("gpqa-diamond")
    assert "HF_TOKEN" in refused.value.hint
    assert "--file" in refused.value.hint
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra):
        load("aime24")


def test_the_command_lists_and_writes(capsys, tmp_path):
    assert main(["tasks"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in BENCHMARKS)
    assert main(["tasks", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "fot.tasks/1"
    assert [entry["name"] for entry in told["benchmarks"]][: len(BENCHMARKS)] == list(BENCHMARKS)
    out = tmp_path / "rows.jsonl"
    assert main(["tasks", "arithmetic-easy", "--limit", "4", "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["problems"], told["grader"], told["revision"]) == (4, "exact", None)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [set(row) for row in rows] == [{"problem_id", "problem", "prompt", "gold", "options"}] * 4
    assert main(["tasks", "--limit", "4"]) == 2
    assert main(["tasks", "arithmetic-easy", "--limit", "0"]) == 2
    assert main(["tasks", "absent.jsonl"]) == 1
    assert "absent.jsonl" in capsys.readouterr().err
    assert main(["tasks", "absent.jsonl", "--revision", "x"]) == 2
    assert main(["tasks", "aime2"]) == 2
    mine = write_rows(tmp_path / "mine.jsonl", [{"problem": "One?", "gold": "1"}])
    capsys.readouterr()
    assert main(["tasks", str(mine)]) == 0
    assert "mine" in capsys.readouterr().out
