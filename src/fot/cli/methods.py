"""``fot methods``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypedDict

from fot.cli.output import print_json, print_note, print_table

if TYPE_CHECKING:
    from fot.methods import Method

__all__ = ["methods"]


class _Entry(TypedDict):
    name: str
    summary: str
    kind: str
    needs: list[str]
    parameters: list[dict[str, str]]


def methods(name: str | None = None, /, *, json: bool = False) -> None:
    """List the methods with needs, parameters and defaults, or one with what its parameters mean.

    Parameters
    ----------
    name
        Tell only about this method.
    json
        Print one JSON object in place of a table.
    """
    from fot.core.registry import unknown_name
    from fot.methods import methods as known

    found = known()
    if name is not None and name not in found:
        raise unknown_name("method", name, found)
    entries = [_entry(method) for key, method in found.items() if name in (None, key)]
    if json:
        print_json({"schema": "fot.methods/1", "methods": entries})
        return
    rows = [[entry["name"], ", ".join(entry["needs"]) or "-", entry["summary"]] for entry in entries]
    if name is None:
        for row, entry in zip(rows, entries, strict=True):
            row.append(", ".join(f"{p['name']}={p['default']}" for p in entry["parameters"]) or "-")
        print_table(["method", "needs", "what it does", "parameters and their defaults"], rows, text_columns=4)
        print_note("fot methods NAME tells what its parameters mean; NAME:key=value,key=value sets them")
        return
    print_table(["method", "needs", "what it does"], rows, text_columns=3)
    parameters = [[p["name"], p["default"], p["summary"]] for p in entries[0]["parameters"]]
    if parameters:
        print_table(["parameter", "default", "meaning"], parameters, text_columns=3)


def _entry(method: Method) -> _Entry:
    """One method as the JSON has it; needs are those of its defaults."""
    from fot.methods.spec import written

    plan = method.plan()
    return {
        "name": method.name,
        "summary": method.summary,
        "kind": "method" if method.wrap is None else "wrapper" if method.build is None else "sampler",
        "needs": sorted(need.value for need in method.needs(plan)),
        "parameters": [
            {
                "name": field.name,
                "default": written(getattr(plan, field.name)),
                "summary": field.metadata.get("summary", ""),
            }
            for field in dataclasses.fields(plan)
        ],
    }
