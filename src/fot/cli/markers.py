"""``fot markers fit``: learn which strings of a pool go with being wrong."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fot.cli.chosen import choose
from fot.cli.output import ExitCode, print_json, print_note, print_table, progress, synthetic_line
from fot.errors import PoolError

if TYPE_CHECKING:
    from fot.report.fitting import Fitted, HeldOut

__all__ = ["fit"]


def fit(  # noqa: PLR0913 - each parameter is a flag
    pools: list[Path],
    /,
    *,
    k: Annotated[int | None, Parameter(name=["-k", "--k"])] = None,
    commit: str = "boxed",
    grader: str = "exact",
    size: int = 21,
    folds: int = 5,
    criterion: Literal["pooled", "within"] = "pooled",
    seed: int = 0,
    json: bool = False,
) -> int:
    """Learn a kernel of hesitation markers from a pool, in any language or style, and say what it is worth.

    Whether there is a signal is judged on problems that the markers were not chosen on.

    Parameters
    ----------
    pools
        Pools, or directly files of rows.
    k
        Take the first k rollouts of each problem; problems with fewer are left out. Default: all there are.
    commit
        When a rollout has committed to an answer: boxed, choice, code or paper.
    grader
        What compares an answer with the reference.
    size
        Markers at most.
    folds
        Into how many parts the problems are dealt to judge the choice.
    criterion
        pooled: the paper's (weighted r < 0, p < 0.05); within: more frequent in wrong rollouts of the same problem.
    seed
        Seed of the folds and of the intervals.
    json
        Print one JSON object in place of tables.
    """
    from fot.core.shapes import shape_of
    from fot.grading.base import grader as grader_of
    from fot.report.exhibit import NotHere
    from fot.report.fitting import fit as learn
    from fot.report.material import Material

    chosen = choose(pools, k)
    with grader_of(grader) as judge, progress("learning", chosen.rollouts) as done:
        material = Material(chosen, commit=commit, grader=judge, shape=shape_of, seed=seed)
        try:
            fitted = learn(material, size=size, count=folds, criterion=criterion, progress=done)
        except NotHere as reason:
            raise PoolError(f"no kernel can be learnt: {reason}", "Check --commit and --grader.") from None
    if json:
        print_json(_as_json(fitted, chosen.describe() | {"commit": commit, "grader": grader}, seed, criterion))
    else:
        _print(fitted, chosen.synthetic)
    return ExitCode.OK


def verdict(fitted: Fitted) -> str:
    """What the held-out problems say, in a sentence."""
    if not fitted.markers:
        return f"None of {fitted.tried} candidates meets the criterion: there is no such signal in this pool."
    ours = fitted.held_out
    low, high = ours.within.interval
    told = f"AUROC {ours.within.auroc:.2f} ({low:.2f} to {high:.2f}) within problems that were held out"
    if ours.is_present:
        return f"The signal is there, over whole texts: {told}. What is left of it at checkpoints, a replay tells."
    if ours.r.r < 0 and ours.r.p < 0.05:
        return (
            f"The signal is absent where pruning needs it: {told}. Over the whole pool the markers still go with being "
            f"wrong (r {ours.r.r:+.2f}): they tell hard problems from easy ones."
        )
    return f"The signal is absent: {told}. Training changes what hesitation looks like; prune by another signal."


def _print(fitted: Fitted, made_by: str | None) -> None:
    rows = [
        [repr(one.text), f"{one.r:+.3f}", _p(one.p), _p(one.q), f"{100 * one.prevalence:.1f}%", f"{one.ratio:.2f}"]
        for one in fitted.markers
    ]
    headers = ["marker", "weighted r", "p", "q", "rollouts", "wrong/correct"]
    if rows:
        print_table(headers, rows, title=f"{len(rows)} markers of {fitted.tried} candidates{synthetic_line(made_by)}")
    held = [_held(one) for one in (fitted.held_out, fitted.paper)]
    print_table(["kernel", "weighted r", "AUROC within problems", "95% interval"], held, title="\non held-out problems")
    print_table(["\nverdict"], [[verdict(fitted)]], title=synthetic_line(made_by) if not rows else "")
    if fitted.kernel is not None:
        purpose = "use it" if fitted.held_out.is_present else "try it all the same"
        print_note(f"to {purpose}: --policy '{_policy(fitted)}'")
        print_note(f"{fitted.stable:.0%} of the markers were chosen in each fold as well, on average")


def _p(value: float) -> str:
    return f"{value:.0e}" if value < 0.001 else f"{value:.3f}"


def _held(one: HeldOut) -> list[str]:
    low, high = one.within.interval
    correlation = "-" if math.isnan(one.r.r) else f"{one.r.r:+.3f}"
    return [one.name, correlation, f"{one.within.auroc:.3f}", f"{low:.3f} to {high:.3f}"]


def _policy(fitted: Fitted) -> str:
    from urllib.parse import quote

    return "fot:kernel=" + "/".join(quote(marker.text, safe=" ") for marker in fitted.markers)


def _as_json(fitted: Fitted, about: dict[str, object], seed: int, criterion: str) -> dict[str, object]:
    return {
        "schema": "fot.markers.fit/1",
        "pool": about,
        "seed": seed,
        "criterion": criterion,
        "tried": fitted.tried,
        "markers": fitted.markers,
        "policy": _policy(fitted) if fitted.markers else None,
        "stable": fitted.stable,
        "held_out": fitted.held_out,
        "paper": fitted.paper,
        "present": bool(fitted.markers) and fitted.held_out.is_present,
        "verdict": verdict(fitted),
    }
