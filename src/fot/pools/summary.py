"""What is in a pool, in numbers: behind `fot pool info`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from fot.core.markers import PAPER_KERNEL, Kernel
from fot.core.rollout import CHARS_PER_TOKEN, Cut
from fot.pools.index import Index, index_of
from fot.pools.read import Pool

__all__ = ["INFO_SCHEMA", "Group", "Spread", "Summary", "describe"]

INFO_SCHEMA = "fot.pool.info/1"


class Spread(TypedDict):
    """How a quantity is distributed over rollouts, or over problems."""

    mean: float
    min: float
    p10: float
    median: float
    p90: float
    max: float


class Group(TypedDict):
    """One model on one benchmark."""

    model: str
    benchmark: str
    problems: int
    rollouts: int
    biased: int
    rollouts_per_problem: Spread
    tokens: Spread | None
    chars: Spread
    density: Spread


class Summary(TypedDict):
    """Everything `fot pool info --json` prints. Over all rows, the biased ones included."""

    schema: str
    pool: str
    format: str
    bytes: int
    synthetic: str | None
    rejected: int
    models: list[str]
    benchmarks: list[str]
    problems: int
    rollouts: int
    biased: int
    rollouts_per_problem: Spread
    unbiased_per_problem: Spread
    tokens: Spread | None
    chars: Spread
    chars_per_token: float | None
    finish_reasons: dict[str, int]
    cut: Cut
    cuts: dict[str, int]
    estimated_chars_per_token: float | None
    density: Spread
    kernel: str
    no_answer: dict[str, float]
    groups: list[Group]


def describe(
    pool: Pool,
    detectors: Sequence[str],
    kernel: Kernel = PAPER_KERNEL,
    progress: Callable[[int], None] = lambda _: None,
) -> Summary:
    """Sum a pool up; `no_answer` has for each of `detectors` the share of rollouts whose whole text commits to nothing.

    Quantities that no row knows are None.
    """
    index = index_of(pool, kernel, None, progress)
    everything = np.arange(len(pool.n_chars))
    densities = index.densities(everything, pool.n_chars)
    known = pool.n_tokens > 0
    cuts = Counter(pool.cuts.tolist())
    reasons = Counter(pool.column("finish_reason", everything).to_pylist())
    return Summary(
        schema=INFO_SCHEMA,
        pool=pool.name,
        format=pool.manifest.schema,
        bytes=pool.manifest.rows_bytes,
        synthetic=pool.manifest.synthetic,
        rejected=pool.manifest.rejected,
        models=list(dict.fromkeys(problem.model for problem in pool.problems)),
        benchmarks=list(dict.fromkeys(problem.benchmark for problem in pool.problems)),
        problems=len(pool.problems),
        rollouts=len(everything),
        biased=int((~pool.unbiased).sum()),
        rollouts_per_problem=_spread(np.array([problem.count for problem in pool.problems])),
        unbiased_per_problem=_spread(_unbiased_counts(pool)),
        tokens=_tokens(pool, everything),
        chars=_spread(pool.n_chars),
        chars_per_token=float(pool.n_chars[known].sum() / pool.n_tokens[known].sum()) if known.any() else None,
        finish_reasons={str(reason or "unknown"): count for reason, count in reasons.most_common()},
        cut=pool.cut(),
        cuts=dict(cuts),
        estimated_chars_per_token=CHARS_PER_TOKEN if cuts["estimated"] else None,
        density=_spread(densities),
        kernel=kernel.name,
        no_answer={name: _without_answer(index_of(pool, kernel, name, progress)) for name in detectors},
        groups=_groups(pool, densities),
    )


def _without_answer(index: Index) -> float:
    return float((index.final < 0).mean())


def _unbiased_counts(pool: Pool) -> NDArray[np.int64]:
    return np.add.reduceat(pool.unbiased.astype(np.int64), [problem.first for problem in pool.problems])


def _groups(pool: Pool, densities: NDArray[np.float64]) -> list[Group]:
    """The same figures for each model on each benchmark."""
    members: dict[tuple[str, str], list[int]] = {}
    for at, problem in enumerate(pool.problems):
        members.setdefault((problem.model, problem.benchmark), []).append(at)
    groups: list[Group] = []
    for (model, benchmark), numbers in members.items():
        problems = [pool.problems[at] for at in numbers]
        rows = np.concatenate([np.arange(problem.first, problem.first + problem.count) for problem in problems])
        groups.append(
            Group(
                model=model,
                benchmark=benchmark,
                problems=len(problems),
                rollouts=len(rows),
                biased=int((~pool.unbiased[rows]).sum()),
                rollouts_per_problem=_spread(np.array([problem.count for problem in problems])),
                tokens=_tokens(pool, rows),
                chars=_spread(pool.n_chars[rows]),
                density=_spread(densities[rows]),
            )
        )
    return groups


def _tokens(pool: Pool, rows: NDArray[np.int64]) -> Spread | None:
    counted = pool.n_tokens[rows]
    counted = counted[counted >= 0]
    return _spread(counted) if len(counted) else None


def _spread(values: NDArray[np.int64] | NDArray[np.float64]) -> Spread:
    low, p10, median, p90, high = np.quantile(values, [0, 0.1, 0.5, 0.9, 1]).tolist()
    return Spread(mean=float(values.mean()), min=low, p10=p10, median=median, p90=p90, max=high)
