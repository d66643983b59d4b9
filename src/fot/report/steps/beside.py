"""Published beside measured: the paper's headline figures and this pool's, one under the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fot.core.markers import PAPER_KERNEL
from fot.report.exhibit import Exhibit, NotHere
from fot.report.material import Material
from fot.report.table import Column, Table, Value, written
from fot.report.words import count
from fot.stats.bins import quantile_bins, trend
from fot.stats.correlation import correlation, equal_groups

__all__ = ["beside"]

Measure = Callable[[Material], tuple[Value, str]]


def _profile(kind: str, what: str) -> Measure:
    def measure(material: Material) -> tuple[Value, str]:
        rollouts = material.rollouts
        which = {
            "correct": rollouts.correct,
            "incorrect": rollouts.answered & ~rollouts.correct,
            "no answer": ~rollouts.answered,
        }[kind]
        if what == "share":
            return float(which.mean()), "share"
        if not which.any():
            raise NotHere("no such rollouts")
        if what == "tokens":
            return float(rollouts.tokens[which].mean()), "count"
        if what == "density":
            return float(rollouts.density[which].mean()), "number"
        squares = rollouts.tokens.astype(float) ** 2
        return float(squares[which].mean() / squares[rollouts.correct].mean()), "times"

    return measure


def _saved(text: str, name: str) -> Measure:
    return lambda material: (getattr(material.result(text).savings, name), "share")


def _decile_r(material: Material) -> tuple[Value, str]:
    return trend(quantile_bins(material.rollouts.density, material.rollouts.correct)).r, "number3"


def _rollout_r(material: Material) -> tuple[Value, str]:
    return correlation(material.rollouts.correct, material.rollouts.density).r, "number3"


def _markers_meeting(material: Material) -> tuple[Value, str]:
    rollouts = material.rollouts
    benchmark = np.array([problem.benchmark for problem in material.problems])[rollouts.problem]
    weights = equal_groups(benchmark)
    chars = np.maximum(material.chars, 1)
    told = [correlation(rollouts.correct, counts / chars, weights) for counts in material.marker_counts]
    return sum(one.r < 0 and one.p < 0.05 for one in told), "count"


def _gap(material: Material) -> tuple[Value, str]:
    solved, alone = material.right > 0, material.pass_rate
    return float(np.mean([(solved[cell.which] - alone[cell.which]).mean() for cell in material.cells])), "points"


def _saved_by_cell(text: str) -> Measure:
    """Every model on every benchmark counting alike, as in the paper's overall column."""
    return lambda material: (
        float(np.mean([material.result(text, cell.which).savings.attention for cell in material.cells])),
        "share",
    )


def _delta(text: str) -> Measure:
    return lambda material: (100 * material.result(text).delta / len(material.problems), "pp")


def _votes(text: str) -> Measure:
    return lambda material: (material.result(text).votes_mean / float(material.sizes.mean()), "share")


LINES: tuple[tuple[str, str, str, Measure], ...] = (
    ("correct rollouts", "table 1", "90.5%", _profile("correct", "share")),
    ("rollouts without an answer", "table 1", "2.1%", _profile("no answer", "share")),
    ("tokens of a correct rollout", "table 1", "5,575", _profile("correct", "tokens")),
    ("tokens of an incorrect rollout", "table 1", "16,128", _profile("incorrect", "tokens")),
    ("density of a correct rollout", "table 1", "3.46", _profile("correct", "density")),
    ("density of an incorrect rollout", "table 1", "6.14", _profile("incorrect", "density")),
    ("attention, incorrect against correct", "table 1", "6.0x", _profile("incorrect", "attention")),
    ("correlation over density deciles", "table 9", "-0.82", _decile_r),
    ("density with correct, by rollout", "section 3.2", "-0.30", _rollout_r),
    ("markers that meet the criterion, of 21", "table 8", "21", _markers_meeting),
    ("gap from pass@1 to pass@k (pp), mean of cells", "table 13", "+14.4", _gap),
    ("gained by the funnel (pp)", "tables 2, 16", "+0.1", _delta("fot")),
    ("gained pruning at random (pp)", "table 7", "+0.01", _delta("random")),
    ("gained without early voting (pp)", "table 7", "+0.25", _delta("fot:early_voting=off")),
    ("attention saved, pooled", "tables 7, 21", "48.7%", _saved("fot", "attention")),
    ("tokens saved", "table 21", "23.0%", _saved("fot", "tokens")),
    ("full model saved", "table 15", "28.8%", _saved("fot", "full_model")),
    ("attention saved, mean of cells", "table 2", "50.7%", _saved_by_cell("fot")),
    ("the same by Adaptive Consistency", "table 2", "56.5%", _saved_by_cell("ac")),
    ("votes still cast (published: 19.7 of 32)", "section 3.3", "61.6%", _votes("fot")),
)
"""What is compared: its name, where it is printed, as printed, and how it is measured here."""


def beside(material: Material) -> Exhibit:
    """The paper's headline figures and this pool's."""
    material.need_gold()
    rows: list[tuple[Value, ...]] = []
    for name, where, printed, measure in LINES:
        try:
            value, form = measure(material)
        except NotHere:
            continue
        rows.append((name, where, printed.replace("x", "\N{MULTIPLICATION SIGN}"), written(value, form)))
    columns = (
        Column("figure", "figure"),
        Column("where", "in the paper"),
        Column("published", "published", "printed"),
        Column("measured", "measured here", "printed"),
    )
    told = {str(row[0]): str(row[3]) for row in rows}
    meeting = told.get("markers that meet the criterion, of 21", "0")
    sentence = (
        f"The paper's pool is {count(115_200, 'rollout')} of six models on four competition-mathematics benchmarks; "
        "this "
        f"one is {count(int(material.sizes.sum()), 'rollout')} of {count(len(material.models), 'model')} on "
        f"{', '.join(material.benchmarks)}. There the funnel saves 48.7% of the attention, here "
        f"{told.get('attention saved, pooled', 'none')}; {meeting} of the {len(PAPER_KERNEL.markers)} markers meet the "
        f"paper's criterion here."
    )
    return Exhibit(
        sentence=sentence,
        table=Table(columns, tuple(rows)),
        notes=(
            "A cell is one model on one benchmark. Two different pools: a difference is a finding about transfer, not "
            "an error on either side. The same checkpoints come late for models that think briefly, and save less "
            "there.",
        ),
    )
