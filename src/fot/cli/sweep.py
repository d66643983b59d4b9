"""``fot sweep``: a grid of funnels on recorded rollouts, and an honest choice among them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fot.cli.chosen import choose, note_left_out, note_without_references
from fot.cli.output import ExitCode, print_json, print_note, print_table, progress, synthetic_line
from fot.errors import ConfigError

if TYPE_CHECKING:
    from fot.pools.pieces import Pieces
    from fot.replay.sheet import Sheet
    from fot.replay.study import Chosen
    from fot.replay.sweep import Figures, Front, Nested, Sweep

__all__ = ["sweep"]


def sweep(  # noqa: PLR0913 - each parameter is a flag
    pools: list[Path],
    /,
    *,
    k: Annotated[int | None, Parameter(name=["-k", "--k"])] = None,
    commit: str = "boxed",
    grader: str = "exact",
    cost_model: str | None = None,
    kernels: str = "21",
    scale: float = 1.0,
    rule: Literal["accuracy", "saving"] = "accuracy",
    folds: int = 5,
    seed: int = 0,
    tune_on_test: bool = False,
    resume: Path | None = None,
    shard: str | None = None,
    json: bool = False,
) -> int:
    """Run 340 funnels (68 schedules by 5 keep ratios) on recorded rollouts.

    What is chosen is chosen on other problems than those it is reported on, unless --tune-on-test is given.

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
    cost_model
        Model shape for whole-model savings: a known model's name or a config.json. Default: each rollout's own model.
    kernels
        How many of the paper's markers to count: numbers joined by '/', paper (1/2/3/5/7/10/15/21) or all (1 to 21).
    scale
        Multiply every checkpoint: 0.5 suits models that think half as long as the paper's.
    rule
        What a choice is by: accuracy, or the largest saving of attention that loses nothing.
    folds
        Into how many parts the problems are dealt for the nested choice.
    seed
        Seed of the split, the intervals and the tests.
    tune_on_test
        Choose on the problems that are reported on; every output then says so.
    resume
        A folder that keeps what is done, so that a sweep that was interrupted goes on. Default: beside each pool.
    shard
        RANK/WORLD: leave this share of the sweep beside the pool and print nothing; see fot spread.
    json
        Print one JSON object in place of tables.
    """
    from fot.grading.base import grader as grader_of
    from fot.pools.shard import Shard
    from fot.replay import study as studies
    from fot.replay import sweep as sweeps
    from fot.replay.evaluate import Judge
    from fot.replay.grid import SCHEDULES, grid, scaled

    configurations = grid(schedules=scaled(SCHEDULES, scale), kernels=_kernels(kernels))
    shape = studies.cost_model(cost_model)
    chosen = choose(pools, k)
    sheets = studies.sheets_of(chosen, commit)
    pieces = _pieces(resume)
    if shard is not None:
        with progress("sweeping", chosen.problems, "problems") as done:
            made = sweeps.share(sheets, configurations, pieces, Shard.parse(shard), done)
        print_note(f"shard {shard}: {made} pieces made")
        return ExitCode.OK
    with progress("sweeping", chosen.problems, "problems") as done, grader_of(grader) as judge:
        swept = sweeps.sweep(sheets, Judge(judge), configurations, shape=shape, pieces=pieces, progress=done)
    choice = sweeps.nested(swept, count=folds, seed=seed, rule=rule, on_test=tune_on_test)
    front = sweeps.front(swept, seed=seed, on_test=tune_on_test)
    note_left_out(chosen)
    note_without_references(sheets)
    if json:
        about = chosen.describe() | {"commit": commit, "grader": grader}
        print_json(_as_json(about, swept, choice, front, {"folds": folds, "seed": seed, "scale": scale}))
    else:
        _print(chosen, swept, choice, front)
    return ExitCode.OK


def _pieces(resume: Path | None) -> Callable[[Sheet], Pieces]:
    """Where each sheet's blocks are kept."""
    from fot.pools.pieces import Pieces

    return lambda sheet: Pieces.beside(sheet.pool) if resume is None else Pieces([resume])


def _kernels(text: str) -> list[int]:
    from fot.core.markers import PAPER_KERNEL
    from fot.replay.grid import KERNEL_SIZES

    named = {"all": range(1, len(PAPER_KERNEL.markers) + 1), "paper": KERNEL_SIZES}
    if text in named:
        return list(named[text])
    try:
        return list(dict.fromkeys(int(size) for size in text.split("/")))
    except ValueError:
        raise ConfigError(f"--kernels: '{text}' is no list of numbers", "Give 21, 1/5/21, paper or all.") from None


def _print(chosen: Chosen, swept: Sweep, choice: Nested, front: Front) -> None:
    from fot.replay.sweep import BANNER

    about = chosen.describe()
    size = f"k={chosen.k}" if chosen.k else "all rollouts"
    title = f"{about['name']}: {len(swept.configurations)} configurations on {chosen.problems} problems ({size})"
    title += synthetic_line(chosen.synthetic)
    if choice.tuned_on_test:
        title += f"\n{BANNER}"
    print_table(["chosen by " + choice.rule, ""], _choice_rows(swept, choice), title=title)
    found, shown = ("the same", "") if front.tuned_on_test else ("the other", f" of {len(swept.problems)}")
    heading = (
        f"\nPareto front found on {front.tuned_on} problems{shown}; figures on {found} {front.figures.problems}"
        + (f"\n{BANNER}" if front.tuned_on_test else "")
    )
    headers = ["configuration", "correct", "gained", "won/lost", "attention", "tokens", "latency", "votes"]
    print_table(headers, [_row(swept, front.figures, at) for at in front.configurations], title=heading)


def _choice_rows(swept: Sweep, choice: Nested) -> list[list[str]]:
    picks: dict[str, int] = {}
    for one in choice.choices:
        text = swept.configurations[one.configuration].spec.text
        picks[text] = picks.get(text, 0) + 1
    rows = [
        [text, "on all problems" if choice.tuned_on_test else f"in {count} of {len(choice.choices)} folds"]
        for text, count in picks.items()
    ]
    held = "on the problems it was chosen on" if choice.tuned_on_test else "on problems it was not chosen on"
    tuned = sum(one.tuned_delta / one.tuned_on for one in choice.choices) / len(choice.choices)
    low, high = choice.ci95_pp
    rows.append([f"gained over sc, {held}", f"{choice.delta:+d} of {choice.problems} ({choice.wins}/{choice.losses})"])
    rows.append(["in percentage points", f"{100 * choice.delta / choice.problems:+.1f} ({low:+.1f} to {high:+.1f})"])
    rows.append(["where it was chosen", f"{100 * tuned:+.1f} percentage points"])
    rows.append(["McNemar p", f"{choice.p:.2f}"])
    for name in ("attention", "tokens", "latency"):
        rows.append([f"{name} saved", f"{100 * getattr(choice, name):.1f}%"])
    return rows


def _row(swept: Sweep, figures: Figures, at: int) -> list[str]:
    return [
        swept.configurations[at].spec.text,
        f"{figures.correct[at]}",
        f"{figures.delta[at]:+d}",
        f"{figures.wins[at]}/{figures.losses[at]}",
        *(f"{100 * values[at]:.1f}%" for values in (figures.attention, figures.tokens, figures.latency)),
        f"{figures.votes[at]:.1f}",
    ]


def _as_json(
    about: dict[str, object], swept: Sweep, choice: Nested, front: Front, how: dict[str, object]
) -> dict[str, object]:
    from fot.replay.sweep import BANNER

    specs = [one.spec.text for one in swept.configurations]
    everything = swept.figures()
    return {
        "schema": "fot.sweep/1",
        "pool": about,
        "banner": BANNER if choice.tuned_on_test else None,
        "selection": how
        | {
            "rule": choice.rule,
            "tuned_on_test": choice.tuned_on_test,
            "choices": [
                {
                    "fold": one.fold,
                    "spec": specs[one.configuration],
                    "tuned_on": one.tuned_on,
                    "tuned_delta": one.tuned_delta,
                    "reported_on": one.reported_on,
                    "reported_delta": one.reported_delta,
                }
                for one in choice.choices
            ],
            "problems": choice.problems,
            "correct": choice.correct,
            "delta": choice.delta,
            "wins": choice.wins,
            "losses": choice.losses,
            "mcnemar_p": choice.p,
            "ci95_pp": list(choice.ci95_pp),
            "savings": {"attention": choice.attention, "tokens": choice.tokens, "latency": choice.latency},
        },
        "front": {
            "tuned_on_test": front.tuned_on_test,
            "tuned_on": front.tuned_on,
            "reported_on": front.figures.problems,
            "configurations": [_entry(swept, specs, front.figures, at) for at in front.configurations],
        },
        "sc": {"correct": int(swept.baseline.sum()), "accuracy": float(swept.baseline.mean())},
        "configurations": [_entry(swept, specs, everything, at) for at in range(len(specs))],
    }


def _entry(swept: Sweep, specs: list[str], figures: Figures, at: int) -> dict[str, object]:
    one = swept.configurations[at]
    saved = ("attention", "attention_macro", "tokens", "latency")
    return {
        "spec": specs[at],
        "checkpoints": list(one.checkpoints),
        "keep": one.keep,
        "kernel": one.kernel,
        "correct": int(figures.correct[at]),
        "accuracy": float(figures.correct[at] / figures.problems),
        "balanced_accuracy": float(figures.balanced[at]),
        "delta": int(figures.delta[at]),
        "wins": int(figures.wins[at]),
        "losses": int(figures.losses[at]),
        "savings": {name: float(getattr(figures, name)[at]) for name in saved}
        | {"full_model": None if figures.full_model is None else float(figures.full_model[at])},
        "votes_mean": float(figures.votes[at]),
    }
