"""Where commands write: a file stands whole or as it was, and what is no file is left in its place."""

import errno
from pathlib import Path

import pytest

from fot.cli.files import written


def test_a_file_is_whole_or_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    with written(path) as file:
        file.write(b"first")
    with pytest.raises(OSError, match="No space") as failed, written(path) as file:
        file.write(b"second")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert failed.value.filename == str(path)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_what_breaks_off_leaves_nothing_and_names_what_failed(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    with pytest.raises(KeyboardInterrupt), written(path) as file:
        file.write(b"first")
        raise KeyboardInterrupt
    with pytest.raises(FileNotFoundError) as failed, written(path) as file:
        file.write((tmp_path / "read-from").read_bytes())
    assert failed.value.filename == str(tmp_path / "read-from")
    with pytest.raises(FileNotFoundError) as failed, written(tmp_path / "absent" / "rows"):
        pass
    assert failed.value.filename == str(tmp_path / "absent" / "rows")
    assert list(tmp_path.iterdir()) == []


def test_a_link_and_a_device_are_written_into(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"before")
    link.symlink_to(target)
    with written(link) as file:
        file.write(b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"
    with written(Path("/dev/null")) as file:
        file.write(b"nothing")
    assert not Path("/dev/null").is_file()
    with pytest.raises(IsADirectoryError), written(tmp_path):
        pass
    assert tmp_path.is_dir()
