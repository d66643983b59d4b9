"""``fot doctor``: tests a server for what matters, and says what to change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fot.cli.engines import EngineFlags
from fot.cli.output import ExitCode, print_json, print_note, print_table

if TYPE_CHECKING:
    from fot.online.doctor import Finding

__all__ = ["doctor"]

_ENGINE = EngineFlags()


def doctor(  # noqa: D417 - the group of flags tells itself
    *,
    from_engine: Annotated[EngineFlags, Parameter(name="*")] = _ENGINE,
    k: Annotated[int, Parameter(name=["-k", "--k"])] = 32,
    json: bool = False,
) -> int:
    """Try out whether a server stops when told to, counts, repeats, caches and has room; best while it is idle.

    The exit code is 1 when something is found that defeats the method.

    Parameters
    ----------
    k
        Rollouts that are to run at once.
    json
        Print one JSON object in place of a table.
    """
    name, model, findings = asyncio.run(_examined(from_engine, k, json))
    if json:
        print_json({"schema": "fot.doctor/1", "engine": name, "model": model, "k": k, "findings": findings})
    else:
        print_table(
            [f"{name}, {model}", "", ""], [[each.name, each.verdict, each.found] for each in findings], text_columns=3
        )
        for finding in findings:
            if finding.advice:
                print_note(f"{finding.name}: {finding.advice}")
    return ExitCode.FAILED if any(finding.verdict == "bad" for finding in findings) else ExitCode.OK


async def _examined(flags: EngineFlags, k: int, json: bool) -> tuple[str, str, list[Finding]]:
    from fot.online.api import model_name, opened
    from fot.online.doctor import examine

    async with opened(flags.options() | {"k": k}) as engine:
        model = await model_name(engine)
        findings = await examine(engine, k, lambda finding: None if json else print_note(f"tried: {finding.name}"))
        return engine.name, model, findings
