"""``fot report``: the whole evaluation of a pool as one page and a folder of tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fot.cli.chosen import choose
from fot.cli.output import ExitCode, print_json, print_note, print_table, progress
from fot.core.registry import unknown_name

__all__ = ["report"]


def report(  # noqa: PLR0913 - each parameter is a flag
    pools: list[Path],
    /,
    *,
    out: Path,
    k: Annotated[int | None, Parameter(name=["-k", "--k"])] = None,
    commit: str = "boxed",
    grader: str = "exact",
    keys: str = "exact",
    cost_model: str | None = None,
    policy: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    only: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    paper: bool = False,
    texts: bool = False,
    tune_on_test: bool = False,
    seed: int = 0,
    json: bool = False,
) -> int:
    """Evaluate a pool as the paper evaluates its own: one page, and a folder of tables and figures beside it.

    Parameters
    ----------
    pools
        Pools, or directly files of rows; several are reported together.
    out
        The page to write (HTML); tables and figures go into a folder beside it with the suffix .run.
    k
        Take the first k rollouts of each problem; problems with fewer are left out. Default: all there are.
    commit
        When a rollout has committed to an answer: boxed, choice, code or paper.
    grader
        What compares an answer with the reference.
    keys
        Which answers are one vote: exact (equal vote keys) or math (equal as mathematics).
    cost_model
        Model shape for whole-model savings: a known model's name or a config.json. Default: each rollout's own model.
    policy
        A further method for the main comparison; repeat it for more.
    only
        Make this exhibit alone; repeat it for more. Default: all.
    paper
        Set the paper's published figures beside the measured ones.
    texts
        Put the ends of the rollouts' texts into the page; left out by default, as a pool's licence may forbid it.
    tune_on_test
        Let choices be made on what they are reported on; every output then says so.
    seed
        Seed of every split, draw and interval.
    json
        Print one JSON object about what was written.
    """
    from fot.grading.base import grader as grader_of
    from fot.replay import study as studies
    from fot.report.build import build
    from fot.report.catalogue import steps
    from fot.report.material import Material

    for name in only or ():
        if name not in steps():
            raise unknown_name("exhibit", name, steps())
    shape = studies.cost_model(cost_model)
    chosen = choose(pools, k)
    config: dict[str, object] = {
        "pools": [str(path) for path in pools],
        "k": k,
        "commit": commit,
        "grader": grader,
        "keys": keys,
        "cost_model": cost_model,
        "policies": policy or [],
        "only": only or [],
        "paper": paper,
        "texts": texts,
        "tune_on_test": tune_on_test,
        "seed": seed,
    }
    with grader_of(grader) as judge, progress("reporting", len(only or steps())) as done:
        material = Material(
            chosen,
            commit=commit,
            grader=judge,
            shape=shape,
            seed=seed,
            policies=policy or (),
            tune_on_test=tune_on_test,
            keys=keys,
        )
        made = build(
            material,
            out,
            command=_command(config, out),
            config=config,
            paper=paper,
            texts=texts,
            only=only or (),
            progress=done,
        )
    if texts:
        print_note("the page holds texts of the pool: mind its licence before passing it on")
    if json:
        about = {"page": str(made.page), "folder": str(made.folder), "exhibits": made.made, "absent": made.absent}
        print_json({"schema": "fot.report/1", "pool": chosen.describe(), "banners": made.banners} | about)
    else:
        rows = [["page", str(made.page)], ["folder", str(made.folder)], ["exhibits", str(len(made.made))]]
        print_table([str(chosen.describe()["name"]), ""], rows, title="\n".join(made.banners))
        if made.absent:
            print_table(
                ["not there", "because"], [list(pair) for pair in made.absent.items()], text_columns=2, title="\n"
            )
    return ExitCode.OK


def _command(config: dict[str, object], out: Path) -> list[str]:
    """The command line that makes this report again; what has its default is left out."""
    words = ["fot", "report", *(str(path) for path in _many(config["pools"])), "--out", str(out)]
    plain = {"commit": "boxed", "grader": "exact", "keys": "exact", "seed": 0}
    for name in ("k", "commit", "grader", "keys", "cost_model", "seed"):
        if config[name] not in (None, plain.get(name)):
            words += [f"--{name.replace('_', '-')}", str(config[name])]
    words += [word for text in _many(config["policies"]) for word in ("--policy", str(text))]
    words += [word for text in _many(config["only"]) for word in ("--only", str(text))]
    return words + [f"--{name.replace('_', '-')}" for name in ("paper", "texts", "tune_on_test") if config[name]]


def _many(value: object) -> list[object]:
    return value if isinstance(value, list) else []
