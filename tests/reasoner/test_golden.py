"""The sample pool, replayed: all that `fot simulate` says about it, as it was when it was last looked at.

A difference is a change of what users see. Where it is meant, write the expected result again:

    python -c "from tests.reasoner.test_golden import ARGUMENTS; print(*ARGUMENTS)" |
        xargs fot | python -m json.tool --indent 1 > tests/reasoner/golden.json
"""

import json
from pathlib import Path

import pytest

from fot import reasoner
from fot.cli.main import main

GOLDEN = Path(__file__).with_name("golden.json")
AT = f"checkpoints={'/'.join(map(str, reasoner.CHECKPOINTS))}"
POLICIES = (
    "sc", "pass", f"fot:{AT}", f"random:{AT}", f"oracle:{AT}", f"fot:{AT},keep=0.5", f"fot:{AT},early_voting=false",
    f"fot:{AT}+decided", "ac", "esc",
)  # fmt: skip
ARGUMENTS = (
    "simulate",
    str(reasoner.sample_pool_path()),
    *(p for name in POLICIES for p in ("--policy", name)),
    "--json",
)


def nearly(expected):
    """The same, numbers up to their last bits."""
    if isinstance(expected, dict):
        return {name: nearly(value) for name, value in expected.items()}
    if isinstance(expected, list):
        return [nearly(value) for value in expected]
    return pytest.approx(expected, rel=1e-9, abs=1e-12) if isinstance(expected, float) else expected


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_the_sample_pool_gives_the_expected_table(golden, capsys):
    assert main([*ARGUMENTS]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {name: told["pool"][name] for name in golden["pool"]} == golden["pool"]
    assert [method["spec"] for method in told["methods"]] == [method["spec"] for method in golden["methods"]]
    for method, expected in zip(told["methods"], golden["methods"], strict=True):
        assert {name: method[name] for name in expected} == nearly(expected), method["spec"]


def test_the_funnel_keeps_the_votes_worth_and_saves(golden):
    """What the pool is shipped to show; the expected table itself must show it."""
    by_spec = {method["spec"]: method for method in golden["methods"]}
    funnel, chance = by_spec[f"fot:{AT}"], by_spec[f"random:{AT}"]
    assert funnel["correct"] >= by_spec["sc"]["correct"]
    assert funnel["savings"]["attention"] > chance["savings"]["attention"] > 0.2
    assert funnel["savings"]["latency"] > chance["savings"]["latency"]
    assert by_spec["pass"]["correct"] < by_spec["sc"]["correct"] - 0.1 * golden["pool"]["problems"]
