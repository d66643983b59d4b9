"""An import that was killed goes on where it was, and makes what it would have made."""

import json
import random
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from fot.pools import importing, write
from fot.pools.importing import ImportReport, import_rows
from fot.pools.read import Pool
from fot.pools.rows import Row
from tests.pools.rows import Fields, row, write_lines

ROWS = 60


@pytest.fixture(autouse=True)
def _small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "GROUP_CHARS", 100)
    monkeypatch.setattr(write, "_RUN_CHUNKS", 1)


def rows(*, shuffled: bool) -> list[Fields]:
    made = [row(f"p{at // 6}", at % 6, f"text {at} " * 10, n_tokens=9, gold="4") for at in range(ROWS)]
    if shuffled:
        random.Random(2).shuffle(made)
    made[10:10] = [{"no": "row"}]
    made[40:40] = [{}, made[3]]
    return made


def as_lines(folder: Path, fields: Iterable[Fields]) -> Path:
    return write_lines(folder / "rows.jsonl", fields)


def as_zstd(folder: Path, fields: Iterable[Fields]) -> Path:
    plain = as_lines(folder, fields)
    packed = folder / "rows.jsonl.zst"
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    return packed


def as_parquet(folder: Path, fields: Iterable[Fields]) -> Path:
    names = ("model", "benchmark", "problem_id", "rollout_id", "text", "n_tokens", "gold")
    pq.write_table(pa.table({name: [one.get(name) for one in fields] for name in names}), folder / "rows.parquet")
    return folder / "rows.parquet"


def as_log(folder: Path, fields: Iterable[Fields]) -> Path:
    """Samples of lm-eval, whose rollouts are numbered as they come."""
    lines = [
        {"doc_id": int(one.get("problem_id", "p0")[1:]), "doc": {"question": "?"}, "target": "4", "filter": "none",
         "arguments": {"gen_args_0": {"arg_0": "?", "arg_1": {}}}, "resps": [[one.get("text", "none")]],
         "filtered_resps": ["4"], "doc_hash": "0", "prompt_hash": "0", "target_hash": "0"}
        for one in fields
    ]  # fmt: skip
    log = folder / "samples_b_2026-01-01T00-00-00.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return log


class Killed(KeyboardInterrupt):
    """Ends an import without letting it clear up."""


def killed_after(count: int, monkeypatch: pytest.MonkeyPatch, files: list[Path], out: Path) -> None:
    """An import that dies with its `count`-th row."""
    admit, seen = importing._Ledger.admit, iter(range(count))

    def dying(ledger: importing._Ledger, one: Row) -> None:
        if next(seen, None) is None:
            raise Killed
        admit(ledger, one)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(importing._Ledger, "admit", dying)
        import_(files, out)


def import_(files: list[Path], out: Path) -> ImportReport:
    log = files[0].name.startswith("samples")
    return import_rows(files, out, names=importing.Names("m", "b") if log else importing.Names())


def bytes_of(pool: Path) -> dict[str, bytes]:
    rejects = pool.with_name("pool.rejects.jsonl")
    made = {path.name: path.read_bytes() for path in pool.iterdir()}
    return made | ({"rejects": rejects.read_bytes()} if rejects.exists() else {})


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("form", [as_lines, as_zstd, as_parquet, as_log])
def test_it_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form, shuffled: bool) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "other").mkdir()
    files = [form(tmp_path, rows(shuffled=shuffled)), form(tmp_path / "other", [row("p99", 7, "more")])]
    whole = import_(files, tmp_path / "pool")
    expected = bytes_of(whole.pool)
    (tmp_path / "pool").rename(tmp_path / "whole")
    before = 0
    for count in (20, 35, 5):
        killed_after(count, monkeypatch, files, tmp_path / "pool")
        assert not (tmp_path / "pool").exists()
        (journal,) = tmp_path.glob(".pool.importing-*/journal.jsonl")
        runs = journal.read_text().splitlines()
        assert len(runs) >= before
        before = len(runs)
    admitted: list[str] = []
    admit = importing._Ledger.admit
    monkeypatch.setattr(
        importing._Ledger, "admit", lambda ledger, one: admitted.append(one.fields.text) or admit(ledger, one)
    )
    report = import_(files, tmp_path / "pool")
    assert bytes_of(report.pool) == expected
    assert report.resumed > 25
    assert report.resumed + len(admitted) <= report.rollouts + 3  # nothing is done twice
    assert (report.rollouts, report.rejected) == (whole.rollouts, whole.rejected)
    assert not list(tmp_path.glob(".pool*"))


def test_runs_in_order_are_the_parts_of_the_pool(tmp_path: Path) -> None:
    pool = Pool.open(import_rows([as_lines(tmp_path, rows(shuffled=False))], tmp_path / "pool").pool)
    assert len(pool.manifest.parts) > 5
    assert [one.rollout_id for one in pool] == [at % 6 for at in range(ROWS)]
    assert [problem.count for problem in pool.problems] == [6] * 10


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = as_lines(tmp_path, rows(shuffled=True))
    first = import_rows([lines], tmp_path / "pool")
    before = bytes_of(first.pool)
    with monkeypatch.context() as patch:
        patch.setattr(importing._Ledger, "admit", lambda *_: pytest.fail("a row is read again"))
        again = import_rows([lines], tmp_path / "pool")
    assert (again.rollouts, again.rejected, again.resumed) == (first.rollouts, first.rejected, first.rollouts)
    part = first.pool / Pool.open(first.pool).manifest.parts[0].file
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    assert import_rows([lines], tmp_path / "pool").resumed == 0
    assert bytes_of(first.pool) == before


@pytest.mark.parametrize("lost", ["journal.jsonl", "run-0.parquet", "rejects"])
def test_where_something_is_missing_it_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    files = [as_lines(tmp_path, rows(shuffled=True))]
    expected = bytes_of(import_rows(files, tmp_path / "pool").pool)
    (tmp_path / "pool").rename(tmp_path / "whole")
    killed_after(45, monkeypatch, files, tmp_path / "pool")
    (stage,) = tmp_path.glob(".pool.importing-*")
    (tmp_path / "pool.rejects.jsonl" if lost == "rejects" else stage / lost).unlink()
    report = import_rows(files, tmp_path / "pool")
    assert report.resumed == 0
    assert bytes_of(report.pool) == expected


def test_other_rows_are_another_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_after(45, monkeypatch, [as_lines(tmp_path, rows(shuffled=False))], tmp_path / "pool")
    report = import_rows([as_lines(tmp_path, rows(shuffled=True)[:30])], tmp_path / "pool")
    assert (report.resumed, report.rollouts) == (0, 29)
    assert not list(tmp_path.glob(".pool*"))
