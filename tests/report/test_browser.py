"""A report in a real browser that has no network. Opt-in: `make browser` brings what this needs."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from fot.cli.main import main
from tests.report.pools import planted
from tests.serve.test_browser import CHROMIUM, MODULES

SCRIPT = Path(__file__).parent / "browser.mjs"
WHO = ["only the funnel", "only self-consistency", "both right", "both wrong"]

pytestmark = pytest.mark.skipif(not (MODULES and CHROMIUM), reason="no browser here: `make browser` brings one")


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    kept = Path(os.environ.get("FOT_BROWSER_FOLDER") or folder)
    kept.mkdir(parents=True, exist_ok=True)
    pools = [planted(folder / name, problems=20, k=8, seed=at, benchmark=name, model=f"m{at}", effect=0.1)
             for at, name in enumerate(("one", "two"))]  # fmt: skip
    out = folder / "report.html"
    assert main(["report", *map(str, pools), "--out", str(out), "--paper", "--texts"]) == 0
    done = subprocess.run(
        ["node", str(SCRIPT), str(out), str(kept)], capture_output=True, text=True, timeout=240, check=False,
        env=os.environ | {"FOT_BROWSER_CHROMIUM": CHROMIUM},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_opens_from_disk_and_asks_for_nothing(seen):
    assert len(seen["requests"]) == 1
    assert seen["requests"][0].startswith("file://")
    assert seen["errors"] == []
    assert seen["violations"] == {"light": [], "dark": [], "phone": []}
    assert seen["overflow"] == {"light": 0, "dark": 0, "phone": 0}


def test_problems_are_searched_and_sorted(seen):
    won = [row[2] for row in seen["orders"]["won"]]
    assert len(won) == 40
    assert won == sorted(won, key=WHO.index)
    for column, order, falling in ((4, "saved", True), (3, "hard", False)):
        shares = [float(row[column].rstrip("%")) for row in seen["orders"][order]]
        assert shares == sorted(shares, reverse=falling)
    for word in ("only the funnel", "both right", "no such thing"):
        count = won.count(word)
        assert seen["found"][word] == [count, f"{count} of 40"]


def test_a_click_shows_a_problems_lanes_votes_and_texts(seen):
    first, second = seen["orders"]["won"][:2]
    assert seen["hidden"]
    assert seen["shown"][0] == first[0]
    assert seen["shown"][1].startswith(first[2].capitalize())
    assert "8 rollouts" in seen["lanes"]
    assert seen["inked"] > 10
    assert [table.startswith(f"votes of {name}") for table, name in zip(seen["votes"], ("sc", "fot"), strict=True)]
    assert len(seen["text"]) > 100
    assert seen["keyed"] == second[0]
