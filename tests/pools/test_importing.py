"""What goes into a pool comes out of it, and what cannot go in is set aside with its reason."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fot.errors import PoolError
from fot.pools import sources, write
from fot.pools.importing import ImportReport, import_rows
from fot.pools.read import Pool
from fot.pools.rows import BadRow, parse_line
from tests.pools.rows import Fields, Make, row, write_lines

FULL = row(
    problem="what?",
    gold="4",
    n_tokens=3,
    finish_reason="stop",
    token_ends=[1, 1, 18],
    seed=2**63 - 1,
    prompt_tokens=7,
    source="run 1",
    unbiased=False,
    mood="é𝔘\u0000",
    nested={"a": [1, 2.5, None, {"b": []}]},
)


def compressed(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def as_fields(pool: Pool) -> list[Fields]:
    """The rows of a pool as they would stand in a file, without what is not known."""
    names = ("model", "benchmark", "problem_id", "rollout_id", "text", "problem", "gold", "n_tokens", "finish_reason",
             "token_ends", "seed", "prompt_tokens", "source")  # fmt: skip
    return [
        {name: getattr(one, name) for name in names if getattr(one, name) is not None}
        | ({} if one.unbiased else {"unbiased": False})
        | dict(one.extra)
        for one in pool
    ]


def rejected(report: ImportReport) -> list[dict[str, Any]]:
    if report.rejects is None:
        return []
    return [json.loads(line) for line in report.rejects.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", ["plain", "gzip", "zstd", "two members"])
def test_every_field_survives(tmp_path: Path, kind: str) -> None:
    lines = (json.dumps(FULL) + "\n" + json.dumps(row("p2")) + "\n").encode()
    half = len(json.dumps(FULL)) // 2
    data = {
        "plain": lines,
        "gzip": gzip.compress(lines),
        "zstd": compressed(lines, "zstd"),
        "two members": compressed(lines[:half], "zstd") + compressed(lines[half:], "zstd"),
    }[kind]
    (tmp_path / "rows").write_bytes(data)
    report = import_rows([tmp_path / "rows"], tmp_path / "pool")
    assert (report.rollouts, report.problems, report.rejected, report.rejects) == (2, 2, 0, None)
    assert as_fields(Pool.open(report.pool)) == [FULL, row("p2")]


def test_parquet_and_the_rows_of_a_pool_import_alike(tmp_path: Path, make: Make) -> None:
    pool = make([FULL, row("p2")])
    again = import_rows([pool.rows_paths[0]], tmp_path / "again")
    assert as_fields(Pool.open(again.pool)) == [FULL, row("p2")]
    plain = {**FULL, "nested": {"a": [1.5], "b": {"c": "d"}}}
    pq.write_table(pa.Table.from_pylist([plain]), tmp_path / "other.parquet")
    other = import_rows([tmp_path / "other.parquet"], tmp_path / "other")
    assert as_fields(Pool.open(other.pool)) == [plain]


def test_importing_twice_gives_the_same_bytes(tmp_path: Path, make: Make) -> None:
    first = make([FULL, row("p2")])
    second = import_rows([tmp_path / "rows.jsonl"], tmp_path / "second")
    assert Pool.open(second.pool).manifest.sha256 == first.manifest.sha256


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(st.dictionaries(st.sampled_from([*FULL, "other"]), json_values))
@settings(max_examples=300)
def test_any_object_is_a_row_or_has_a_reason(changes: Fields) -> None:
    line = json.dumps({**FULL, **changes}).encode("utf-8", "surrogatepass")
    try:
        parsed = parse_line(line)
    except BadRow as bad:
        assert str(bad)
    else:
        assert parsed.fields.text == changes.get("text", FULL["text"])


@given(st.binary(max_size=60))
@settings(max_examples=300)
def test_any_bytes_are_a_row_or_have_a_reason(data: bytes) -> None:
    with pytest.raises(BadRow):
        parse_line(data)


BAD = {
    b"": None,
    b"  ": None,
    b"{": "not JSON",
    b"[1]": "Expected `object`",
    b"null": "Expected `object`",
    b"[" * 100_000: "Expected `object`",
    b'{"x": ' + b"[" * 100_000 + b"}": "nested too deeply",
    b'{"model": "m"}': "missing required field `benchmark`",
    json.dumps(row(rollout_id="0")).encode(): "Expected `int`, got `str` in field `rollout_id`",
    json.dumps(row(rollout_id=-1)).encode(): "in field `rollout_id`",
    json.dumps(row(rollout_id=True)).encode(): "in field `rollout_id`",
    json.dumps(row(rollout_id=2**70)).encode(): "in field `rollout_id`",
    json.dumps(row(text=None)).encode(): "Expected `str`, got `null` in field `text`",
    json.dumps(row(gold=4)).encode(): "in field `gold`",
    json.dumps(row(n_tokens=-1)).encode(): "Expected `int` >= 0 in field `n_tokens`",
    json.dumps(row(n_tokens=1.5)).encode(): "in field `n_tokens`",
    json.dumps(row(seed=2**64)).encode(): "in field `seed`",
    json.dumps(row(finish_reason="done")).encode(): "'done' in field `finish_reason`",
    json.dumps(row(token_ends=[2, 1])).encode(): "go backwards",
    json.dumps(row(token_ends=[1, 99])).encode(): "beyond the 18 characters",
    json.dumps(row(token_ends=[1, "2"])).encode(): "in field `token_ends",
    json.dumps(row(token_ends=[-1])).encode(): "in field `token_ends",
    json.dumps(row(token_ends=[1], n_tokens=2)).encode(): "n_tokens is 2, but token_ends has 1",
    json.dumps(row(text="\ud800")).encode(): "lone surrogate",
    json.dumps(row(other="\udfff")).encode(): "lone surrogate",
    json.dumps(row(text="~")).encode().replace(b"~", b"\xff"): "not UTF-8",
    json.dumps(row(other="~")).encode().replace(b"~", b"\xff"): "not UTF-8",
    json.dumps(row(text="~")).encode().replace(b"~", b"\x00"): "not JSON",
    b"\x00" * 50: "not JSON",
}


@pytest.mark.parametrize(("line", "reason"), BAD.items(), ids=[str(at) for at in range(len(BAD))])
def test_a_bad_row_is_set_aside_and_the_import_goes_on(tmp_path: Path, line: bytes, reason: str | None) -> None:
    good = [json.dumps(row(rollout_id=at)).encode() for at in (0, 1)]
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join([good[0], line, good[1]]))
    report = import_rows([tmp_path / "rows.jsonl"], tmp_path / "pool")
    assert report.rollouts == 2
    assert Pool.open(report.pool).manifest.rejected == report.rejected == (reason is not None)
    for entry in rejected(report):
        assert (entry["file"], entry["line"]) == (str(tmp_path / "rows.jsonl"), 2)
        assert reason is not None
        assert reason in entry["reason"]
        assert entry["row"] == line.decode("utf-8", "backslashreplace")


def test_rows_that_cannot_stand_beside_others(tmp_path: Path) -> None:
    rows = [
        row(gold="4", problem=None),
        row(),
        row(rollout_id=1, gold="5"),
        row(rollout_id=2, problem="what?", x=1),
        row(rollout_id=3, problem="who?"),
        row("p2", gold="5", problem="who?"),
    ]
    report = import_rows([write_lines(tmp_path / "rows.jsonl", rows)], tmp_path / "pool", rejects=tmp_path / "bad")
    assert report.rejects == tmp_path / "bad"
    assert [(entry["line"], entry["reason"]) for entry in rejected(report)] == [
        (2, "rollout 0 of problem p1 is there already"),
        (3, "field `gold` differs from an earlier row of problem p1"),
        (5, "field `problem` differs from an earlier row of problem p1"),
    ]
    assert json.loads(rejected(report)[1]["row"]) == rows[2]
    problems = Pool.open(report.pool).problems
    assert [(one.gold, one.problem, one.count) for one in problems] == [("4", "what?", 2), ("5", "who?", 1)]


def test_a_half_written_last_line(tmp_path: Path) -> None:
    whole = json.dumps(row())
    (tmp_path / "rows.jsonl").write_text(whole + "\n" + whole[: len(whole) // 2])
    (entry,) = rejected(import_rows([tmp_path / "rows.jsonl"], tmp_path / "pool"))
    assert entry["line"] == 2
    assert "half-written" in entry["reason"]


def test_windows_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(row()).encode() + b"\r\n\r\n")
    report = import_rows([tmp_path / "rows.jsonl"], tmp_path / "pool")
    assert (report.rollouts, report.rejected) == (1, 0)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_compressed_file_that_ends_early(tmp_path: Path, codec: str) -> None:
    random.seed(1)
    texts = ["".join(random.choices("abcdefgh ", k=3000)) for _ in range(200)]
    data = compressed(
        "".join(json.dumps(row(rollout_id=at, text=text)) + "\n" for at, text in enumerate(texts)).encode(), codec
    )
    (tmp_path / "rows").write_bytes(data[: len(data) * 2 // 3])
    report = import_rows([tmp_path / "rows"], tmp_path / "pool")
    assert [one.text for one in Pool.open(report.pool)] == texts[: report.rollouts]
    assert 0 < report.rollouts < len(texts)
    assert "damaged or ends early" in rejected(report)[-1]["reason"]


def test_parquet_rows_have_reasons_too(tmp_path: Path) -> None:
    rows = [row(finish_reason=None), row(rollout_id=None), row(rollout_id=2, finish_reason="x"), row(rollout_id=3)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    report = import_rows([tmp_path / "rows.parquet"], tmp_path / "pool")
    assert report.rollouts == 2
    assert [entry["line"] for entry in rejected(report)] == [2, 3]


def test_parquet_with_text_that_is_none(tmp_path: Path) -> None:
    broken = pa.array([b"ok", b"\xff\xfe"], pa.binary()).view(pa.string())
    table = pa.Table.from_pylist([row(), row(rollout_id=1)]).set_column(4, "text", broken)
    pq.write_table(table, tmp_path / "rows.parquet")
    report = import_rows([tmp_path / "rows.parquet"], tmp_path / "pool")
    assert report.rollouts == 1
    assert "not UTF-8" in rejected(report)[0]["reason"]


def test_parquet_without_a_column_or_cut_short(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([row()])
    pq.write_table(table.drop_columns("text"), tmp_path / "lacks.parquet")
    with pytest.raises(PoolError, match=r"nothing could be imported .* columns are missing: text"):
        import_rows([tmp_path / "lacks.parquet"], tmp_path / "pool")
    pq.write_table(table, tmp_path / "cut.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "cut.parquet").read_bytes()[:-50])
    with pytest.raises(PoolError, match="Parquet file is damaged"):
        import_rows([tmp_path / "cut.parquet"], tmp_path / "pool")
    assert not (tmp_path / "pool").exists()


def test_a_text_of_fifty_megabytes(make: Make) -> None:
    text = "Wait, é " * (50 * 2**20 // 9)
    pool = make([row(), row(rollout_id=1, text=text), row(rollout_id=2)])
    assert pool.texts(pool.select().rows) == [row()["text"], text, row()["text"]]


def test_a_line_that_is_too_long_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST_LINE", 3000)
    monkeypatch.setattr(sources, "_BLOCK", 1000)
    rows = [row(), row(rollout_id=1, text="x" * 9000), row(rollout_id=2, text="y" * 2000), row(rollout_id=3)]
    report = import_rows([write_lines(tmp_path / "rows.jsonl", rows)], tmp_path / "pool")
    assert [entry["line"] for entry in rejected(report)] == [2]
    assert [one.rollout_id for one in Pool.open(report.pool)] == [0, 2, 3]


@pytest.mark.parametrize("chunk", [1, 60, 10**9])
def test_rows_in_any_order_come_out_in_the_order_of_a_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(write, "GROUP_CHARS", chunk)
    rows = [
        row(f"p{problem}", rollout, f"{problem} {rollout}", n_tokens=5) for rollout in range(7) for problem in range(5)
    ]
    random.Random(chunk).shuffle(rows)
    report = import_rows([write_lines(tmp_path / "rows.jsonl", rows)], tmp_path / "pool")
    pool = Pool.open(report.pool)
    first_seen = list(dict.fromkeys(one["problem_id"] for one in rows))
    assert [problem.problem_id for problem in pool.problems] == first_seen
    assert as_fields(pool) == sorted(rows, key=lambda one: (first_seen.index(one["problem_id"]), one["rollout_id"]))
    assert sorted(path.name for path in report.pool.iterdir()) == [".lock", "manifest.json", pool.rows_paths[0].name]


def test_several_files_are_one_pool(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a.jsonl", [row(), row("p2")])
    second = write_lines(tmp_path / "b.jsonl", [row(rollout_id=1), row("p2")])
    done: list[int] = []
    report = import_rows([first, second], tmp_path / "pool", progress=done.append)
    assert (report.rollouts, report.problems, report.rejected) == (3, 2, 1)
    assert (rejected(report)[0]["file"], rejected(report)[0]["line"]) == (str(second), 2)
    assert done[-1] == first.stat().st_size + second.stat().st_size


Break = Callable[[Path], Path]


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: folder / "absent", "cannot read .*absent: No such file"),
        (lambda folder: folder, "is a directory"),
        (lambda folder: write_lines(folder / "empty.jsonl", []), "no rows in .*empty"),
        (lambda folder: write_lines(folder / "bad.jsonl", [{}]), "nothing could be imported .*: 1 rejected.* line 1: "),
    ],
)
def test_when_nothing_can_be_imported_there_is_no_pool(tmp_path: Path, prepare: Break, message: str) -> None:
    source = prepare(tmp_path)
    with pytest.raises(PoolError, match=message):
        import_rows([source], tmp_path / "pool")
    assert not (tmp_path / "pool").exists()
    assert not list(tmp_path.glob(".*"))


def test_when_no_row_will_do_the_error_names_what_a_row_needs(tmp_path: Path) -> None:
    with pytest.raises(PoolError) as told:
        import_rows([write_lines(tmp_path / "odd.jsonl", [{"model": "m", "completion": "4"}])], tmp_path / "pool")
    assert told.value.hint.endswith(
        "a row is one JSON object on a line, with model, benchmark, problem_id, rollout_id, text"
    )


def test_a_file_of_rejects_does_not_outlive_its_import(tmp_path: Path) -> None:
    bad = import_rows([write_lines(tmp_path / "rows.jsonl", [row(), {}])], tmp_path / "pool")
    assert bad.rejects is not None
    assert bad.rejects.exists()
    import_rows([write_lines(tmp_path / "rows.jsonl", [row()])], tmp_path / "pool")
    assert not bad.rejects.exists()


def test_the_rejects_do_not_overwrite_what_is_imported(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "rows.jsonl", [row()])
    with pytest.raises(PoolError, match="one of the files to import"):
        import_rows([lines], tmp_path / "pool", rejects=lines)
    assert lines.exists()
