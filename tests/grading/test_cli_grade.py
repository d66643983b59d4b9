import io
import json
from importlib.util import find_spec

import pytest

from fot.cli.main import main


def run(capsys, *argv):
    code = main(["grade", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_one_pair(capsys):
    code, out, _ = run(capsys, "--grader", "exact", "--gold", "33", "--answer", "033", "--json")
    assert code == 0
    assert json.loads(out) == {"verdict": "correct", "reason": "the same key"}


def test_negative_numbers_are_values_not_flags(capsys):
    code, out, _ = run(capsys, "--grader", "exact", "--gold", "-5", "--answer", "-5", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "correct")


def test_a_file_is_judged_line_by_line_in_order(capsys, tmp_path):
    rows = [("7", "700"), ("7", "7"), ("7", None), (None, "7"), ("7", "7")]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"gold": gold, "answer": answer}) + "\n" for gold, answer in rows))
    code, out, err = run(capsys, str(file), "--grader", "exact", "--json")
    verdicts = [json.loads(line)["verdict"] for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert verdicts == ["wrong", "correct", "no_answer", "undecided", "correct"]
    code, out, err = run(capsys, str(file), "--grader", "exact")
    assert code == 0
    assert len(out.splitlines()) == 6
    assert "5 pairs by exact/2: 2 correct, 1 wrong, 1 no_answer, 1 undecided" in err


def test_pairs_come_through_standard_input_too(capsys, monkeypatch):
    given = b'{"gold": "7", "answer": "7"}\n{"gold": "7", "answer": "8"}\n'
    for arguments in (["-", "--grader", "exact", "--json"], ["--grader", "exact", "--json", "-"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        code, out, _ = run(capsys, *arguments)
        assert (code, [json.loads(line)["verdict"] for line in out.splitlines()]) == (0, ["correct", "wrong"])


def test_bad_rows_are_named_and_keep_their_place(capsys, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_bytes(
        b'{"gold": "1", "answer": "1"}\nnonsense\n\n{"gold": "1"}\n[1]\n{"gold": true, "answer": "1"}\n'
        b'{"gold": 7, "answer": 7, "more": 1}\n{"gold": "\xff", "answer": "1"}\n'
    )
    code, out, err = run(capsys, str(file), "--grader", "exact", "--json")
    assert code == 4
    results = [json.loads(line) for line in out.splitlines()]
    assert [result["verdict"] for result in results] == [
        "correct", "undecided", "undecided", "undecided", "undecided", "correct", "undecided",
    ]  # fmt: skip
    for line in (2, 4, 5, 6, 8):
        assert f"line {line}: " in err
    assert results[2]["reason"] == "line 4: no field 'answer'"


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["--grader", "exact"], 2, "nothing to grade"),
        (["--grader", "exact", "--gold", "1"], 2, "nothing to grade"),
        (["rows.jsonl", "--grader", "exact", "--gold", "1"], 2, "exclude each other"),
        (["--grader", "exat", "--gold", "1", "--answer", "1"], 2, "Did you mean 'exact'"),
        (["--grader", "exact", "--workers", "0", "--gold", "1", "--answer", "1"], 2, "workers is 0"),
        (["--gold", "1", "--answer", "1"], 2, "grader"),
        (["--bogus", "--grader", "exact"], 2, "no such option"),
        (["no-such-file.jsonl", "--grader", "exact"], 1, "no-such-file.jsonl"),
    ],
)
def test_mistakes_are_told(capsys, argv, code, says):
    found, out, err = run(capsys, *argv)
    assert (found, out) == (code, "")
    assert says in err


def test_a_store_carries_grades_over(capsys, tmp_path):
    file, store = tmp_path / "rows.jsonl", tmp_path / "grades"
    file.write_text('{"gold": "1", "answer": "1"}\n{"gold": "1", "answer": "2"}\n')
    first = run(capsys, str(file), "--grader", "exact", "--json", "--store", str(store))
    assert store.exists()
    assert run(capsys, str(file), "--grader", "exact", "--json", "--store", str(store)) == first


def test_without_its_extra_math_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr("fot.grading.math.find_spec", lambda _: None)
    code, out, err = run(capsys, "--grader", "math", "--gold", "1", "--answer", "1")
    assert (code, out) == (1, "")
    assert "pip install 'funnel-of-thoughts[math]'" in err


def test_math_on_the_command_line(capsys):
    if find_spec("math_verify") is None:
        pytest.skip("the extra 'math' is not installed")
    code, out, _ = run(capsys, "--grader", "math", "--gold", r"\frac{1}{2}", "--answer", "0.5", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "correct")
