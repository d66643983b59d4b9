"""Logs of other harnesses become pools, and pools logs: what they say survives, and what is no rollout is named."""

import json
import shutil
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fot.cli.main import main
from fot.cli.output import ExitCode
from fot.errors import ConfigError, FotError, PoolError
from fot.pools.exporting import export_log, export_rows
from fot.pools.importing import ImportReport, import_rows
from fot.pools.logs import HARNESSES, Names
from fot.pools.logs.entry import reference
from fot.pools.read import Pool
from tests.pools.rows import Fields, Make, row, write_lines

LOGS = Path(__file__).with_name("logs")
SAMPLES = LOGS / "samples_sums_2026-11-19T06-12-16.088434.jsonl"
DATE = "2026-11-19T06-12-59.575144"


def imported(tmp_path: Path, *files: Path, **options: Any) -> tuple[Pool, ImportReport]:
    report = import_rows(files, tmp_path / "pool", **options)
    return Pool.open(report.pool), report


def reasons(report: ImportReport) -> list[str]:
    assert report.rejects is not None
    return [json.loads(line)["reason"] for line in report.rejects.read_text(encoding="utf-8").splitlines()]


def test_samples_of_lm_eval(tmp_path):
    pool, report = imported(tmp_path, SAMPLES)
    assert (report.problems, report.rollouts, report.rejected) == (3, 12, 0)  # 3 documents x 4 repeats, one filter
    first = next(iter(pool))
    assert first.key == ("acme/toy-7b", "sums", "0")
    assert first.text == "<think>\nWait, perhaps 3.\n</think>\n\nSo \\boxed{10}."
    assert (first.problem, first.gold) == ("What is 2 + 3? Put the answer into \\boxed{}.", "5")
    assert (first.n_tokens, first.cut, first.source) == (None, "estimated", SAMPLES.name)
    assert [one.rollout_id for one in pool] == [0, 1, 2, 3] * 3


def test_a_log_of_inspect(tmp_path):
    pool, report = imported(tmp_path, LOGS / "inspect.eval")
    assert (report.problems, report.rollouts, report.rejected) == (2, 6, 0)
    one = next(iter(pool))
    assert one.key == ("mockllm/model", "sums", "a")
    assert one.text == "Wait, perhaps 1. " * 12 + "</think>So \\boxed{5}."
    assert (one.problem, one.gold) == ("What is 2 + 3? " + "Think well. " * 12, "5")
    assert (one.n_tokens, one.prompt_tokens, one.unbiased) == (41, 11, True)
    assert Counter(each.finish_reason for each in pool) == {"stop": 5, "length": 1}
    assert [each.problem_id for each in pool] == ["a"] * 3 + ["2"] * 3  # by the data, not by who ended first


def test_details_of_lighteval(tmp_path):
    place = tmp_path / "details" / "acme" / "toy-7b" / DATE
    place.mkdir(parents=True)
    shutil.copy(LOGS / "lighteval.parquet", place / f"details_sums_{DATE}.parquet")
    pool, report = imported(tmp_path, place / f"details_sums_{DATE}.parquet")
    assert (report.problems, report.rollouts, report.rejected) == (2, 6, 0)
    last = list(pool)[-1]
    assert last.key == ("acme/toy-7b", "sums", "1")
    assert (last.text, last.n_tokens) == ("<think>Wait, perhaps 2.</think> \\boxed{5}", 11)
    assert (last.problem, last.gold) == ("What is 3+3?", "6")


def test_several_runs_of_one_task_are_numbered_on(tmp_path):
    again = tmp_path / "again.eval"
    shutil.copy(LOGS / "inspect.eval", again)
    pool, report = imported(tmp_path, LOGS / "inspect.eval", again)
    assert (report.problems, report.rollouts) == (2, 12)
    assert [one.rollout_id for one in pool] == [*range(6)] * 2


def test_a_name_that_no_log_tells_must_be_said(tmp_path):
    with pytest.raises(PoolError, match="does not say of which model") as error:
        imported(tmp_path, LOGS / "lighteval.parquet")
    assert error.value.hint == "say it with --model NAME"
    renamed = shutil.copy(SAMPLES, tmp_path / "mine.jsonl")
    with pytest.raises(PoolError, match="of which benchmark"):
        imported(tmp_path, renamed, names=Names(model="m"))
    pool, _ = imported(tmp_path, renamed, names=Names(model="m", benchmark="b"))
    assert {one.key[:2] for one in pool} == {("m", "b")}
    with pytest.raises(PoolError, match="no log of another harness"):
        imported(tmp_path, write_lines(tmp_path / "rows", [row()]), names=Names(model="m"))
    with pytest.raises(ConfigError, match=r"unknown format 'lmeval'\. Did you mean 'lm-eval'"):
        imported(tmp_path, SAMPLES, form="lmeval")


FULL = [
    row("1/a", 0, "Wait.</think>\n\\boxed{4}", problem="2+2?", gold="4", n_tokens=3, finish_reason="stop",
        token_ends=[2, 5, 23], seed=7, prompt_tokens=9, source="run 1", mood={"é": [1, None]}, none=None),
    row("1/a", 3, "So \\boxed{5}", problem="2+2?", gold="4", n_tokens=3, finish_reason="length", unbiased=False),
    row("2", 0, "<think>no end", model="org/n"),
    row("2", 1, "a</think>b</think>c", model="org/n", n_tokens=2),
    row("2", 2, "</think>b", model="org/n"),
    row("2", 3, "a</think>", model="org/n"),
]  # fmt: skip


@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize("grader", [None, "exact"])
def test_a_pool_goes_out_and_comes_back(tmp_path: Path, make: Make, harness: str, grader: str | None) -> None:
    pool = make(FULL)
    judged = {(one.key, one.rollout_id): ("4", one.rollout_id == 0) for one in pool} if grader else {}
    files = export_log(pool, tmp_path / "logs", harness, judged, grader)
    assert len(files) == 2
    back = Pool.open(import_rows(files, tmp_path / "back").pool)
    ours, theirs = (export_rows(one, tmp_path / name) for one, name in ((pool, "ours"), (back, "theirs")))
    assert ours.read_bytes() == theirs.read_bytes()
    lines = [json.loads(line) for line in ours.read_text(encoding="utf-8").splitlines()]
    assert [{name: line[name] for name in given} for line, given in zip(lines, FULL, strict=True)] == FULL


def test_scores_are_where_each_harness_has_them(tmp_path: Path, make: Make) -> None:
    pool = make([row("1", at, text, gold="4") for at, text in enumerate(["\\boxed{4}", "\\boxed{5}"])])
    judged = {(one.key, one.rollout_id): (one.text[7], one.rollout_id == 0) for one in pool}
    (samples,) = export_log(pool, tmp_path / "l", "lm-eval", judged, "exact/1")
    sample = json.loads(samples.read_text(encoding="utf-8"))
    assert (sample["filtered_resps"], sample["metrics"], sample["correct"]) == ([["4", "5"]], ["correct"], 0.5)
    (log,) = export_log(pool, tmp_path / "i", "inspect", judged, "exact/1")
    with zipfile.ZipFile(log) as archive:
        summaries = json.loads(archive.read("summaries.json"))
        assert [one["scores"]["correct"]["value"] for one in summaries] == ["C", "I"]
        results = json.loads(archive.read("header.json"))["results"]
    assert results["scores"][0]["metrics"]["accuracy"]["value"] == 0.5
    (details,) = export_log(pool, tmp_path / "d", "lighteval", judged, "exact/1")
    assert pq.read_table(details)["metric"].to_pylist() == [{"correct": 0.5}]


def sample(**others: Any) -> Fields:
    message = {"role": "assistant", "content": "Hm.</think>7"}
    output = {"choices": [{"message": message, "stop_reason": "stop"}], "usage": {"output_tokens": 5}}
    return {"id": 1, "epoch": 1, "input": "?", "target": "7", "messages": [], "output": output, **others}


def inspected(tmp_path: Path, samples: list[Fields], status: str = "success") -> tuple[Pool, ImportReport]:
    log = {"version": 2, "status": status, "eval": {"model": "m", "task": "t"}, "samples": samples}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log, indent=2), encoding="utf-8")
    return imported(tmp_path, path)


def test_what_is_no_rollout_of_inspect_is_named(tmp_path):
    redacted = sample()["output"] | {"choices": [{"message": {"content": [{"type": "reasoning", "redacted": True}]}}]}
    bad = [
        sample(id=2, error={"message": "boom"}),
        sample(id=3, messages=[{"role": "assistant"}] * 2),
        sample(id=4, output=redacted),
        sample(id=5, invalidation={"author": "x"}),
        sample(id=6, output={"choices": []}),
    ]
    pool, report = inspected(tmp_path, [sample(), *bad])
    assert [one.problem_id for one in pool] == ["1"]
    named = " ".join(reasons(report))
    for words in ("in an error: boom", "2 turns", "redacted", "invalidated", "not a sample of Inspect"):
        assert words in named


def test_attachments_limits_choices_and_nan_are_understood(tmp_path):
    attached = sample(
        input=[{"role": "system", "content": "be kind"}, {"role": "user", "content": [{"text": "attachment://x"}]}],
        choices=["one", "two"],
        attachments={"x": "which?"},
        limit={"type": "token", "limit": 9},
        scores={"s": {"value": float("nan")}},
    )
    pool, _ = inspected(tmp_path, [attached])
    one = next(iter(pool))
    assert (one.problem, one.finish_reason) == ("which?\n\nA) one\nB) two", "length")


@pytest.mark.parametrize("status", ["success", "cancelled", "started", "error"])
def test_a_run_that_did_not_end_is_biased_towards_short_rollouts(tmp_path, status):
    pool, _ = inspected(tmp_path, [sample()], status)
    assert [one.unbiased for one in pool] == [status == "success"]


def test_what_is_no_rollout_of_lm_eval_is_named(tmp_path):
    good = json.loads(SAMPLES.read_text(encoding="utf-8").splitlines()[0])
    likely = good | {
        "doc_id": 7,
        "resps": [["-1.5", "False"]],
        "arguments": {"gen_args_0": {"arg_0": "?", "arg_1": "A"}},
    }
    many = good | {"doc_id": 8, "resps": [["a"], ["b"]]}
    half = good | {"doc_id": 9, "resps": [["\ud800"]]}
    path = tmp_path / SAMPLES.name
    path.write_text("\n".join([json.dumps(one) for one in (good, likely, many, half)] + ["{"]), encoding="utf-8")
    pool, report = imported(tmp_path, path, names=Names(model="m"))
    assert {one.problem_id for one in pool} == {"0"}
    assert [reason.split(":")[0] for reason in reasons(report)] == [
        "not one generated text or several", "not one generated text or several",
        "half of a character (a lone surrogate)", "not one JSON object",
    ]  # fmt: skip


def test_a_chat_prompt_is_the_users_last_word(tmp_path):
    good = json.loads(SAMPLES.read_text(encoding="utf-8").splitlines()[0])
    chat = json.dumps([{"role": "system", "content": "s"}, {"role": "user", "content": "how many?"}])
    good["arguments"] = {"gen_args_0": {"arg_0": [chat], "arg_1": {"until": []}}}
    pool, _ = imported(tmp_path, write_lines(tmp_path / SAMPLES.name, [good]), names=Names(model="m"))
    assert {one.problem for one in pool} == {"how many?"}


def test_details_without_texts_are_rejected(tmp_path):
    doc = {"query": "?", "choices": ["a"], "gold_index": 0, "id": "1", "task_name": "s|t|0", "specific": None}
    said = [
        {"text": [], "output_tokens": [], "reasonings": []},
        {"text": ["7"], "output_tokens": [], "reasonings": ["Hm"]},
    ]
    rows = [{"doc": doc, "model_response": one} for one in said]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    pool, report = imported(tmp_path, tmp_path / "d.parquet", names=Names(model="m"))
    assert [(one.text, one.benchmark) for one in pool] == [("Hm</think>7", "t")]
    assert reasons(report) == ["no generated text: log-likelihoods?"]


@pytest.mark.parametrize("name", ["inspect.eval", "lighteval.parquet", SAMPLES.name])
def test_a_damaged_log_is_one_clear_message(tmp_path, name):
    data = (LOGS / name).read_bytes()
    for size in (0, 10, len(data) // 2, len(data) - 7):
        cut = tmp_path / name
        cut.write_bytes(data[:size])
        try:
            _, report = imported(tmp_path, cut, names=Names(model="m", benchmark="b"))
        except FotError as error:
            assert str(error)
        else:
            assert report.rejected


@pytest.mark.parametrize(
    ("target", "gold"),
    [
        ("7", "7"), (["7"], "7"), (8, "8"), ("(A)", "(A)"), ("so 3 * 400 = 1200\n#### 1,200", "1200"),
        ("hence \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"), (["7", "8"], None), ([], None), (None, None), (" ", None),
    ],
)  # fmt: skip
def test_references(target, gold):
    assert reference(target) == gold


def test_the_commands(tmp_path, capsys):
    pool, logs = tmp_path / "pool", tmp_path / "logs"
    assert main(["pool", "import", str(SAMPLES), "--out", str(pool)]) == ExitCode.OK
    for form in HARNESSES:
        words = [
            "pool",
            "export",
            str(pool),
            "--format",
            form,
            "--out",
            str(logs / form),
            "--grader",
            "exact",
            "--json",
        ]
        capsys.readouterr()
        assert main(words) == ExitCode.OK
        told = json.loads(capsys.readouterr().out)
        assert (told["schema"], told["rollouts"], len(told["files"])) == ("fot.pool.export/1", 12, 1)
        assert Path(told["files"][0]).is_file()
    assert main(["pool", "export", str(pool), "--out", str(tmp_path / "rows.jsonl.zst")]) == ExitCode.OK
    assert Pool.open(tmp_path / "rows.jsonl.zst").manifest.rollouts == 12
    capsys.readouterr()
    assert main(["pool", "export", str(pool), "--out", str(tmp_path / "r"), "--grader", "exact"]) == ExitCode.USAGE
    assert "rows have no scores" in capsys.readouterr().err
    assert main(["pool", "export", str(pool), "--out", str(tmp_path / "r"), "--format", "inspct"]) != ExitCode.OK
    assert "Did you mean 'inspect'" in capsys.readouterr().err
    assert main(["pool", "export", str(pool), "--out", str(pool / "manifest.json" / "x")]) == ExitCode.FAILED
    assert "cannot write" in capsys.readouterr().err
