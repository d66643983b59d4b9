"""At every moment there is the old pool, the new one, or none."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fot.errors import PoolError
from fot.pools import staging
from fot.pools.importing import import_rows
from fot.pools.read import Pool
from tests.pools.rows import Fields, row, write_lines

IMPORT = (
    "import sys; from pathlib import Path; from fot.pools import write; write.GROUP_CHARS = 20_000\n"
    "from fot.pools.importing import import_rows\n"
    "print('go', flush=True); import_rows([Path(sys.argv[1])], Path(sys.argv[2]))"
)


def version(number: int) -> list[Fields]:
    """Rows whose texts all say which version of the pool they belong to, in an order that must be merged."""
    return [row(f"p{at % 7}", at, f"version {number} " * 400, n_tokens=7) for at in range(300)]


def version_of(pool: Path) -> int:
    """Which version stands there; fails unless it is whole."""
    said = {(one.rollout_id, one.text) for one in Pool.open(pool)}
    for number in (1, 2):
        if said == {(one["rollout_id"], one["text"]) for one in version(number)}:
            return number
    raise AssertionError("neither version")


def kill_during_import(rows: Path, out: Path, delay: float) -> None:
    command = [sys.executable, "-c", IMPORT, str(rows), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)


def test_a_killed_import_leaves_the_old_pool_the_new_one_or_none(tmp_path: Path) -> None:
    rows = {number: write_lines(tmp_path / f"{number}.jsonl", version(number)) for number in (1, 2)}
    started = time.monotonic()
    import_rows([rows[1]], tmp_path / "timed")
    whole = time.monotonic() - started
    moments = random.Random(7)
    fresh, replaced = tmp_path / "fresh", tmp_path / "replaced"
    import_rows([rows[1]], replaced)
    for _ in range(4):
        kill_during_import(rows[1], fresh, moments.uniform(0, 1.5 * whole))
        assert not fresh.exists() or version_of(fresh) == 1
        before = version_of(replaced)
        kill_during_import(rows[3 - before], replaced, moments.uniform(0, 1.5 * whole))
        assert version_of(replaced) in (before, 3 - before)
    import_rows([rows[1]], fresh)
    import_rows([rows[2]], replaced)
    assert (version_of(fresh), version_of(replaced)) == (1, 2)
    assert not list(tmp_path.glob(".*importing*"))


@pytest.mark.parametrize("step", range(8))
def test_whatever_step_of_replacing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    rows = {number: write_lines(tmp_path / f"{number}.jsonl", version(number)) for number in (1, 2)}
    import_rows([rows[1]], tmp_path / "pool")
    steps: list[Path] = []
    flush = staging._flush

    def failing(path: Path) -> None:
        steps.append(path)
        if len(steps) > step:
            raise OSError(28, "No space left on device")
        flush(path)

    monkeypatch.setattr(staging, "_flush", failing)
    if step < 6:
        with pytest.raises(PoolError, match=r"cannot write .*pool: No space left on device"):
            import_rows([rows[2]], tmp_path / "pool")
    else:
        import_rows([rows[2]], tmp_path / "pool")
    assert version_of(tmp_path / "pool") == (1 if step < 4 else 2)
    assert not list(tmp_path.glob(".*importing*"))


def test_a_pool_that_appears_meanwhile_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {number: write_lines(tmp_path / f"{number}.jsonl", version(number)) for number in (1, 2)}
    appear = staging._appear

    def late(stage: Path, out: Path) -> bool:
        monkeypatch.undo()
        seen = [True, False]
        monkeypatch.setattr(staging, "is_pool", lambda path: seen.pop() and (path / "manifest.json").exists())
        import_rows_elsewhere(rows[1], tmp_path / "pool", tmp_path)
        return appear(stage, out)

    monkeypatch.setattr(staging, "_appear", late)
    import_rows([rows[2]], tmp_path / "pool")
    assert version_of(tmp_path / "pool") == 2


def import_rows_elsewhere(rows: Path, out: Path, folder: Path) -> None:
    """Put a pool where another import is about to put its own."""
    subprocess.run([sys.executable, "-c", IMPORT, str(rows), str(folder / "other")], check=True, capture_output=True)
    (folder / "other").rename(out)


def test_the_stage_of_a_living_import_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "pool"
    abandoned = tmp_path / ".pool.importing-gone"
    abandoned.mkdir()
    (abandoned / "run-0.parquet").write_bytes(b"half")
    with staging.staged(out, "r") as living:
        assert not abandoned.exists()
        with staging.staged(out, "r") as second:
            assert living.exists()
            assert second.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["folder", "file", "link"])
def test_what_is_no_pool_is_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").touch()
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    lines = write_lines(tmp_path / "rows.jsonl", [row()])
    with pytest.raises(PoolError, match="exists and is not a pool"):
        import_rows([lines], tmp_path / name)
    assert (tmp_path / "folder" / "thesis.tex").exists()
    assert (tmp_path / "file").read_text() == "precious"


def test_an_empty_folder_becomes_a_pool_and_missing_folders_are_made(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "rows.jsonl", [row()])
    (tmp_path / "empty").mkdir()
    for out in (tmp_path / "empty", tmp_path / "a" / "b" / "pool", tmp_path / "od[d]*?"):
        assert len(list(Pool.open(import_rows([lines], out).pool))) == 1


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "rows.jsonl", [row()])
    with pytest.raises(PoolError, match="cannot write in"):
        import_rows([lines], lines / "pool")
