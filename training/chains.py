"""Chains of thought for training: a writer who computes digit by digit, errs, doubts, checks and recovers.

The writer carries a hidden level of confusion from 0 (calm) to 3 (lost). Confusion raises the rates of slips, of
hedging and of false alarms; slips that slip through raise it, checks that agree lower it. The model sees the text only.
Nothing of this runs when the model is used.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field, replace
from itertools import islice

from fot.tasks.arithmetic import MODULUS, Problem, Step, draw_problems

__all__ = ["CALM", "CONTRASTING", "LEGIBLE", "REALISTIC", "Noise", "digest", "write_chain"]

Levels = tuple[float, float, float, float]
Beliefs = tuple[tuple[int, int, int], ...]
_PLACES = 3

_OPENERS = ("Okay.", "Let me see.", "Let me think.", "First, the start.", "Good, step by step.")
_HEDGES: tuple[tuple[str, ...], ...] = (
    ("Now,", "Next,", "Okay,"),
    ("Maybe this one.", "Let me think.", "Okay, perhaps so.", "Maybe carefully now."),
    (
        "Wait, let me think.",
        "Perhaps it is this, perhaps not.",
        "Actually, maybe this way.",
        "Hmm, I am actually not sure.",
    ),
    (
        "Wait, actually, maybe I was wrong.",
        "But wait, perhaps this is wrong.",
        "Alternatively, perhaps it goes the other way. Or maybe not.",
        "However, this is perhaps incorrect. Wait.",
    ),
)
_NOTICES = ("no,", "Wait,", "no, that is wrong,", "actually,")
_FLAGS = (
    "Wait, {0} is wrong.",
    "I think I made a mistake, {0} is wrong.",
    "Actually, {0} is incorrect.",
    "But wait, not {0}.",
)
_ALARMS = ("Wait, is {0} wrong?", "Perhaps {0} is incorrect.", "Actually, is it {0}?", "Re-examining {0}.")
_RETRIES = ("Let me try again.", "Let me try this instead.", "Again.", "Let me reconsider.")
_RESTARTS = (
    "I was wrong somewhere. Let me try from the start.",
    "This isn't right. Let me reconsider from the start.",
    "Alternatively, let me redo all of it.",
)


@dataclass(frozen=True, slots=True)
class Noise:
    """How the writer errs and doubts; four-tuples are indexed by the level of confusion."""

    slip: Levels = (0.045, 0.12, 0.25, 0.35)
    beliefs: Beliefs = ((7, 8, 54), (6, 9, 56), (8, 9, 74), (6, 8, 46))
    belief: Levels = (0.64, 0.64, 0.64, 0.64)
    belief_on_redo: float = 0.42
    doubt_belief: float | None = 0.10
    notice: Levels = (0.60, 0.45, 0.25, 0.12)
    check: Levels = (0.12, 0.40, 0.52, 0.45)
    hedge: Levels = (0.10, 0.60, 0.90, 1.0)
    alarm: Levels = (0.0, 0.05, 0.18, 0.30)
    start: Levels = (0.45, 0.27, 0.18, 0.10)
    restart: Levels = (0.0, 0.0, 0.04, 0.12)
    review: Levels = (0.0, 0.04, 0.30, 0.52)
    spiral: Levels = (0.0, 0.0, 0.05, 0.14)
    spiral_goes_on: float = 0.75
    redo_calm: float = 0.35
    unease: float = 0.85
    care_in_check: float = 0.5
    care_in_redo: float = 0.3
    dread: float = 0.0
    more_hedges: Levels = (0.0, 0.0, 0.0, 0.0)
    temperature: float = 1.0


CALM = Noise(
    slip=(0.006, 0.02, 0.05, 0.08),
    beliefs=((7, 8, 54), (6, 9, 56), (8, 9, 74), (6, 7, 48), (4, 8, 36)),
    belief=(0.72, 0.72, 0.72, 0.72),
    belief_on_redo=0.45,
    doubt_belief=None,
    notice=(0.7, 0.6, 0.5, 0.4),
    check=(0.35, 0.5, 0.6, 0.5),
    start=(0.65, 0.2, 0.1, 0.05),
    restart=(0.0, 0.0, 0.10, 0.25),
    review=(0.0, 0.03, 0.20, 0.40),
    spiral=(0.0, 0.0, 0.04, 0.18),
    spiral_goes_on=0.86,
    unease=0.65,
)
"""What is learnt first: mostly right, and how a mistake is noticed and redone."""
REALISTIC = Noise()
"""What is learnt second: all that the model is to show."""
LEGIBLE = Noise(
    slip=(0.02, 0.17, 0.34, 0.46),
    belief=(0.53, 0.82, 0.87, 0.90),
    belief_on_redo=0.43,
    notice=(0.70, 0.45, 0.25, 0.12),
    check=(0.12, 0.42, 0.50, 0.42),
    hedge=(0.06, 0.85, 0.97, 1.0),
    start=(0.42, 0.27, 0.19, 0.12),
    care_in_check=0.1,
    care_in_redo=0.1,
    dread=0.55,
    more_hedges=(0.0, 0.12, 0.28, 0.40),
    spiral=(0.0, 0.0, 0.03, 0.08),
    spiral_goes_on=0.72,
    restart=(0.0, 0.0, 0.03, 0.08),
    review=(0.0, 0.04, 0.26, 0.44),
)
"""What is learnt third: doubt that shows where errors are made, checks that find them, redoes that mend them."""
CONTRASTING = replace(
    LEGIBLE,
    slip=(0.014, 0.16, 0.34, 0.46),
    check=(0.03, 0.40, 0.54, 0.50),
    hedge=(0.03, 0.85, 0.97, 1.0),
    start=(0.50, 0.20, 0.18, 0.12),
    review=(0.0, 0.02, 0.26, 0.42),
    spiral=(0.0, 0.0, 0.03, 0.07),
    spiral_goes_on=0.68,
    restart=(0.0, 0.0, 0.02, 0.06),
    unease=0.95,
    more_hedges=(0.0, 0.12, 0.34, 0.48),
)
"""What is learnt last: the calm are brief, the lost go on."""


@dataclass(slots=True)
class _Writer:
    problem: Problem
    noise: Noise
    rng: random.Random
    level: int = 0
    lines: list[str] = field(default_factory=list)
    value: int = 0

    def flip(self, chance: float) -> bool:
        """A coin, sharpened as sampling below temperature 1 sharpens what the model has learnt."""
        if 0 < chance < 1 and self.noise.temperature != 1:
            power = 1 / self.noise.temperature
            chance = chance**power / (chance**power + (1 - chance) ** power)
        return self.rng.random() < chance

    def at_level(self, rates: Levels) -> bool:
        return self.flip(rates[self.level])

    def shift(self, by: int) -> None:
        self.level = min(3, max(0, self.level + by))

    # -- one digit ---------------------------------------------------------------------------------------------

    def equation(self, step: Step, place: int, carry: int, *, care: float) -> tuple[str, int, int]:
        """Text, digit and carry of one place; `care` scales the rate of slips."""
        left = self.value // 10**place % 10
        right = step.operand // 10**place % 10 if step.operation != "*" else step.operand
        if care < 1:
            return self.written(step, left, right, carry, redo=True, slip=self.flip(self.noise.slip[self.level] * care))
        text, digit, next_carry = self.written(
            step, left, right, carry, redo=False, slip=self.at_level(self.noise.slip)
        )
        true_text, true_digit, true_carry = _exact(step.operation, left, right, carry)
        if text != true_text and self.notices(step, left, right):
            if self.flip(0.5):
                self.shift(+1)
            return f"{text}, {self.rng.choice(_NOTICES)} {true_text}", true_digit, true_carry
        if text != true_text and self.flip(self.noise.unease):
            self.shift(+1)
        return text, digit, next_carry

    def notices(self, step: Step, left: int, right: int) -> bool:
        """Whether a false equation is seen to be false at once; a false belief seldom is."""
        if self.noise.doubt_belief is not None and self.believed(step, left, right) is not None:
            return self.flip(self.noise.doubt_belief)
        return self.at_level(self.noise.notice)

    def believed(self, step: Step, left: int, right: int) -> int | None:
        """The product that the writer takes for the true one, where it holds a false belief about these digits."""
        if step.operation != "*":
            return None
        pair = (min(left, right), max(left, right))
        return next((product for low, high, product in self.noise.beliefs if (low, high) == pair), None)

    def written(self, step: Step, left: int, right: int, carry: int, *, redo: bool, slip: bool) -> tuple[str, int, int]:
        """An equation as the writer puts it: true, believed, or slipped."""
        believed = self.believed(step, left, right)
        if believed is not None and self.flip(self.noise.belief_on_redo if redo else self.noise.belief[self.level]):
            result = believed + carry
            return f"{left}*{right}+{carry}={result:02d}", result % 10, result // 10
        if not slip:
            return _exact(step.operation, left, right, carry)
        if self.flip(0.3):  # a digit misread, then computed faithfully
            left = (left + self.rng.choice((1, 9))) % 10
            return _exact(step.operation, left, right, carry)
        return _slipped(step.operation, left, right, carry, self.rng)

    def column(self, step: Step, *, care: float = 1.0) -> tuple[str, int]:
        """The equations of all places, and the number they give."""
        texts, number, carry = [], 0, 0
        for place in range(_PLACES):
            text, digit, carry = self.equation(step, place, carry, care=care)
            texts.append(text)
            number += digit * 10**place
        return ",".join(texts), number

    # -- one step ----------------------------------------------------------------------------------------------

    def step(self, number: int, step: Step) -> None:
        """Compute a step, then perhaps check it, redo it, or spiral over it; `value` moves on."""
        before = self.value
        if self.noise.dread and self.is_dreaded(step) and self.flip(self.noise.dread):
            self.shift(self.rng.choice((1, 2)))
        hedge = self.hedge()
        texts, result = self.column(step)
        head = f"{hedge}Step {number}: {before:03d}{step.operation}{step.operand}. "
        self.lines.append(f"{head}{texts}. So {result:03d}.\n")
        if self.at_level(self.noise.spiral):
            result = self.spiral(step, result)
        elif self.at_level(self.noise.check):
            result = self.check(step, result)
        elif self.at_level(self.noise.alarm):
            self.lines.append(self.rng.choice(_ALARMS).format(f"{result:03d}") + "\n")
            result = self.check(step, result)
        elif self.flip(0.15):
            self.shift(-1)
        self.value = result

    def hedge(self) -> str:
        """What is muttered before a step: nothing, or one thought or more of the present level."""
        if not self.at_level(self.noise.hedge):
            return ""
        thoughts = [self.rng.choice(_HEDGES[self.level])]
        while any(self.noise.more_hedges) and self.at_level(self.noise.more_hedges):
            thoughts.append(self.rng.choice(_HEDGES[self.level]))
        return " ".join(thoughts) + " "

    def is_dreaded(self, step: Step) -> bool:
        """Whether the step needs a product about which the writer holds a false belief."""
        digits = (self.value // 10**place % 10 for place in range(_PLACES))
        return any(self.believed(step, digit, step.operand) is not None for digit in digits)

    def check(self, step: Step, result: int) -> int:
        """Compute the step again; agreement calms, disagreement is flagged and settled by a careful third try."""
        texts, again = self.column(step, care=self.noise.care_in_check)
        head = f"Check {self.value:03d}{step.operation}{step.operand}: {texts}. "
        if again == result:
            self.lines.append(f"{head}Also {again:03d}, good.\n")
            if self.flip(0.6):
                self.shift(-1)
            return result
        flag = self.rng.choice(_FLAGS).format(f"{result:03d}")
        self.lines.append(f"{head}This gives {again:03d}. {flag}\n")
        return self.redo(step)

    def redo(self, step: Step) -> int:
        texts, result = self.column(step, care=self.noise.care_in_redo)
        retry = self.rng.choice(_RETRIES)
        self.lines.append(f"{retry} {self.value:03d}{step.operation}{step.operand}. {texts}. So {result:03d}.\n")
        self.shift(-1 if self.flip(self.noise.redo_calm) else int(self.flip(0.35)))
        return result

    def spiral(self, step: Step, result: int) -> int:
        """Try the same step over and over, each time unsure of it."""
        self.level = 3
        while self.flip(self.noise.spiral_goes_on) and len(self.lines) < 60:
            alarm = self.rng.choice(_ALARMS).format(f"{result:03d}")
            hedge = self.rng.choice(_HEDGES[3])
            texts, result = self.column(step)
            self.level = 3
            head = f"{hedge} {self.value:03d}{step.operation}{step.operand}. "
            self.lines.append(f"{alarm} {head}{texts}. So {result:03d}.\n")
        self.level = 2
        return result

    # -- the whole ---------------------------------------------------------------------------------------------

    def attempt(self) -> bool:
        """All steps from the start; False when the writer gave up half-way to begin again."""
        self.value = self.problem.start
        self.lines.append(f"Start with {self.value:03d}.\n")
        for number, step in enumerate(self.problem.steps, start=1):
            self.step(number, step)
            if self.at_level(self.noise.restart):
                return False
        return not self.at_level(self.noise.review)

    def chain(self) -> str:
        self.level = self.rng.choices(range(4), weights=self.noise.start)[0]
        if self.flip(0.4):
            self.lines.append(self.rng.choice(_OPENERS) + " ")
        while not self.attempt() and len(self.lines) < 60:
            self.lines.append(self.rng.choice(_RESTARTS) + "\n")
            self.shift(-2)
        return "".join(self.lines) + f"</think>\nThe answer is \\boxed{{{self.value}}}."


def _exact(operation: str, left: int, right: int, carry: int) -> tuple[str, int, int]:
    if operation == "-":
        borrow = int(left < right + carry)
        digit = left + 10 * borrow - right - carry
        return f"{'1' * borrow}{left}-{right}-{carry}={digit}", digit, borrow
    result = left + right + carry if operation == "+" else left * right + carry
    return f"{left}{operation}{right}+{carry}={result:02d}", result % 10, result // 10


def _slipped(operation: str, left: int, right: int, carry: int, rng: random.Random) -> tuple[str, int, int]:
    text, digit, next_carry = _exact(operation, left, right, carry)
    head = text.split("=")[0]
    if operation == "-":
        digit = (digit + rng.choice((1, 9))) % 10
        return f"{head}={digit}", digit, next_carry
    result = next_carry * 10 + digit
    wrong = rng.choice([near for near in (result - 1, result + 1, result - 10, result + 10) if 0 <= near < 100])
    return f"{head}={wrong:02d}", wrong % 10, wrong // 10


def write_chain(problem: Problem, noise: Noise, rng: random.Random) -> str:
    """One chain for `problem`, from the first thought to the boxed answer; it may be far longer than a context."""
    return _Writer(problem, noise, rng).chain()


def digest(noise: Noise) -> str:
    """A checksum of the writer: of the first chains that it writes under `noise`."""
    rng = random.Random(0)
    problems = islice(draw_problems("train", 4, seed=0), 200)
    return hashlib.sha256("".join(write_chain(problem, noise, rng) for problem in problems).encode()).hexdigest()


assert MODULUS == 10**_PLACES
