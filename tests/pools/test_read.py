"""Reading a pool: which rows, in which order, with which texts; and pools that cannot be read."""

import errno
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fot.errors import ConfigError, PoolCorrupt, PoolError, PoolSchemaError
from fot.pools.index import index_of
from fot.pools.read import Pool
from tests.pools.rows import Fields, Make, row, write_lines


def many() -> list[Fields]:
    """Three problems with four, three and two rows; the last of each problem is biased; ids start at 5."""
    sizes = {"p1": 4, "p2": 3, "p3": 2}
    return [
        row(problem, 5 + at, f"{problem} {at}", unbiased=at < size - 1)
        for problem, size in sizes.items()
        for at in range(size)
    ]


def test_select_takes_the_first_unbiased_rows_and_leaves_small_problems_out(make: Make) -> None:
    pool = make(many())
    chosen = pool.select(2)
    assert [pool.texts(part.rows) for part in chosen.parts] == [["p1 0", "p1 1"], ["p2 0", "p2 1"]]
    assert [problem.problem_id for problem in chosen.left_out] == ["p3"]
    assert pool.rollout_id[chosen.rows].tolist() == [5, 6, 5, 6]
    assert [len(part.rows) for part in pool.select().parts] == [3, 2, 1]
    assert [len(part.rows) for part in pool.select(3, include_biased=True).parts] == [3, 3]
    assert pool.select(99).parts == ()
    assert len(pool.select(99).rows) == 0
    assert len(pool.select(99).left_out) == 3
    with pytest.raises(ConfigError, match="at least 1"):
        pool.select(0)


def test_select_by_model_and_benchmark(make: Make) -> None:
    pool = make([row(model="m1"), row(model="m2"), row(model="m2", benchmark="c")])
    assert [part.problem.key for part in pool.select(models=["m2"], benchmarks=["c"]).parts] == [("m2", "c", "p1")]
    assert len(pool.select(models=["m2"]).parts) == 2
    assert pool.select(models=["m3"]).left_out == ()


def test_one_problem_is_model_and_benchmark_and_id(make: Make) -> None:
    names = [("m", "b", "p"), ("m", "b", "q"), ("n", "b", "p"), ("m", "c", "p"), ("m", "b", "p ")]
    pool = make([row(problem, 0, model=model, benchmark=benchmark) for model, benchmark, problem in names])
    assert [problem.key for problem in pool.problems] == names


def test_gold_and_problem_are_those_of_the_first_row_that_has_them(make: Make) -> None:
    pool = make([row(rollout_id=0), row(rollout_id=1, gold="4"), row("p2"), row("p3", gold="5", problem="q")])
    assert [(one.gold, one.problem) for one in pool.problems] == [("4", None), (None, None), ("5", "q")]


def test_texts_in_any_order_and_repeated(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fot.pools.write.GROUP_CHARS", 12)
    pool = make(many())
    assert pool.row_groups > 2
    rows = np.array([8, 0, 4, 0])
    assert pool.texts(rows) == ["p3 1", "p1 0", "p2 0", "p1 0"]
    assert [one.rollout_id for one in pool.rollouts(rows)] == [6, 5, 5, 5]
    assert pool.texts(np.empty(0, np.int64)) == []


def test_texts_read_only_the_row_groups_that_they_need(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fot.pools.write.GROUP_CHARS", 12)
    pool = make(many())
    read: list[list[int]] = []
    original = pool._read

    def watched(columns: list[str], groups: list[int]) -> object:
        read.append(groups)
        return original(columns, groups)

    monkeypatch.setattr(pool, "_read", watched)
    pool.texts(np.array([8]))
    assert read == [[pool.row_groups - 1]]


def test_a_mixed_pool_says_the_least_exact_cut(make: Make) -> None:
    pool = make([row(token_ends=[3]), row(rollout_id=1, n_tokens=9), row(rollout_id=2)])
    assert pool.cut() == "estimated"
    assert [pool.cut(np.arange(size)) for size in (1, 2, 3)] == ["exact", "interpolated", "estimated"]


def test_a_file_of_rows_is_imported_once_for_its_content(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "some.rows.jsonl", [row(), row()])
    first = Pool.open(lines)
    assert (first.name, first.manifest.rejected) == ("some", 1)
    assert tmp_path / "fot-home" in first.path.parents
    moved = lines.rename(tmp_path / "moved.jsonl")
    assert Pool.open(str(moved)).path == first.path
    write_lines(moved, [row(text="other")])
    assert Pool.open(moved).texts(np.arange(1)) == ["other"]


@pytest.mark.parametrize(
    ("prepare", "kind", "message"),
    [
        (lambda pool: pool / "absent", PoolError, "does not exist"),
        (lambda pool: pool.parent, PoolError, "not a pool: it has no manifest"),
        (lambda pool: edited(pool, schema="fot.pool/1"), PoolSchemaError, "this fot reads fot.pool/2"),
        (lambda pool: edited(pool, rollouts="x"), PoolCorrupt, "cannot be read"),
        (lambda pool: edited(pool, rollouts=5), PoolCorrupt, "does not hold the rows"),
        (
            lambda pool: edited(pool, parts=[{"file": "../x", "bytes": 1, "sha256": ""}]),
            PoolCorrupt,
            "lacks its rows file",
        ),
        (lambda pool: overwritten(pool, "manifest.json", b"[" * 9999), PoolCorrupt, "cannot be read"),
        (lambda pool: overwritten(pool, "manifest.json", b""), PoolCorrupt, "cannot be read"),
        (lambda pool: overwritten(pool, "rows-*.parquet", b"PAR1"), PoolCorrupt, "4 bytes where its manifest"),
    ],
    ids=["absent", "no manifest", "other version", "wrong type", "wrong count", "outside", "deep", "empty", "cut"],
)
def test_pools_that_cannot_be_read(
    make: Make, prepare: Callable[[Path], Path], kind: type[PoolError], message: str
) -> None:
    path = prepare(make([row()]).path)
    with pytest.raises(kind, match=message) as caught:
        Pool.open(path)
    assert caught.value.hint


def edited(pool: Path, **changes: object) -> Path:
    manifest = pool / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changes))
    return pool


def overwritten(pool: Path, name: str, data: bytes) -> Path:
    (path,) = pool.glob(name)
    path.write_bytes(data)
    return pool


def test_flipped_bytes_are_noticed_while_a_pool_is_open(make: Make) -> None:
    pool = make([row(text="".join(chr(97 + at * at % 26) for at in range(5000)))])
    data = bytearray(pool.rows_paths[0].read_bytes())
    start = pool._files[0].metadata.row_group(0).column(6).data_page_offset
    for at in range(start + 40, start + 60):
        data[at] ^= 0xFF
    pool.rows_paths[0].write_bytes(bytes(data))
    for read in (lambda: pool.texts(np.arange(1)), lambda: index_of(pool)):
        with pytest.raises(PoolCorrupt, match="cannot be read"):
            read()


def test_a_byte_that_changed_anywhere_is_noticed_when_a_pool_is_opened(make: Make) -> None:
    """Also in dictionaries and metadata, which Parquet's own checksums leave out."""
    pool = make(many())
    (file,) = pool.rows_paths
    whole = file.read_bytes()
    for at in range(0, len(whole), 97):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with pytest.raises(PoolCorrupt, match="another SHA-256"):
            Pool.open(pool.path)
    file.write_bytes(whole)
    assert list(Pool.open(pool.path)) == list(pool)


def test_a_file_is_read_through_once_for_each_state(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = make(many())
    os.utime(pool.rows_paths[0], (1, 1))
    Pool.open(pool.path)
    monkeypatch.setattr("fot.pools.wholeness.rows_file", lambda path: pytest.fail(f"{path} was read through again"))
    assert list(Pool.open(pool.path)) == list(pool)
    monkeypatch.undo()
    for kept in pool.path.glob("index/*/.whole.json"):
        kept.write_bytes(b"junk")
    assert list(Pool.open(pool.path)) == list(pool)


def test_a_copy_beside_which_nothing_can_be_kept_is_read_through_once(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make(many())
    os.utime(pool.rows_paths[0], (1, 1))
    Pool.open(pool.path)
    os.utime(pool.rows_paths[0], (2, 2))  # what lies beside the pool speaks of another state now
    original = tempfile.mkstemp

    def refusing(*, dir: Path, prefix: str) -> tuple[int, str]:
        if pool.path in dir.parents:
            raise PermissionError
        return original(dir=dir, prefix=prefix)

    with monkeypatch.context() as patched:
        patched.setattr("fot.pools.wholeness.tempfile.mkstemp", refusing)
        Pool.open(pool.path)
        patched.setattr("fot.pools.wholeness.rows_file", lambda path: pytest.fail(f"{path} was read through again"))
        assert list(Pool.open(pool.path)) == list(pool)


def test_a_state_that_cannot_be_noted_leaves_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = make(many())
    os.utime(pool.rows_paths[0], (1, 1))
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    assert list(Pool.open(pool.path)) == list(pool)
    assert not list(pool.path.glob("index/*/.whole*"))
