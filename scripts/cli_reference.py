"""Write docs/reference/cli.md out of what every command says about itself (``make docs`` runs this)."""

import io
from pathlib import Path

from rich.console import Console

from fot.cli.main import COMMANDS, build

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
INTRODUCTION = """\
# Command line

<!-- Written by scripts/cli_reference.py; change the commands, not this page. -->

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


def help_of(*words: str) -> str:
    """Give what ``fot words --help`` prints, 100 columns wide and plain."""
    screen = io.StringIO()
    console = Console(file=screen, width=100, color_system=None, force_terminal=False)
    build()([*words, "--help"], console=console, result_action="return_value")
    return "\n".join(line.rstrip() for line in screen.getvalue().strip().splitlines())


def page() -> str:
    """Give the whole page."""
    sections = [("fot", help_of())]
    sections += [(f"fot {command.name}", help_of(*command.name.split())) for command in COMMANDS]
    return INTRODUCTION + "".join(f"\n## `{title}`\n\n```text\n{text}\n```\n" for title, text in sections)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
