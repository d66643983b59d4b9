"""What methods get right and save: the main comparison, and where it is decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fot.replay.evaluate import MethodResult
from fot.report import drawing
from fot.report.exhibit import Exhibit, Figure, NotHere
from fot.report.material import Material
from fot.report.table import Column, Table, Value, number
from fot.report.words import count, gained, gains, interval_pp, joined, percent, signed, sure
from fot.stats.proportion import wilson

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["main", "pareto", "pass_gap", "regimes", "strata"]

Bools = NDArray[np.bool_]
CONTENDERS = ("sc", "ac", "fot", "random", "oracle", "adaptive", "fot+decided")

METHOD_COLUMNS = (
    Column("method", "method"),
    Column("correct", "correct", "mean"),
    Column("undecided", "undecided", "mean"),
    Column("accuracy", "accuracy", "share"),
    Column("delta", "gained", "signed"),
    Column("wins", "won", "mean"),
    Column("losses", "lost", "mean"),
    Column("p", "p", "p"),
    Column("ci_pp", "95% interval (pp)", "interval-pp"),
    Column("attention", "attention saved", "share"),
    Column("tokens", "tokens saved", "share"),
    Column("latency", "latency saved", "share"),
    Column("full_model", "full model saved", "share"),
    Column("votes", "votes", "number1"),
)


def method_table(results: Sequence[MethodResult], strong: frozenset[int] = frozenset()) -> Table:
    """Methods under each other; answers that no grader could judge have a column where there are any."""
    rows = [_method_row(result) for result in results]
    shown = [at for at, one in enumerate(METHOD_COLUMNS) if one.name != "undecided" or any(row[at] for row in rows)]
    columns = tuple(METHOD_COLUMNS[at] for at in shown)
    return Table(columns, tuple(tuple(row[at] for at in shown) for row in rows), strong)


def _method_row(result: MethodResult) -> tuple[Value, ...]:
    """A method's figures in the order of `METHOD_COLUMNS`."""
    saved = result.savings
    return (
        result.spec.text,
        result.correct,
        result.undecided,
        result.accuracy,
        result.delta,
        result.wins,
        result.losses,
        result.p,
        (result.ci95_pp.low, result.ci95_pp.high),
        saved.attention,
        saved.tokens,
        saved.latency,
        saved.full_model,
        result.votes_mean,
    )


def contenders(material: Material) -> list[str]:
    """The methods of the main comparison that this pool can carry."""
    return [text for text in dict.fromkeys((*CONTENDERS, *material.policies)) if material.can(text)]


def main(material: Material) -> Exhibit:
    """Every contender on all problems, then by model and benchmark."""
    material.need_gold()
    texts = contenders(material)
    table = method_table([material.result(text) for text in texts], frozenset({texts.index("fot")}))
    fot = material.result("fot")
    sentence = (
        f"The funnel solves {fot.correct:.0f} of {len(material.problems)} problems, {gained(fot.delta)} "
        f"({fot.wins:.0f} won, {fot.losses:.0f} lost), which is {sure(fot.p)}; {interval_pp(fot.ci95_pp)}. It saves "
        f"{percent(fot.savings.attention)} of the attention, {percent(fot.savings.tokens)} of the tokens and "
        f"{percent(fot.savings.latency)} of the latency. "
    )
    random = material.result("random")
    sentence += (
        f"Pruning as much at random solves {random.correct:.1f}; the difference of "
        f"{signed(round(fot.correct - random.correct, 1))} is all that the signal is worth here."
    )
    absent = [text for text in (*CONTENDERS, *material.policies) if text not in texts]
    notes: tuple[str, ...] = (
        "Savings are against sc on the same rollouts. Methods that draw at random report means over their draws.",
    )
    if any(material.result(text).savings.latency < 0 for text in texts):
        notes += (
            "A method that waits for some rollouts before it asks for others takes longer than sc, which runs all at "
            "once: its latency saved is negative.",
        )
    if merging := material.merging:
        notes += (
            f"Votes are counted by {material.keys} keys: {merging.answers_after:,} answers out of "
            f"{merging.answers_before:,}; that changes the winner of sc in {merging.winners_changed} of "
            f"{merging.problems} problems.",
        )
    if material.undecided:
        notes += (
            f"Undecided answers are not correct, and not known to be wrong: {material.undecided:,} of "
            f"{len(material.rollouts.correct):,} rollouts have one.",
        )
    if absent:
        notes += (f"Not shown, as this pool or this installation cannot carry them: {', '.join(absent)}.",)
    several = len(material.cells) > 1
    return Exhibit(
        sentence=sentence,
        table=table,
        more=(("by-cell", _by_cell(material, texts)),) if several else (),
        figures=(_figure(material, texts),) if several else (),
        notes=notes,
    )


def _by_cell(material: Material, texts: list[str]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for cell in material.cells:
        for text in texts:
            result = material.result(text, cell.which)
            saved = result.savings
            figures = (result.accuracy, result.delta, saved.attention, saved.tokens, saved.full_model)
            rows.append((cell.model, cell.benchmark, text, int(cell.which.sum()), *figures))
    for text in texts:
        mine = [row for row in rows if row[2] == text]
        means = [float(np.mean([number(row[at]) for row in mine])) for at in (6, 7)]
        whole = material.result(text)
        rows.append(("mean of cells", "all", text, len(material.problems), whole.accuracy, whole.delta, *means, None))
    columns = (
        Column("model", "model"),
        Column("benchmark", "benchmark"),
        Column("method", "method"),
        Column("problems", "problems", "count"),
        Column("accuracy", "accuracy", "share"),
        Column("delta", "gained", "signed"),
        Column("attention", "attention saved", "share"),
        Column("tokens", "tokens saved", "share"),
        Column("full_model", "full model saved", "share"),
    )
    return Table(columns, tuple(rows))


PANELS = 4
"""Benchmarks beside each other in a figure."""


def _shown(texts: list[str]) -> list[str]:
    return [text for text in ("sc", "ac", "slimsc", "fot", "random") if text in texts]


def _figure(material: Material, texts: list[str]) -> Figure:
    lines = -(-len(material.benchmarks) // PANELS)
    height = 0.75 + lines * (0.6 + len(material.models) * (0.14 + 0.1 * len(_shown(texts))))
    caption = "Accuracy by model and benchmark, with 95% Wilson intervals."
    return Figure("accuracy", caption, lambda canvas: _draw_models(canvas, material, texts), 7.0, height)


def _draw_models(canvas: Canvas, material: Material, texts: list[str]) -> None:
    models, benchmarks, shown = material.models, material.benchmarks, _shown(texts)
    columns = min(len(benchmarks), PANELS)
    lines = -(-len(benchmarks) // columns)
    for panel, benchmark in enumerate(benchmarks):
        axes = drawing.panel(canvas, lines, columns, panel + 1, title=benchmark)
        cells = [cell for cell in material.cells if cell.benchmark == benchmark]
        for at, text in enumerate(shown):
            results = [material.result(text, cell.which) for cell in cells]
            share = np.array([result.accuracy for result in results])
            reach = np.array([wilson(result.correct, len(result.differences)) for result in results])
            place = np.array([models.index(cell.model) for cell in cells]) + (at - (len(shown) - 1) / 2) * 0.17
            axes.errorbar(share, place, xerr=np.abs(reach.T - share), fmt=drawing.MARKS[at], color=drawing.SERIES[at],
                          ms=4, elinewidth=0.9, label="" if panel else text)  # fmt: skip
        axes.set_yticks(range(len(models)), [drawing.short(name) for name in models] if panel % columns == 0 else [])
        axes.set_ylim(len(models) - 0.5, -0.5)
        axes.set_xlim(0, 1.03)
        axes.set_xticks([0, 0.5, 1], ["0", "50%", "100%"], fontsize=7.5)
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        for edge in range(1, len(models)):
            axes.axhline(edge - 0.5, color=drawing.FAINT, lw=0.6)
    drawing.legend(canvas, len(shown), "outside upper center")


def pass_gap(material: Material) -> Exhibit:
    """pass@1, pass@k, the gap between them, and what the vote makes of it."""
    material.need_gold()
    rows: list[tuple[Value, ...]] = []
    for cell in material.cells:
        alone, ceiling = float(material.pass_rate[cell.which].mean()), float((material.right[cell.which] > 0).mean())
        vote = float(material.baseline[cell.which].mean())
        n = int(cell.which.sum())
        rows.append((cell.model, cell.benchmark, n, alone, ceiling, ceiling - alone, vote, wilson(vote * n, n)))
    if len(rows) > 1:
        means = [float(np.mean([number(row[at]) for row in rows])) for at in range(3, 7)]
        rows.append(("mean of cells", "", len(material.problems), *means, None))
    columns = (
        Column("model", "model"),
        Column("benchmark", "benchmark"),
        Column("problems", "problems", "count"),
        Column("pass_1", "pass@1", "share"),
        Column("pass_k", "pass@k", "share"),
        Column("gap", "gap (pp)", "points"),
        Column("sc", "sc", "share"),
        Column("sc_interval", "95% interval of sc", "interval-share"),
    )
    last = rows[-1]
    alone, ceiling, vote = number(last[3]), number(last[4]), number(last[6])
    used = (vote - alone) / (ceiling - alone) if ceiling > alone else 0.0
    sentence = (
        f"A single rollout is right {percent(alone)} of the time, and at least one of k on {percent(ceiling)} of the "
        f"problems: {100 * (ceiling - alone):.1f} points of headroom, of which the vote wins {percent(used)}."
    )
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)))


def halves(material: Material) -> tuple[dict[str, Bools], str]:
    """Two regimes, hard and easy, and by what rule they were told apart."""
    if len(material.problems) < 4:
        raise NotHere("there are too few problems to split into hard and easy ones")
    names = material.benchmarks
    rate = material.pass_rate
    solved = material.right > 0
    if len(names) > 1:
        gaps = {}
        for name in names:
            own = material.where(benchmark=name)
            gaps[name] = float(solved[own].mean() - rate[own].mean())
        middle = float(np.mean(list(gaps.values())))
        hard = np.array([gaps[problem.benchmark] > middle for problem in material.problems], np.bool_)
        listed = ", ".join(name for name in names if gaps[name] > middle)
        if hard.any() and not hard.all():
            return {"hard": hard, "easy": ~hard}, f"Hard: benchmarks whose gap exceeds the mean of all ({listed})."
    order = np.argsort(rate, kind="stable")
    hard = np.zeros(len(rate), np.bool_)
    hard[order[: len(rate) // 2]] = True
    return {"hard": hard, "easy": ~hard}, "One benchmark: hard is the half of the problems with the lower pass@1."


def regimes(material: Material) -> Exhibit:
    """Each method on hard and on easy problems."""
    material.need_gold()
    parts, rule = halves(material)
    texts = contenders(material)
    rows: list[tuple[Value, ...]] = []
    for name, values in (("pass@1", material.pass_rate), ("pass@k", (material.right > 0).astype(float))):
        first, second = (float(values[which].mean()) for which in parts.values())
        rows.append((name, first, None, None, second, None, None))
    for text in texts:
        cells: list[Value] = []
        for which in parts.values():
            result = material.result(text, which)
            cells += [result.accuracy, result.delta, result.savings.attention]
        rows.append((text, *cells))
    columns = [Column("method", "method")]
    for name in parts:
        columns += [
            Column(f"{name}_accuracy", f"{name}: accuracy", "share"),
            Column(f"{name}_delta", f"{name}: gained", "signed"),
            Column(f"{name}_attention", f"{name}: attention saved", "share"),
        ]
    hard, easy = (material.result("fot", which) for which in parts.values())
    sentence = (
        f"On the {count(int(parts['hard'].sum()), 'hard problem')} the funnel {gains(hard.delta)} and saves "
        f"{percent(hard.savings.attention)} of the attention; on the {count(int(parts['easy'].sum()), 'easy one')} it "
        f"{gains(easy.delta)} and saves {percent(easy.savings.attention)}."
    )
    if "ac" in texts:
        others = [percent(material.result("ac", which).savings.attention) for which in parts.values()]
        sentence += f" Adaptive Consistency saves {others[0]} on the hard ones and {others[1]} on the easy ones."
    strong = frozenset({texts.index("fot") + 2})
    return Exhibit(sentence=sentence, table=Table(tuple(columns), tuple(rows), strong), notes=(rule,))


STRATA = (("p1 = 0", -1.0, 0.0), ("0 < p1 ≤ 0.25", 0.0, 0.25), ("0.25 < p1 ≤ 0.5", 0.25, 0.5), ("p1 > 0.5", 0.5, 1.0))


def strata(material: Material) -> Exhibit:
    """The vote and the funnel by how often a single rollout is right."""
    material.need_gold()
    rate, ours = material.pass_rate, material.hits("fot")
    random = material.hits("random")
    rows: list[tuple[Value, ...]] = []
    for name, low, high in STRATA:
        which = (rate > low) & (rate <= high)
        n = int(which.sum())
        if not n:
            rows.append((name, 0, None, None, None, None))
            continue
        means = [float(values[which].mean()) for values in (material.baseline, ours, random)]
        rows.append((name, n, *means, means[1] - means[0]))
    columns = (
        Column("stratum", "pass@1 of the problem"),
        Column("problems", "problems", "count"),
        *(Column(name, name, "share") for name in ("sc", "fot", "random")),
        Column("delta", "fot − sc (pp)", "points"),  # noqa: RUF001
    )
    return Exhibit(sentence=_strata_sentence(rows), table=Table(columns, tuple(rows)))


def _strata_sentence(rows: Sequence[tuple[Value, ...]]) -> str:
    lost = count(number(rows[0][1]), "problem")
    text = f"{lost} cannot be solved by any way of pruning, since no rollout is right. " if rows[0][1] else ""
    apart = [row for row in rows if row[1] and round(number(row[1]) * number(row[5]))]
    if not apart:
        return f"{text}In every stratum the funnel solves as many problems as the vote."
    told = [
        f"{percent(number(row[3]))} against {percent(number(row[2]))} where {row[0]} "
        f"({count(number(row[1]), 'problem')}, {signed(round(number(row[1]) * number(row[5])))})"
        for row in apart
    ]
    rest = "; in the other strata both solve as many" if len(apart) < len([row for row in rows if row[1]]) else ""
    return f"{text}The funnel solves {joined(told)}, compared with the vote of all rollouts{rest}."


BUDGETS = (1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 48, 64)


def pareto(material: Material) -> Exhibit:
    """Accuracy against attention: fewer whole rollouts, or the same ones narrowed."""
    material.need_gold()
    k = material.k
    if not material.can(f"first-n:n={min(2, k)}") or k < 4:
        raise NotHere("a curve of smaller votes needs at least 4 rollouts a problem")
    even = bool((material.sizes == k).all())
    whole = f"sc@{k}" if even else "sc"
    votes = {f"sc@{size}": material.result(f"first-n:n={size}") for size in BUDGETS if size < k}
    votes[whole] = material.result("sc")
    methods = {text: material.result(text) for text in contenders(material)[1:]}
    rows: list[tuple[Value, ...]] = []
    for kind, results in (("sc", votes), ("method", methods)):
        for name, result in results.items():
            reach = wilson(result.correct, len(material.problems))
            rows.append((kind, name, 1 - result.savings.attention, result.accuracy, reach))
    columns = (
        Column("kind", "kind"),
        Column("name", "name"),
        Column("attention", "attention against sc", "share"),
        Column("accuracy", "accuracy", "share"),
        Column("interval", "95% interval", "interval-share"),
    )
    fot = methods["fot"]
    near = min(votes, key=lambda name: abs(votes[name].savings.attention - fot.savings.attention))
    rival = votes[near]
    sentence = (
        f"The funnel spends {percent(1 - fot.savings.attention)} of the attention of {whole} and is right on "
        f"{percent(fot.accuracy)} of the problems; the vote that spends most nearly as much, {near} with "
        f"{percent(1 - rival.savings.attention)}, is right on {percent(rival.accuracy)}."
    )
    low, high = wilson(fot.correct, len(material.problems))
    caption = (
        "Accuracy and attention spent. The line is self-consistency with fewer rollouts. Each accuracy alone has a 95% "
        f"interval some {50 * (high - low):.0f} points to either side; differences on the same problems are surer, "
        "and stand in the main comparison."
    )
    figure = Figure("pareto", caption,
                    lambda canvas: _draw_pareto(canvas, rows), 6.2, 3.8)  # fmt: skip
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), figures=(figure,), folded=True)


def _draw_pareto(canvas: Canvas, rows: list[tuple[Value, ...]]) -> None:
    axes = drawing.panel(canvas, x="attention spent, against sc on all rollouts", y="accuracy")
    axes.grid(visible=True, axis="both")
    curve = [(number(row[2]), number(row[3]), str(row[1])) for row in rows if row[0] == "sc"]
    axes.plot(
        [x for x, _, _ in curve],
        [y for _, y, _ in curve],
        "-o",
        color=drawing.MUTED,
        ms=3.5,
        label="sc, fewer rollouts",
    )
    for x, y, name in curve[-1:] + curve[: len(curve) - 1 : 2]:  # below and right of a rising line there is room
        axes.annotate(
            name, (x, y), xytext=(3, -10), textcoords="offset points", ha="left", fontsize=7, color=drawing.MUTED
        )
    for at, row in enumerate(row for row in rows if row[0] == "method"):
        look: dict[str, Any] = {
            "marker": drawing.MARKS[(at + 1) % 8],
            "color": drawing.SERIES[at % 8],
            "mec": drawing.PAPER,
            "mew": 0.3,
        }
        size = 10 if row[1] == "fot" else 7.5
        axes.plot(number(row[2]), number(row[3]), ls="none", ms=size, label=str(row[1]), **look)
    drawing.percent_axis(axes.xaxis)
    drawing.percent_axis(axes.yaxis)
    axes.margins(y=0.15)
    drawing.legend(axes, 1, "lower right")
