"""``fot doctor``: tests a server for what matters, says what to change, and how fast it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fot.cli.engines import EngineFlags
from fot.cli.files import written
from fot.cli.output import ExitCode, print_json, print_note, print_table

if TYPE_CHECKING:
    from fot.online.calibrate import Calibration
    from fot.online.doctor import Finding

__all__ = ["doctor"]

_ENGINE = EngineFlags()


def doctor(  # noqa: D417 - the group of flags tells itself
    *,
    from_engine: Annotated[EngineFlags, Parameter(name="*")] = _ENGINE,
    k: Annotated[int, Parameter(name=["-k", "--k"])] = 32,
    calibrate: bool = False,
    out: Path = Path("timing.json"),
    tokens: int = 256,
    context: int = 768,
    json: bool = False,
) -> int:
    """Try out whether a server stops when told to, counts, repeats, caches and has room; best while it is idle.

    The exit code is 1 when something is found that defeats the method. With --calibrate it is timed instead, for
    `fot plan`: how long a step takes by batch and by the tokens it holds, and how long prompts, requests and stops.

    Parameters
    ----------
    k
        Rollouts that are to run at once; the largest batch that is timed.
    calibrate
        Time the server, in place of the tests.
    out
        The file for the timing.
    tokens
        Tokens of each timed rollout.
    context
        Longest context at which steps are timed, in tokens.
    json
        Print one JSON object in place of a table.
    """
    if calibrate:
        return _tell_calibration(asyncio.run(_calibrated(from_engine, k, tokens, context)), out, json)
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


async def _calibrated(flags: EngineFlags, k: int, tokens: int, context: int) -> Calibration:
    from fot.online.api import model_name, opened
    from fot.online.calibrate import batches_up_to, calibrate

    async with opened(flags.options() | {"k": k}) as engine:
        slots = (await engine.capabilities()).max_parallel
        most = min(k, slots or k)
        if most < k:
            print_note(f"the server runs {slots} rollouts at once: no larger batch is timed")
        return await calibrate(
            engine,
            await model_name(engine),
            batches_up_to(most),
            lambda what: print_note(f"timing: {what}"),
            tokens=tokens,
            context=context,
        )


def _tell_calibration(found: Calibration, out: Path, json: bool) -> int:
    import msgspec

    told = found.as_json()
    with written(out) as file:
        file.write(msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n")
    if json:
        print_json(told)
        return ExitCode.OK
    print_table(
        ("batch", "context", "measured ms a step", "fitted", "off by"),
        [
            [
                str(check.batch),
                str(check.context),
                f"{1e3 * check.measured_s:.2f}",
                f"{1e3 * check.fitted_s:.2f}",
                f"{check.fitted_s / check.measured_s - 1:+.0%}",
            ]
            for check in found.checks
        ],
        text_columns=0,
        title=f"{found.engine}, {found.model}: {out}",
    )
    timing = found.timing
    print_note(
        f"each held token adds {1e6 * timing.kv_s:.3g} µs to a step; a prompt token takes "
        f"{1e3 * timing.prefill_s:.3g} ms, a request {1e3 * timing.request_s:.3g} ms, "
        f"a stop {1e3 * timing.stop_s:.3g} ms; "
        f"cached of a shared prompt {timing.shared:.0%}, of a prefix {timing.resumed:.0%}"
    )
    print_note(f"half of the timed stretches are within {found.error:.1%} of the fit")
    return ExitCode.OK
