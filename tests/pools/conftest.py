"""Pools of a few rows."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from fot.pools.importing import import_rows
from fot.pools.read import Pool
from tests.pools.rows import Fields, Make, write_lines


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Import rows into a pool of the test's own, in place of what it held, and open it."""

    def made(rows: Iterable[Fields]) -> Pool:
        lines = write_lines(tmp_path / "rows.jsonl", rows)
        return Pool.open(import_rows([lines], tmp_path / "pool").pool)

    return made
