"""From paths and choices to a study: which rollouts, seen through which detector, judged and priced how."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path

from fot.core.registry import unknown_name
from fot.core.rollout import Cut
from fot.core.shapes import SHAPES, Shape, shape_from_config, shape_of
from fot.errors import ConfigError, PoolError
from fot.grading.base import Grader
from fot.grading.base import grader as grader_of
from fot.grading.keys import Merging, vote_keys, winners_changed
from fot.methods import Spec, parse
from fot.pools.pieces import Pieces
from fot.pools.read import Pool, Selection
from fot.pools.shard import Shard
from fot.replay.evaluate import Judge, MethodResult, Study
from fot.replay.graded import store_beside
from fot.replay.ranking import Ranking
from fot.replay.sheet import Sheet

__all__ = [
    "Chosen",
    "choose",
    "compare",
    "cost_model",
    "judge_of",
    "share_simulations",
    "sheets_of",
    "study_of",
    "winners_merged",
]


def compare(
    pools: Sequence[str | Path],
    policies: Sequence[str],
    *,
    k: int | None = None,
    commit: str = "boxed",
    grader: str = "exact",
    keys: str = "exact",
    shape: str | None = None,
    seed: int = 0,
) -> list[MethodResult]:
    """Methods side by side on recorded rollouts, as `fot simulate` shows them: a result for each policy."""
    specs = [parse(text) for text in policies]
    chosen = choose([Path(path) for path in pools], k)
    study = study_of(chosen, commit=commit, grader=grader, shape=cost_model(shape), seed=seed, keys=keys)
    return [study.evaluate(spec) for spec in specs]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rollouts of one or more pools that a study runs on."""

    pools: tuple[Pool, ...]
    selections: tuple[Selection, ...]
    k: int | None

    @property
    def problems(self) -> int:
        """Problems that take part."""
        return sum(len(selection.parts) for selection in self.selections)

    @property
    def rollouts(self) -> int:
        """Rollouts that take part."""
        return sum(len(selection.rows) for selection in self.selections)

    @property
    def left_out(self) -> int:
        """Problems with fewer than k rollouts."""
        return sum(len(selection.left_out) for selection in self.selections)

    @property
    def cut(self) -> Cut:
        """How prefixes are found; of several ways, the least exact."""
        ways = {pool.cut(chosen.rows) for pool, chosen in zip(self.pools, self.selections, strict=True)}
        order: tuple[Cut, ...] = ("estimated", "interpolated", "exact")
        return next(way for way in order if way in ways)

    @property
    def synthetic(self) -> str | None:
        """By what texts were made up, where they were not written by a model."""
        return ", ".join(pool.manifest.synthetic for pool in self.pools if pool.manifest.synthetic) or None

    def describe(self) -> dict[str, object]:
        """What results say about their rollouts."""
        problems = [part.problem for selection in self.selections for part in selection.parts]
        return {
            "name": " + ".join(pool.name for pool in self.pools),
            "models": sorted({problem.model for problem in problems}),
            "benchmarks": sorted({problem.benchmark for problem in problems}),
            "problems": self.problems,
            "rollouts": self.rollouts,
            "k": self.k,
            "cut": self.cut,
            "left_out": self.left_out,
            "synthetic": self.synthetic,
        }


def choose(paths: Sequence[Path], k: int | None, progress: Callable[[int], None] = lambda _: None) -> Chosen:
    """The first `k` rollouts of every problem of these pools; `PoolError` when no problem has that many."""
    pools = tuple(Pool.open(path, progress) for path in paths)
    selections = tuple(pool.select(k) for pool in pools)
    chosen = Chosen(pools, selections, k)
    if not chosen.problems:
        most = max((len(part.rows) for pool in pools for part in pool.select().parts), default=0)
        raise PoolError(
            f"no problem has {k} rollouts" if most else "there are no rollouts to simulate",
            f"The largest has {most}: give --k {most} or less." if most else "Rows with unbiased = false do not count.",
        )
    seen: set[object] = set()
    for problem in (part.problem for selection in selections for part in selection.parts):
        if problem.key in seen:
            raise PoolError(f"the problem {'/'.join(problem.key)} is in more than one pool", "Name each pool once.")
        seen.add(problem.key)
    return chosen


def study_of(
    chosen: Chosen,
    *,
    commit: str,
    grader: str,
    shape: Callable[[str], Shape | None],
    seed: int,
    keys: str = "exact",
    ranking: Ranking | None = None,
) -> Study:
    """Index the pools and run self-consistency, the mark for everything else.

    `keys` names what makes two answers one vote; `ranking` is a model's, by `fot rank`. Grades of a pool alone are kept
    beside it (`grades.sqlite`).
    """
    sheets = sheets_of(chosen, commit, keys, ranking)
    return Study(sheets, judge_of(chosen, sheets, grader_of(grader)), seed=seed, shape=shape)


def sheets_of(chosen: Chosen, commit: str, keys: str = "exact", ranking: Ranking | None = None) -> list[Sheet]:
    """A sheet for each pool; outcomes that take time are kept beside the pool."""
    merging = None if keys == "exact" else vote_keys(keys)
    pairs = zip(chosen.pools, chosen.selections, strict=True)
    return [
        Sheet(pool, selection.parts, commit, merging, Pieces.beside(pool), ranking)
        for pool, selection in pairs
        if selection.parts
    ]


def share_simulations(
    sheets: Sequence[Sheet], specs: Sequence[Spec], seed: int, shard: Shard, progress: Callable[[int], None]
) -> int:
    """Leave one worker's share of the outcomes of these methods; how many pieces it has. `progress`: methods done."""
    numbers = count()
    pieces = 0
    for at, spec in enumerate(specs):
        draws = max(spec.draws(len(part.rows)) for sheet in sheets for part in sheet.parts)
        for draw, sheet in product(range(draws), sheets):
            pieces += sheet.share(spec, seed, draw, lambda: shard.owns(next(numbers)))
        progress(at + 1)
    return pieces


def judge_of(chosen: Chosen, sheets: Sequence[Sheet], grader: Grader) -> Judge:
    """Who judges the answers of these sheets; what costs time to judge is kept beside the first pool."""
    if grader.name == "exact":
        return Judge(grader)
    written = {key: text for sheet in sheets for key, text in sheet.written.items()}
    return Judge(grader, store_beside(chosen.pools[0]), written)


def winners_merged(chosen: Chosen, commit: str, keys: str) -> Merging:
    """What merging answers by `keys` does to the votes of self-consistency."""
    pairs = zip(chosen.pools, chosen.selections, strict=True)
    finals = [final for pool, selection in pairs for final in Sheet(pool, selection.parts, commit).finals]
    with vote_keys(keys) as merging:
        return winners_changed(merging, [[answer for answer in final if answer is not None] for final in finals])


def cost_model(name: str | None) -> Callable[[str], Shape | None]:
    """Which shape prices a model: its own by default, or one for all: a known name or the path of a config.json."""
    if name is None:
        return shape_of
    known = shape_of(name)
    if known is None and (name.endswith(".json") or Path(name).exists()):
        known = _read_config(Path(name))
    if known is None:
        raise unknown_name("model shape", name, SHAPES)
    return lambda model: known


def _read_config(path: Path) -> Shape:
    path = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", "Give a model's config.json.") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{path} holds no JSON object", "Give a model's config.json.")
    return shape_from_config(config)
