"""Making a directory appear whole or not at all.

A pool is built in a hidden sibling directory, flushed to disk, and then published. Where no pool stands, the directory
is renamed. Where one stands, the new rows files go in beside the old ones and the manifest, which names the rows
files, is replaced by one rename: at every moment the directory is the old pool or the new one. The hidden directory of
an import that was killed stays for the next one of the same files.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fot.errors import PoolError
from fot.pools.schema import INDEX, MANIFEST, is_pool

__all__ = ["LOCK", "check_replaceable", "locked", "publish", "staged"]

_MARK = ".importing-"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LOCK = ".lock"


def check_replaceable(out: Path) -> None:
    """`PoolError` unless `out` is free, an empty directory, or a pool."""
    if out.is_dir():
        if not is_pool(out) and any(out.iterdir()):
            raise PoolError(f"{out} exists and is not a pool", "choose another --out, or remove it first")
    elif out.exists() or out.is_symlink():
        raise PoolError(f"{out} exists and is not a pool", "choose another --out, or remove it first")


@contextmanager
def staged(out: Path, recipe: str) -> Iterator[Path]:
    """A directory beside `out`, gone afterwards. What a killed import with the same recipe has left is in it.

    Those that killed imports with other recipes have left are removed.
    """
    with ExitStack() as held:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            stage = _claimed(out, recipe, held)
            _remove_abandoned(out)
        except OSError as error:
            raise PoolError(f"cannot write in {out.parent}: {error.strerror or error}") from None
        try:
            yield stage
        except KeyboardInterrupt:
            raise  # as if it had been killed: the next one goes on
        except BaseException as error:
            shutil.rmtree(stage, ignore_errors=True)
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                reason = os.strerror(error.errno or 0)
                raise PoolError(f"cannot write {out}: {reason}", "make room, or choose another --out") from None
            raise
        shutil.rmtree(stage, ignore_errors=True)


def _claimed(out: Path, recipe: str, held: ExitStack) -> Path:
    """The recipe's own directory, locked; where another import is at work in it, a fresh one."""
    own = out.with_name(f".{out.name}{_MARK}{recipe}")
    with ExitStack() as attempt:
        try:
            own.mkdir(exist_ok=True)
            handle = attempt.enter_context(locked(own / LOCK, wait=False))
            if os.path.samestat(os.fstat(handle), (own / LOCK).stat()):
                held.push(attempt.pop_all())
                return own
        except (BlockingIOError, FileNotFoundError):
            pass  # at work, or published a moment ago
    fresh = Path(tempfile.mkdtemp(prefix=f".{out.name}{_MARK}", dir=out.parent))
    held.enter_context(locked(fresh / LOCK))
    return fresh


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[int]:
    """Hold an advisory lock on the file `path`; `BlockingIOError` when another holds it and `wait` is false.

    Yields the open file's number.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield handle
    finally:
        os.close(handle)


def _remove_abandoned(out: Path) -> None:
    for stage in out.parent.glob(f".{_escaped(out.name)}{_MARK}*"):
        try:
            with locked(stage / LOCK, wait=False):
                shutil.rmtree(stage, ignore_errors=True)
        except OSError:
            continue  # its import is alive, or it is not ours to remove


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def publish(stage: Path, out: Path, rows_files: Sequence[str]) -> None:
    """Put the pool that was built in `stage` at `out`, in place of the pool that may stand there."""
    for name in (*rows_files, MANIFEST):
        _flush(stage / name)
    _flush(stage)
    if not _appear(stage, out):
        _replace(stage, out, rows_files)
    _flush(out.parent)


def _appear(stage: Path, out: Path) -> bool:
    """Rename the stage to `out`; false when a pool stands there, perhaps since a moment ago."""
    if is_pool(out):
        return False
    stage.chmod(0o777 & ~_umask())
    try:
        stage.rename(out)
    except OSError:
        if is_pool(out):
            return False
        raise
    return True


def _replace(stage: Path, out: Path, rows_files: Sequence[str]) -> None:
    with locked(out / LOCK):
        for name in rows_files:
            (stage / name).replace(out / name)
        _flush(out)
        (stage / MANIFEST).replace(out / MANIFEST)
        _flush(out)
        shutil.rmtree(out / INDEX, ignore_errors=True)
        for left in out.glob("rows-*.parquet"):
            if left.name not in rows_files:
                left.unlink()


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
