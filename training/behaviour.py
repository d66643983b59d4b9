"""What a set of rollouts is like: accuracy, votes, lengths, hesitation, wrong steps and recovery, with intervals."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, isnan
from typing import TypeVar

from fot.tasks.arithmetic import Problem, Step

__all__ = ["OUTCOMES", "Attempt", "density", "profile", "redo_rates", "shows_wrong_step"]

MARKERS = (
    "perhaps", "Wait,", "Wait", "actually", "wrong", "However", "Or ", "no,", "Alternatively", "But wait", "Actually",
    "Maybe", "incorrect", "instead", "I was wrong", "Let me think", "Let me reconsider", "I think I made",
    "Re-examining", "This isn't", "Let me try",
)  # fmt: skip
OUTCOMES = ("correct", "incorrect", "no answer")
T = TypeVar("T")
_DRAWS = 400
_EQUATION = re.compile(r"(\d+)([+*-])(\d+)([+-])(\d)=(\d+)")
_RESULT = re.compile(r"(\d{3})([+*-])(\d+)[.:] [^\n]*?(?:So|Also|This gives) (\d{3})")
_BOXED = re.compile(r"\\boxed\{(\d+)\}")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rollout as it is judged: its text, its tokens, and whether it reached its end."""

    text: str
    n_tokens: int
    gold: str

    @property
    def answer(self) -> str | None:
        return _boxed(self.text)

    @property
    def is_correct(self) -> bool:
        return self.answer == self.gold

    @property
    def outcome(self) -> str:
        """One of `OUTCOMES`."""
        return "no answer" if self.answer is None else "correct" if self.is_correct else "incorrect"


@cache
def _boxed(text: str) -> str | None:
    found = _BOXED.findall(text)
    return found[-1] if found else None


@cache
def density(text: str) -> float:
    """Markers per 1,000 characters, as the paper counts them."""
    return sum(text.count(marker) for marker in MARKERS) * 1000 / max(1, len(text))


def has_false_equation(text: str) -> bool:
    """Whether any digit equation in the text is false."""
    return any(not _holds(found) for found in _EQUATION.findall(text))


def shows_wrong_step(problem: Problem, text: str) -> bool:
    """Whether the text shows a false equation, or a step whose stated result is not that of its operation."""
    if has_false_equation(text):
        return True
    return any(
        Step(sign, int(operand)).apply(int(value)) != int(result)
        for value, sign, operand, result in _RESULT.findall(text)
    ) or _leaves_problem(problem, text)


def _leaves_problem(problem: Problem, text: str) -> bool:
    """Whether a step applies an operation that the problem does not put there."""
    for number, sign, operand in re.findall(r"Step (\d): \d{3}([+*-])(\d+)\.", text):
        if int(number) > len(problem.steps) or problem.steps[int(number) - 1] != Step(sign, int(operand)):
            return True
    return False


def _holds(equation: tuple[str, ...]) -> bool:
    left, sign, right, carry_sign, carry, result = equation
    a, b, c = int(left), int(right), int(carry)
    first = a + b if sign == "+" else a - b if sign == "-" else a * b
    return first + (c if carry_sign == "+" else -c) == int(result)


def redo_rates(texts: Sequence[str]) -> dict[str, float | int]:
    """How often a flag was right that the last step was wrong, and how often the redo after it is then right."""
    flagged = truthful = redone = 0
    for text in texts:
        results = list(_RESULT.finditer(text))
        for before, check, after in zip(results, results[1:], results[2:], strict=False):
            if "This gives" not in check.group() or before.group(1, 2, 3) != after.group(1, 2, 3):
                continue
            flagged += 1
            value, sign, operand = before.group(1, 2, 3)
            exact = Step(sign, int(operand)).apply(int(value))
            if int(before.group(4)) != exact:
                truthful += 1
                redone += int(after.group(4)) == exact
    return {"flags": flagged, "truthful_flags": truthful, "redo_right_after_truthful": _share(redone, truthful)}


Groups = Sequence[Sequence[Attempt]]


def profile(problems: Sequence[Problem], rollouts: Groups, *, seed: int = 0) -> dict[str, object]:
    """The behaviour profile of some rollouts for each problem; intervals are 95% bootstraps over problems."""
    flat = [attempt for group in rollouts for attempt in group]
    return {
        "problems": len(rollouts),
        "rollouts": len(flat),
        **{name: _bootstrap(figure, rollouts, seed) for name, figure in _OVER_PROBLEMS.items()},
        "by outcome": {outcome: _of_outcome(outcome, rollouts, seed) for outcome in OUTCOMES},
        "auroc within problems": _bootstrap(_mean_within_auroc, rollouts, seed),
        **_recovery(problems, rollouts, seed),
        **redo_rates([attempt.text for attempt in flat]),
        "tokens": _lengths(flat),
        "pass@k curve": {
            str(k): round(_mean([_pass_at(k, len(g), sum(a.is_correct for a in g)) for g in rollouts]), 4)
            for k in (1, 2, 4, 8, 16, 32)
            if k <= min(len(g) for g in rollouts)
        },
    }


def _of_outcome(outcome: str, groups: Groups, seed: int) -> dict[str, dict[str, float]]:
    """A column of the first table of the paper; attention is relative to a correct rollout."""

    def members(drawn: Groups, of: str) -> list[Attempt]:
        return [a for g in drawn for a in g if a.outcome == of]

    def squares(drawn: Groups, of: str) -> float:
        return _mean([a.n_tokens**2 for a in members(drawn, of)])

    figures: dict[str, Callable[[Groups], float]] = {
        "share": lambda drawn: len(members(drawn, outcome)) / sum(map(len, drawn)),
        "tokens": lambda drawn: _mean([a.n_tokens for a in members(drawn, outcome)]),
        "density": lambda drawn: _mean([density(a.text) for a in members(drawn, outcome)]),
        "attention": lambda drawn: squares(drawn, outcome) / squares(drawn, "correct"),
    }
    return {name: _bootstrap(figure, groups, seed) for name, figure in figures.items()}


def _recovery(problems: Sequence[Problem], rollouts: Groups, seed: int) -> dict[str, dict[str, float]]:
    """How many rollouts show a wrong step (and how many a false equation), and how many of those end correct."""
    pairs = list(zip(problems, rollouts, strict=True))
    erring = [[a.is_correct for a in group if shows_wrong_step(problem, a.text)] for problem, group in pairs]
    false = [[a.is_correct for a in group if has_false_equation(a.text)] for _, group in pairs]
    sizes = [len(group) for group in rollouts]
    return {
        "shows a wrong step": _bootstrap(_ratio, list(zip(map(len, erring), sizes, strict=True)), seed),
        "recovery": _bootstrap(_ratio, [(sum(ends), len(ends)) for ends in erring], seed),
        "shows a false equation": _bootstrap(_ratio, list(zip(map(len, false), sizes, strict=True)), seed),
        "recovery from a false equation": _bootstrap(_ratio, [(sum(ends), len(ends)) for ends in false], seed),
    }


def _ratio(counts: Sequence[tuple[int, int]]) -> float:
    trials = sum(trials for _, trials in counts)
    return sum(hits for hits, _ in counts) / trials if trials else float("nan")


def _lengths(flat: Sequence[Attempt]) -> dict[str, float]:
    lengths = sorted(attempt.n_tokens for attempt in flat)
    return {
        "mean": round(_mean(lengths), 1),
        "median": _quantile(lengths, 0.5),
        "p95": _quantile(lengths, 0.95),
        "max": lengths[-1],
        "mean correct": round(_mean([a.n_tokens for a in flat if a.is_correct]), 1),
        "mean wrong": round(_mean([a.n_tokens for a in flat if not a.is_correct]), 1),
    }


def _pass_at_1(groups: Groups) -> float:
    return _mean([a.is_correct for g in groups for a in g])


def _sc(groups: Groups) -> float:
    return _mean([_plurality_right(g) for g in groups])


def _any_right(groups: Groups) -> float:
    return _mean([any(a.is_correct for a in g) for g in groups])


def _plurality_right(group: Sequence[Attempt]) -> float:
    votes = Counter(attempt.answer for attempt in group if attempt.answer is not None)
    return float(bool(votes) and votes.most_common(1)[0][0] == group[0].gold)


def _length_ratio(groups: Groups, *, answered: bool) -> float:
    """Mean tokens of the rollouts that are not correct (with `answered`, of wrong answers alone) over correct ones'."""
    correct = [a.n_tokens for g in groups for a in g if a.is_correct]
    wrong = [a.n_tokens for g in groups for a in g if not a.is_correct and not (answered and a.answer is None)]
    return _mean(wrong) / _mean(correct) if correct and wrong else float("nan")


def _auroc_of_groups(groups: Groups) -> float:
    scored = [(density(a.text), not a.is_correct) for g in groups for a in g]
    return auroc(scored)


def _mean_within_auroc(groups: Groups) -> float:
    values = [auroc([(density(a.text), not a.is_correct) for a in g]) for g in groups]
    return _mean([value for value in values if not isnan(value)])


def _never_answered(groups: Groups) -> float:
    return _mean([a.answer is None for g in groups for a in g])


def auroc(scored: Sequence[tuple[float, bool]]) -> float:
    """The chance that a positive scores above a negative, ties counting half; NaN when either is missing."""
    ranks: dict[float, list[int]] = {}
    for score, positive in scored:
        ranks.setdefault(score, [0, 0])[positive] += 1
    below = total = 0.0
    for score in sorted(ranks):
        negatives, positives = ranks[score]
        total += positives * (below + negatives / 2)
        below += negatives
    positives = len(scored) - int(below)
    return total / (positives * below) if positives and below else float("nan")


_OVER_PROBLEMS: dict[str, Callable[[Groups], float]] = {
    "pass@1": _pass_at_1,
    "sc": _sc,
    "pass@k": _any_right,
    "sc - pass@1": lambda groups: _sc(groups) - _pass_at_1(groups),
    "pass@k - sc": lambda groups: _any_right(groups) - _sc(groups),
    "length not correct/correct": lambda groups: _length_ratio(groups, answered=False),
    "length incorrect/correct": lambda groups: _length_ratio(groups, answered=True),
    "auroc of density for wrong": _auroc_of_groups,
    "no answer": _never_answered,
}


def _bootstrap(figure: Callable[[Sequence[T]], float], of_problems: Sequence[T], seed: int) -> dict[str, float]:
    rng = random.Random(seed)
    draws = sorted(figure(rng.choices(of_problems, k=len(of_problems))) for _ in range(_DRAWS))
    low, high = draws[_DRAWS // 40], draws[-1 - _DRAWS // 40]
    return {"value": round(figure(of_problems), 4), "low": round(low, 4), "high": round(high, 4)}


def _pass_at(k: int, n: int, hits: int) -> float:
    return 1 - comb(n - hits, k) / comb(n, k)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _share(hits: int, trials: int) -> float:
    return round(hits / trials, 4) if trials else float("nan")


def _quantile(ordered: Sequence[int], share: float) -> int:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
