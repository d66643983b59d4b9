"""What the documentation says is executed, linked and up to date."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

import pytest

import fot
from fot.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^<!-- (?P<role>run|output) -->\n```(?P<language>\w+)\n(?P<body>.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)


class Example(NamedTuple):
    """A block that runs, and what the page says that it prints (None: nothing said)."""

    language: str
    body: str
    output: str | None


def examples(page: Path) -> list[Example]:
    found: list[Example] = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["role"] == "run":
            found.append(Example(block["language"], block["body"], None))
        else:
            found[-1] = found[-1]._replace(output=block["body"])
    return found


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run(example: Example, folder: Path) -> str:
    commands = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
    done = subprocess.run(
        [*commands[example.language], example.body],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env=os.environ | {"PATH": path, "NO_COLOR": "1", "COLUMNS": "100"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_has_an_example_that_runs() -> None:
    assert [example.language for example in examples(ROOT / "README.md")].count("python") >= 1


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=named)
def test_examples_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    """The blocks of one page run in order, in one empty folder."""
    for example in examples(page):
        output = run(example, tmp_path)
        if example.output is not None:
            assert output == example.output


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        if "://" not in target and not target.startswith("#"):
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert set(re.findall(r"[\w/-]+\.md", navigation)) == pages


def test_the_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"| `fot {command.name}" in readme


def test_the_written_pages_are_up_to_date() -> None:
    spec = spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    for page, text in script.pages().items():
        assert page.read_text(encoding="utf-8") == text, "run: python scripts/reference.py"


def test_one_version_everywhere() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(.+?)\]", changelog, re.M)[0] == fot.__version__
    assert re.findall(r"^version: (.+)$", citation, re.M) == [fot.__version__]


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    pins = [
        line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", pin) for pin in pins)
    names = {re.split(r"[\[>=]", name)[0].replace("_", "-") for name in wanted} - {project["name"]}
    assert names <= {pin.partition("==")[0] for pin in pins}
