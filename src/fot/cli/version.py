"""``fot version``."""

import platform
import re
from importlib import metadata

from fot import __version__
from fot.cli.output import print_json, print_table

__all__ = ["version"]

DISTRIBUTION = "funnel-of-thoughts"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+).*;\s*extra == ['\"](?P<extra>[\w-]+)['\"]")


def version(*, json: bool = False) -> None:
    """Tell the versions of fot, of Python and of the extras.

    Parameters
    ----------
    json
        Print one JSON object in place of a table.
    """
    extras = _extras()
    if json:
        print_json(
            {
                "schema": "fot.version/1",
                "fot": __version__,
                "python": platform.python_version(),
                "extras": extras,
            }
        )
        return
    rows = [["fot", __version__], ["python", platform.python_version()]]
    rows += [[f"[{extra}]", _describe(found)] for extra, found in extras.items()]
    print_table(["what", "version"], rows, text_columns=2)


def _extras() -> dict[str, dict[str, str | None]]:
    """Give, for each extra, what it asks for and in which version that is installed (None: absent)."""
    extras: dict[str, dict[str, str | None]] = {}
    for requirement in metadata.requires(DISTRIBUTION) or ():
        match = REQUIREMENT.match(requirement)
        if match and match["extra"] != "all":
            extras.setdefault(match["extra"], {})[match["name"]] = _installed(match["name"])
    return extras


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _describe(found: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {number or 'absent'}" for name, number in found.items())
