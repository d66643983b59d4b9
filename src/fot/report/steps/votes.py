"""The vote: when narrowing changes it, who loses votes, and what early voting keeps."""

from __future__ import annotations

from collections import Counter
from zlib import compress

import numpy as np
from numpy.typing import NDArray

from fot.core.policy import Fate
from fot.grading.base import Judgement
from fot.report.exhibit import Exhibit, Figure, NotHere
from fot.report.material import CHECKPOINTS, Cell, Material
from fot.report.steps import vote_drawings as drawings
from fot.report.table import Column, Table, Value, number
from fot.report.words import count, joined, percent, signed
from fot.stats.paired import mcnemar

__all__ = ["concentration", "discordant", "early_voting", "no_answer", "typology"]

Bools = NDArray[np.bool_]
SHARES = (("under 25%", 0.0, 0.25), ("25 to 50%", 0.25, 0.5), ("over 50%", 0.5, 1.01))


def concentration(material: Material) -> Exhibit:
    """How often the funnel changes the answer, by how concentrated the vote of self-consistency is."""
    material.need_gold()
    pairs = list(zip(material.rows("sc"), material.rows("fot"), strict=True))
    rows: list[tuple[Value, ...]] = []
    for name, low, high in SHARES:
        own = [(a, b) for a, b in pairs if a.outcome.verdict.votes and low < _share(a.outcome.verdict.votes) <= high]
        if not own:
            rows.append((name, 0, None, None, None))
            continue
        kinds = float(np.mean([len(a.outcome.verdict.votes) for a, _ in own]))
        changed = float(np.mean([a.outcome.verdict.answer != b.outcome.verdict.answer for a, b in own]))
        net = sum((b.judgement is Judgement.CORRECT) - (a.judgement is Judgement.CORRECT) for a, b in own)
        rows.append((name, len(own), kinds, changed, net))
    columns = (
        Column("share", "votes of the leading answer"),
        Column("problems", "problems", "count"),
        Column("answers", "different answers", "number1"),
        Column("changed", "answer changed by fot", "share"),
        Column("net", "fot − sc, problems", "signed"),  # noqa: RUF001
    )
    voteless = len(pairs) - sum(int(number(row[1])) for row in rows)
    told = [
        f"{percent(number(row[3]))} where it has {row[0]} ({count(number(row[1]), 'problem')}, net "
        f"{signed(number(row[4]))})"
        for row in reversed(rows)
        if row[1]
    ]
    sentence = "By the share of the votes that the leading answer of self-consistency has, the funnel changes the "
    sentence += f"answer of {joined(told)}." if told else "answer of no problem: none has a vote."
    notes = (f"{count(voteless, 'problem')} without any vote left out.",) if voteless else ()
    figure = Figure(
        "concentration",
        "How often the funnel changes the vote, by how concentrated the vote is.",
        lambda canvas: drawings.concentration(canvas, rows),
        7,
        2.9,
    )
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), figures=(figure,), notes=notes)


def _share(votes: object) -> float:
    counts = list(votes.values())  # type: ignore[attr-defined]
    return float(max(counts) / sum(counts))


DISCORDANT = (
    Column("model", "model"),
    Column("both", "both right", "count"),
    Column("neither", "both wrong", "count"),
    Column("won", "fot alone right", "count"),
    Column("lost", "sc alone right", "count"),
    Column("p", "McNemar p", "p"),
    Column("pass_won", "pass@1 where won", "share"),
    Column("pass_lost", "pass@1 where lost", "share"),
)


def discordant(material: Material) -> Exhibit:
    """Problems on which the funnel and self-consistency are not both right or both wrong."""
    material.need_gold()
    base, ours = material.baseline > 0.5, material.hits("fot") > 0.5
    rows: list[tuple[Value, ...]] = []
    for model in material.models:
        mine = material.where(model)
        both, neither = int((base & ours & mine).sum()), int((~base & ~ours & mine).sum())
        won, lost = int((~base & ours & mine).sum()), int((base & ~ours & mine).sum())
        hard = material.pass_rate[base & ~ours & mine]
        easy = material.pass_rate[~base & ours & mine]
        rows.append(
            (
                model,
                both,
                neither,
                won,
                lost,
                mcnemar(won, lost),
                *(float(p.mean()) if len(p) else None for p in (easy, hard)),
            )
        )
    cases = _cases(material)
    won, lost = (sum(int(number(row[at])) for row in rows) for at in (3, 4))
    same = len(material.problems) - won - lost
    sentence = (
        f"Both are right, or both wrong, on {same} of {len(material.problems)} problems; the funnel alone is right on "
        f"{won or 'none'}, self-consistency alone on {lost or 'none'}."
    )

    height = max(2.2, 1.3 + 0.3 * len(rows))
    return Exhibit(
        sentence=sentence,
        table=Table(DISCORDANT, tuple(rows)),
        more=(("cases", cases),) if cases.rows else (),
        figures=(
            Figure(
                "discordant",
                "Left: problems by who is right. Right: those that only one of the two gets right.",
                lambda canvas: drawings.discordant(canvas, rows),
                7,
                height,
            ),
        ),
    )


def _cases(material: Material) -> Table:
    """The problems that one of the two gets right alone, those that the funnel wins first."""
    cases: dict[str, list[tuple[Value, ...]]] = {"won": [], "lost": []}
    for problem, a, b in zip(material.problems, material.rows("sc"), material.rows("fot"), strict=True):
        if (a.judgement is Judgement.CORRECT) != (b.judgement is Judgement.CORRECT):
            kind = "won" if b.judgement is Judgement.CORRECT else "lost"
            answers = (a.outcome.verdict.answer, b.outcome.verdict.answer, problem.gold)
            cases[kind].append((kind, problem.model, problem.benchmark, problem.problem_id, *answers))
    columns = (
        Column("kind", "kind"),
        Column("model", "model"),
        Column("benchmark", "benchmark"),
        Column("problem_id", "problem"),
        Column("sc", "sc says"),
        Column("fot", "fot says"),
        Column("gold", "reference"),
    )
    return Table(columns, (*cases["won"], *cases["lost"]))


REPETITIVE = 0.25
_TAIL = 6_000


def repetitive(material: Material) -> Bools:
    """Rollouts that go in circles: their last 6,000 characters compress to less than a quarter (zlib, level 6)."""
    shares = np.ones(int(material.sizes.sum()))
    for at, text in material.texts():
        tail = text[-_TAIL:].encode("utf-8", "surrogatepass")
        if len(tail) >= _TAIL // 2:
            shares[at] = len(compress(tail, 6)) / len(tail)
    return np.asarray(shares < REPETITIVE)


def typology(material: Material) -> Exhibit:
    """Attention and votes by kind of rollout, under self-consistency and under the funnel."""
    rollouts = material.rollouts
    circling = repetitive(material)
    wrong = rollouts.answered & ~rollouts.correct
    kinds = {
        "correct": rollouts.correct,
        "wrong": wrong & ~circling,
        "repetitive and wrong": wrong & circling,
        "no answer": ~rollouts.answered,
    }
    full, spent = rollouts.tokens.astype(float) ** 2, material.stops("fot").astype(float) ** 2
    votes = rollouts.answered
    kept = votes & np.array([fate in (Fate.BANKED, Fate.FINISHED) for fate in material.fates("fot")])
    total = full.sum()
    rows: list[tuple[Value, ...]] = []
    for name, which in kinds.items():
        rows.append(
            (
                name,
                int(which.sum()),
                float(full[which].sum() / total),
                float(spent[which].sum() / total),
                float((votes & which).sum() / votes.sum()) if votes.any() else None,
                float((kept & which).sum() / votes.sum()) if votes.any() else None,
            )
        )
    columns = (
        Column("kind", "rollouts"),
        Column("n", "number", "count"),
        Column("sc_attention", "attention under sc", "share"),
        Column("fot_attention", "attention under fot", "share"),
        Column("sc_votes", "votes under sc", "share"),
        Column("fot_votes", "votes under fot", "share"),
    )
    left = float(kept.sum() / votes.sum()) if votes.any() else 0.0
    right = float((kept & rollouts.correct).sum() / max(int(rollouts.correct.sum()), 1))
    figure = Figure(
        "typology", "Where attention goes and who votes, under self-consistency and under the funnel.",
        lambda canvas: drawings.typology(canvas, rows), 7, 3.3,
    )  # fmt: skip
    note = "Repetitive: the last 6,000 characters compress to less than a quarter (zlib, level 6)."
    sentence = _typology_sentence(rows, left, right)
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), figures=(figure,), notes=(note,))


def _typology_sentence(rows: list[tuple[Value, ...]], left: float, right: float) -> str:
    waste = [sum(number(row[at]) for row in rows[2:]) for at in (2, 3)]
    wasted = (
        f"Repetitive wrong rollouts and those without an answer take {percent(waste[0])} of self-consistency's "
        f"attention; the funnel brings that to {percent(waste[1])}. "
        if waste[0]
        else "No rollout is repetitive and wrong, and none is without an answer. "
    )
    return (
        f"{wasted}{percent(left)} of the ballot is still cast; correct rollouts keep {percent(right)} of their votes."
    )


def no_answer(material: Material) -> Exhibit:
    """Rollouts that would never answer: how many are left after each checkpoint."""
    rollouts = material.rollouts
    silent = ~rollouts.answered
    if silent.sum() < 5:
        if not silent.any():
            raise NotHere(f"all {len(silent):,} rollouts answer: there is no tail to remove")
        raise NotHere(f"only {int(silent.sum())} of the {len(silent):,} rollouts never answer: too few for a tail")
    stops, fates = material.stops("fot"), material.fates("fot")
    pruned = np.array([fate is Fate.PRUNED for fate in fates])
    marks = _marks(stops, pruned)
    rows: list[tuple[Value, ...]] = []
    whole = Cell("all", "", np.ones(len(material.problems), np.bool_))
    for cell in [*material.cells, *([whole] if len(material.cells) > 1 else [])]:
        mine = silent & cell.which[rollouts.problem]
        problems = int(cell.which.sum())
        left = [float((mine & ~(pruned & (stops <= mark))).sum() / problems) for mark in marks]
        start = float(mine.sum() / problems)
        end = float((mine & ~pruned).sum() / problems)
        rows.append((cell.model, cell.benchmark, start, *left, end, 1 - end / start if start else None))
    columns = (
        Column("model", "model"),
        Column("benchmark", "benchmark"),
        Column("start", "at the start", "number"),
        *(Column(f"at_{mark}", f"after {mark:,}", "number") for mark in marks),
        Column("end", "in the end", "number"),
        Column("removed", "removed", "share"),
    )
    gone = float((silent & pruned).sum() / silent.sum())
    sentence = (
        f"Of {int(silent.sum()):,} rollouts that never answer the funnel prunes {percent(gone)} before they end; of "
        f"all the others it prunes {percent(float((~silent & pruned).sum() / max(int((~silent).sum()), 1)))}."
    )
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), notes=("Means per problem.",))


def _marks(stops: NDArray[np.int64], pruned: Bools) -> list[int]:
    """Checkpoints at which anything was pruned: charges of pruned rollouts that are a checkpoint."""
    seen = Counter(stops[pruned].tolist())
    return [mark for mark in CHECKPOINTS if seen[mark]]


def early_voting(material: Material) -> Exhibit:
    """How much of the ballot the bank holds, and how often a right answer is in it."""
    material.need_gold()
    rows_ = material.rows("fot")
    banked = np.array([sum(fate is Fate.BANKED for fate in row.outcome.fates) for row in rows_])
    survivors = np.array([sum(fate is Fate.FINISHED for fate in row.outcome.fates) for row in rows_])
    votes = np.array([sum(row.outcome.verdict.votes.values()) for row in rows_])
    correct = material.rollouts.correct
    kept = np.array([fate is Fate.BANKED for fate in material.fates("fot")])
    right = np.bincount(material.rollouts.problem, kept & correct, len(rows_)) > 0
    base, ours = material.baseline > 0.5, material.hits("fot") > 0.5
    groups = {"all": np.ones(len(rows_), np.bool_), "fot alone right": ours & ~base, "sc alone right": base & ~ours}
    groups |= {model: material.where(model) for model in material.models} if len(material.models) > 1 else {}
    rows: list[tuple[Value, ...]] = []
    for name, which in groups.items():
        n = int(which.sum())
        means = [float(values[which].mean()) if n else None for values in (banked, survivors, votes, right)]
        rows.append((name, n, *means))
    columns = (
        Column("group", "problems"),
        Column("n", "number", "count"),
        Column("banked", "banked", "number1"),
        Column("survivors", "survivors", "number1"),
        Column("votes", "votes", "number1"),
        Column("right", "a right answer in the bank", "share"),
    )
    first = rows[0]
    sentence = (
        f"On average {number(first[2]):.1f} of {float(material.sizes.mean()):.1f} rollouts are banked, "
        f"{number(first[3]):.1f} run to their end and {number(first[4]):.1f} vote; on {percent(number(first[5]))} of "
        "the problems a right answer is in the bank."
    )

    parts = [(values / material.sizes) for values in (banked, survivors)]
    shares = [
        (name, float(parts[0][material.where(name)].mean()), float(parts[1][material.where(name)].mean()))
        for name in material.models
    ]
    figure = Figure(
        "early-voting",
        "Left: banked rollouts of each problem. Middle: problems with a right answer in the bank. Right: who votes.",
        lambda canvas: drawings.early_voting(canvas, banked, int(material.sizes.max()), rows[:3], shares),
        7,
        2.8,
    )
    return Exhibit(sentence=sentence, table=Table(columns, tuple(rows)), figures=(figure,))
