"""The examples do what they say, as a reader would start them."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SHOWN = {
    "custom_engine.py": "6 {",
    "custom_method.py": "7 banked finished finished pruned pruned",
    "replay.py": "correct (+0.0 to +0.0 points against sc)",
    "solve.py": "after a decision",
}


def test_every_example_is_tried():
    assert {path.name for path in EXAMPLES.glob("*.py")} == SHOWN.keys()


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs(name, tmp_path):
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert SHOWN[name] in done.stdout
