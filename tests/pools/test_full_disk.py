"""A disk without room is told, or gone around; it never ends the process."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fot.core.markers import PAPER_KERNEL, count
from fot.pools.importing import import_rows
from tests.pools.rows import row, write_lines

TEXT = "Wait, perhaps " * 20_000  # its markers need more room than its compressed text
SMALL_DISK = """
set -e
mount -t tmpfs -o size=1m tmpfs "$1"
cp -r "$2" "$1/pool"
FOT_HOME="$1/home" exec "$3" -c '
import sys
from pathlib import Path
from fot.pools.index import index_of
from fot.pools.read import Pool
print(index_of(Pool.open(Path(sys.argv[1]))).markers)
' "$1/pool"
"""


def unshared(*command: str) -> subprocess.CompletedProcess[str]:
    """Run in a mount namespace of its own."""
    return subprocess.run(["unshare", "-rm", *command], capture_output=True, text=True, check=False)


@pytest.mark.skipif(not shutil.which("unshare") or unshared("true").returncode != 0, reason="no namespaces here")
def test_an_index_that_fits_nowhere_serves_as_long_as_it_is_used(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    lines = write_lines(tmp_path / "rows.jsonl", [row(rollout_id=number, text=TEXT) for number in range(2)])
    made = import_rows([lines], tmp_path / "pool")
    told = unshared("sh", "-c", SMALL_DISK, "sh", str(disk), str(made.pool), sys.executable)
    assert (told.returncode, told.stderr) == (0, ""), told
    assert int(told.stdout) == 2 * count(TEXT, PAPER_KERNEL)
    assert not list(disk.iterdir())
