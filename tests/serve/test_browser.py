"""The live view in a real browser. Opt-in: `make browser` brings what this needs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from fot.engines.scripted import Pace
from tests.serve.house import MESSAGES, House, rollout

MODULES = os.environ.get("FOT_BROWSER_MODULES", "")
CHROMIUM = os.environ.get("FOT_BROWSER_CHROMIUM") or shutil.which("chromium") or ""
SCRIPT = Path(__file__).parent / "browser.mjs"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"

pytestmark = pytest.mark.skipif(
    not (MODULES and CHROMIUM and shutil.which("node")), reason="no browser here: `make browser` brings one"
)


def funnel():
    """32 rollouts that hesitate differently; one of them tries to break out of the page."""
    made = []
    for number in range(32):
        answer = "18" if number % 5 == 3 else HOSTILE if number == 22 else "24"
        more = HOSTILE if number == 0 else "Wait, perhaps. Hmm, let me check again. " * (number % 7)
        made.append(rollout(number, 12 + 7 * ((number * 5) % 16), answer, more=more))
    return made


@contextmanager
def browsing(url, folder, *more):
    browser = subprocess.Popen(
        ["node", str(SCRIPT), url, str(folder), *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"FOT_BROWSER_CHROMIUM": CHROMIUM},
    )  # fmt: skip
    try:
        yield browser
    finally:
        browser.kill()
        browser.wait()


def hear(browser, word):
    told = browser.stderr.readline()
    assert told.strip() == word, told + browser.stderr.read()


def seen_by(browser):
    told, complaints = browser.communicate(timeout=180)
    assert browser.returncode == 0, complaints
    return json.loads(told)


def ask(house):
    body = {"model": "scripted", "messages": MESSAGES}
    return httpx2.post(f"{house.url}/v1/chat/completions", json=body, timeout=120).json()


def test_a_funnel_from_its_start_to_its_verdict(tmp_path):
    folder = Path(os.environ.get("FOT_BROWSER_FOLDER") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    pace = Pace(chunk_tokens=2, turns=1, token_s=0.05, spread=0.4, abort_tokens=1)
    house = House(funnel(), k=32, policy="fot:checkpoints=60/90/120", pace=pace, dialect="sglang")
    with house, browsing(house.url, folder) as browser:
        hear(browser, "ready")
        answer = ask(house)
        seen = seen_by(browser)
    assert seen["errors"] == []
    assert seen["outside"] == []
    assert seen["violations"] == {name: [] for name in ("empty", "running", "light", "table", "dark", "phone")}
    assert seen["before"].startswith("running")
    assert seen["title"] == f"Answer: {answer['fot']['answer']}" == "Answer: 24"
    assert f"{answer['fot']['fates'].count('pruned')} pruned" in seen["label"]
    assert HOSTILE in seen["text"]
    assert seen["marked"] == "Wait,"
    assert f"curl {house.url}/v1/chat/completions" in seen["hint"]
    assert '"model":"scripted"' in seen["hint"]
    assert seen["focus"] == "lane-title"
    assert seen["closed"]
    assert seen["wider"] <= 0
    assert seen["drawn"] > 20


def test_a_server_that_goes_and_comes_back(tmp_path):
    with House(funnel(), k=8) as house, browsing(house.url, tmp_path, "again") as browser:
        hear(browser, "ready")
        first = ask(house)
        hear(browser, "go")
        house.__exit__()
        hear(browser, "come")
        with House(funnel(), k=8, port=house.port) as back:
            second = ask(back)
            seen = seen_by(browser)
    assert seen["errors"] == []
    assert first["fot"]["id"] in seen["before"]
    assert second["fot"]["id"] in seen["after"]
    assert seen["runs"] == 1
