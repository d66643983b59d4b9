import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fot.cli.main import main
from fot.cli.output import ExitCode
from tests.pools.rows import row, write_lines

Captured = pytest.CaptureFixture[str]


def test_import_then_info(tmp_path: Path, capsys: Captured) -> None:
    rows = [row(f"p{at % 2}", at, n_tokens=6, gold="4", unbiased=at > 0, finish_reason="stop") for at in range(5)]
    rows += [row("p1", 9, "perhaps", model="n", n_tokens=2)]
    out = tmp_path / "pool"
    assert main(["pool", "import", str(write_lines(tmp_path / "r.jsonl", rows)), "--out", str(out)]) == ExitCode.OK
    printed = capsys.readouterr()
    assert "rollouts" in printed.out
    assert not printed.err
    assert main(["pool", "info", str(out), "--json"]) == ExitCode.OK
    summary = json.loads(capsys.readouterr().out)
    expected = {
        "schema": "fot.pool.info/1", "pool": "pool", "format": "fot.pool/2", "synthetic": None, "rejected": 0,
        "models": ["m", "n"], "benchmarks": ["b"], "problems": 3, "rollouts": 6, "biased": 1, "cut": "interpolated",
        "cuts": {"interpolated": 6}, "finish_reasons": {"stop": 5, "unknown": 1}, "estimated_chars_per_token": None,
        "chars_per_token": (5 * 18 + 7) / 32, "kernel": "paper",
    }  # fmt: skip
    assert {name: summary[name] for name in expected} == expected
    assert summary["no_answer"] == {"boxed": 1 / 6, "choice": 1.0, "code": 1.0}
    assert summary["rollouts_per_problem"] == {"mean": 2, "min": 1, "p10": 1.2, "median": 2, "p90": 2.8, "max": 3}
    assert summary["unbiased_per_problem"]["max"] == 2
    assert summary["tokens"]["max"] == 6
    assert summary["density"]["max"] == 1000 / 7
    assert [group["rollouts"] for group in summary["groups"]] == [5, 1]
    assert summary["bytes"] == sum(path.stat().st_size for path in out.glob("rows-*.parquet"))


def test_info_reads_a_row_file_and_prints_tables(tmp_path: Path, capsys: Captured) -> None:
    lines = write_lines(tmp_path / "r.jsonl", [row(), row(model="n"), {}])
    assert main(["pool", "info", str(lines), "--commit", "paper"]) == ExitCode.OK
    printed = capsys.readouterr().out
    for words in ("m, n", "estimated 2 (at 3.5 characters per token)", "paper 0.00%", "rejected at import", "1"):
        assert words in printed
    assert "boxed" not in printed


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    "command",
    [
        "pool import {folder}/r.jsonl --out {pool} --synthetic dice",
        "pool info {pool}",
        "pool index {pool}",
        "grade {pool} --grader exact --out {file}",
        "simulate {pool} --policy sc --per-problem {file}",
        "sweep {pool} --kernels 21",
        "markers fit {pool}",
        "plan {pool} --timing {folder}/timing.json --figure {file}",
        "report {pool} --out {file} --only profile",
    ],
)
def test_what_comes_of_made_up_texts_says_so(tmp_path: Path, capsys: Captured, command: str, as_json: bool) -> None:
    texts = ["Wait, so \\boxed{4}", "perhaps \\boxed{5}", "so \\boxed{4}"] * 20
    rows = [row(f"p{at // 6}", at % 6, text, n_tokens=9, gold="4") for at, text in enumerate(texts)]
    lines = write_lines(tmp_path / "r.jsonl", rows)
    (tmp_path / "timing.json").write_text(
        '{"schema": "fot.timing/1", "knots": [{"batch": 1, "step_s": 1}], "slots": 4}'
    )
    main(["pool", "import", str(lines), "--out", str(tmp_path / "pool"), "--synthetic", "dice"])
    capsys.readouterr()
    places = {"folder": tmp_path, "pool": tmp_path / "pool", "file": tmp_path / "out"}
    words = [word.format(**places) for word in command.split()]
    assert main([*words, *(["--json"] if as_json else [])]) == 0
    said = capsys.readouterr().out
    if command.startswith("pool import") and not as_json:
        return  # the person who said so is told no more than counts
    assert "dice" in said
    if (tmp_path / "out").exists():
        assert "synthetic" in (tmp_path / "out").read_text().lower()


def test_rejected_rows_make_the_result_partial(tmp_path: Path, capsys: Captured) -> None:
    lines = write_lines(tmp_path / "r.jsonl", [row(), {"model": "m"}])
    command = ["pool", "import", str(lines), "--out", str(tmp_path / "pool"), "--rejects", str(tmp_path / "bad")]
    assert main([*command, "--json"]) == ExitCode.PARTIAL
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {
        "schema": "fot.pool.import/1",
        "pool": str(tmp_path / "pool"),
        "problems": 1,
        "rollouts": 1,
        "synthetic": None,
        "resumed": 0,
        "rejected": 1,
        "rejects": str(tmp_path / "bad"),
    }
    assert printed.err == f"note: 1 row was rejected; it is in {tmp_path / 'bad'} with the reason\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["import", "absent", "--out", "pool"], ExitCode.FAILED, "cannot read absent: No such file or directory"),
        (["import", "empty", "--out", "pool"], ExitCode.FAILED, "no rows in empty"),
        (["import", "bad", "--out", "pool"], ExitCode.FAILED, "nothing could be imported from bad"),
        (["import", "good", "--out", "folder"], ExitCode.FAILED, "exists and is not a pool"),
        (["import", "good", "--out", "good/pool"], ExitCode.FAILED, "cannot write in"),
        (["import", "good", "--out", "pool", "--rejects", "good"], ExitCode.FAILED, "one of the files to import"),
        (["import", "good"], ExitCode.USAGE, "--out"),
        (["import", "--out", "pool"], ExitCode.USAGE, "FILES"),
        (["info", "absent"], ExitCode.FAILED, "absent does not exist"),
        (["info", "folder"], ExitCode.FAILED, "folder is not a pool"),
        (["info", "empty"], ExitCode.FAILED, "no rows in empty"),
        (["info", "good", "--commit", "boxe"], ExitCode.USAGE, "Did you mean 'boxed'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_work_is_one_clear_message(
    arguments: list[str],
    code: ExitCode,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(Path("good"), [row()])
    write_lines(Path("empty"), [])
    write_lines(Path("bad"), [{}, {}])
    Path("folder").mkdir()
    Path("folder", "file").touch()
    assert main(["pool", *arguments]) == code
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert printed.err.count("error: ") == 1
    assert "bug" not in printed.err


def test_hostile_files_meet_no_traceback(tmp_path: Path) -> None:
    hostile: dict[str, Any] = {
        "zeros": b"\0" * 100_000,
        "gzip": b"\x1f\x8b" + b"\xff" * 100,
        "zstd": b"\x28\xb5\x2f\xfd" + b"\xff" * 100,
        "parquet": b"PAR1" + b"\xff" * 100 + b"PAR1",
        "braces": b"{" * 1_000_000,
    }
    for name, data in hostile.items():
        (tmp_path / name).write_bytes(data)
        command = [sys.executable, "-m", "fot", "pool", "import", str(tmp_path / name), "--out", str(tmp_path / "pool")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == ExitCode.FAILED, name
        assert done.stderr.startswith("error: nothing could be imported"), name
        assert "Traceback" not in done.stderr
        assert len(done.stderr) < 2_000
    assert not (tmp_path / "pool").exists()
