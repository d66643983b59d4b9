"""Write the pages of docs/reference that the code knows best (``make docs`` runs this)."""

import dataclasses
import io
from pathlib import Path

from rich.console import Console

from fot.cli.main import COMMANDS, build
from fot.methods import METHODS, Method, methods
from fot.methods.spec import written

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
WRITTEN = "<!-- Written by scripts/reference.py; change the code, not this page. -->"
COMMAND_LINE = f"""\
# Command line

{WRITTEN}

Data goes to stdout, everything else to stderr. `NO_COLOR` is honoured, and `FOT_DEBUG=1` shows the traceback of a bug.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | the command line, a policy spec or a parameter is wrong |
| 3 | an engine cannot be reached, or fell silent |
| 4 | done in part: the output says what is missing |
| 130 | interrupted |
"""
METHODS_PAGE = f"""\
# Methods

{WRITTEN}

What `--policy` takes: `name` or `name:key=value,key=value`, lists joined by `/`, methods composed by `+`. A comma,
slash, plus or percent sign inside a value is percent-encoded. See [policies](../concepts/policies.md).
"""


def pages() -> dict[Path, str]:
    """Give each page with its text."""
    return {FOLDER / "cli.md": command_line(), FOLDER / "methods.md": methods_page()}


def command_line() -> str:
    """Give what every command says about itself."""
    sections = [("fot", help_of())]
    sections += [(f"fot {command.name}", help_of(*command.name.split())) for command in COMMANDS]
    return COMMAND_LINE + "".join(f"\n## `{title}`\n\n```text\n{text}\n```\n" for title, text in sections)


def help_of(*words: str) -> str:
    """Give what ``fot words --help`` prints, 100 columns wide and plain."""
    screen = io.StringIO()
    console = Console(file=screen, width=100, color_system=None, force_terminal=False)
    build()([*words, "--help"], console=console, result_action="return_value")
    return "\n".join(line.rstrip() for line in screen.getvalue().strip().splitlines())


def methods_page() -> str:
    """Give the project's own methods with their parameters."""
    return METHODS_PAGE + "".join(section(methods()[name]) for name in METHODS)


def section(method: Method) -> str:
    """Give one method: what it does, and its parameters with their defaults."""
    text = f"\n## `{method.name}`\n\n{method.summary[0].upper()}{method.summary[1:]}.\n"
    plan = method.plan()
    fields = dataclasses.fields(plan)
    if fields:
        text += "\n| parameter | default | meaning |\n|---|---|---|\n"
    for field in fields:
        default = written(getattr(plan, field.name))
        text += f"| `{field.name}` | `{default}` | {field.metadata['summary']} |\n"
    return text


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
