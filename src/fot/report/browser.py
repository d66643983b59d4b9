"""The data of the problem browser: every problem with its rollouts as short rows of numbers."""

from __future__ import annotations

from fot.core.policy import Fate
from fot.grading.base import Judgement
from fot.report.material import CHECKPOINTS, Material
from fot.report.page import embedded

__all__ = ["POINTS", "TEXT_BUDGET", "lanes", "texts"]

POINTS = 6
"""Places of a lane at which its density is told: at so many even parts of what it was charged."""
TEXT_BUDGET = 2_500_000
"""Bytes that the texts of rollouts may take in a page, as they are written there."""
LONGEST_QUESTION = 2_000
LONGEST_TAIL, SHORTEST_TAIL = 2_000, 80

_FATES = {Fate.BANKED: "b", Fate.PRUNED: "p", Fate.FINISHED: "f"}


def lanes(material: Material) -> dict[str, object]:
    """What the page's script reads; see `static/report.js` for the order of the values."""
    numbers: dict[str, int] = {}

    def number(answer: str | None) -> int:
        return -1 if answer is None else numbers.setdefault(answer, len(numbers))

    finals = [answers for sheet in material.sheets for answers in sheet.finals]
    tokens = material.rollouts.tokens.tolist()
    right = material.rollouts.correct.tolist()
    banked, densities = _banked(material), _densities(material)
    problems: list[list[object]] = []
    first = 0
    pairs = zip(material.rows("sc"), material.rows("fot"), strict=True)
    for at, (base, ours) in enumerate(pairs):
        own = []
        for rollout, (fate, stop) in enumerate(zip(ours.outcome.fates, ours.outcome.stops, strict=True)):
            here = first + rollout
            stood = number(banked[here]) if fate is Fate.BANKED else -1
            final = number(finals[at][rollout])
            own.append([tokens[here], stop, _FATES[fate], final, int(right[here]), stood, densities[here]])
        first += len(own)
        problem = base.problem
        problems.append(
            [
                material.models.index(problem.model),
                material.benchmarks.index(problem.benchmark),
                problem.problem_id,
                problem.gold,
                number(base.outcome.verdict.answer),
                number(ours.outcome.verdict.answer),
                int(base.judgement is Judgement.CORRECT),
                int(ours.judgement is Judgement.CORRECT),
                own,
            ]
        )
    return {
        "models": material.models,
        "benchmarks": material.benchmarks,
        "checkpoints": CHECKPOINTS,
        "problems": problems,
        "answers": list(numbers),
    }


def _banked(material: Material) -> list[str | None]:
    """For each rollout the answer that its prefix stood by where the funnel stopped it."""
    answers: list[str | None] = []
    first = 0
    stops = material.stops("fot")
    for index, sheet in zip(material.indexes, material.sheets, strict=True):
        for part in sheet.parts:
            cuts = index.cuts(part.rows, stops[first : first + len(part.rows)])
            numbers = index.committed(part.rows, cuts)
            answers += [index.answers[one] if one >= 0 else None for one in numbers.tolist()]
            first += len(part.rows)
    return answers


def _densities(material: Material) -> list[list[float]]:
    """For each rollout its density at every part of what the funnel charged for it."""
    stops = material.stops("fot")
    found: list[list[list[float]]] = [[] for _ in range(POINTS)]
    first = 0
    for index, sheet in zip(material.indexes, material.sheets, strict=True):
        for part in sheet.parts:
            own = stops[first : first + len(part.rows)]
            for number in range(POINTS):
                cuts = index.cuts(part.rows, own * (number + 1) // POINTS)
                found[number] += [round(density, 1) for density in index.densities(part.rows, cuts).tolist()]
            first += len(part.rows)
    return [list(each) for each in zip(*found, strict=True)]


def texts(material: Material) -> list[list[object]]:
    """For each problem its question and the ends of its rollouts' texts, as much as the budget allows."""
    each = max(SHORTEST_TAIL, min(LONGEST_TAIL, TEXT_BUDGET // max(int(material.sizes.sum()), 1)))
    tails = [""] * int(material.sizes.sum())
    for at, text in material.texts():
        tails[at] = _tail(text, each)
    found: list[list[object]] = []
    first = 0
    for problem, size in zip(material.problems, material.sizes.tolist(), strict=True):
        question = problem.problem
        found.append([question and question[:LONGEST_QUESTION], tails[first : first + size]])
        first += size
    return found


def _tail(text: str, most: int) -> str:
    """The end of a text that takes at most so many bytes in the page: escapes and other scripts take several each."""
    tail = text[-most:]
    while (size := len(embedded(tail).encode())) > most + 2:  # its quotes
        tail = tail[len(tail) - len(tail) * most // size :]
    return tail
