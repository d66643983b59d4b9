"""The project's own benchmark: chains of exact arithmetic modulo 1000, with a dial for difficulty.

A problem starts with a three-digit number and applies one to six operations to it. Every answer is exact, every
problem is made from a seed, and no problem can be in both splits: the split is a function of the problem itself.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fot.errors import ConfigError

__all__ = ["BENCHMARK", "DIFFICULTIES", "MODULUS", "Problem", "Step", "draw_problems", "parse_problem", "split_of"]

BENCHMARK = "arithmetic"
MODULUS = 1000
DIFFICULTIES: dict[str, int] = {"easy": 2, "middle": 4, "hard": 6}
"""Number of operations at each difficulty."""

Split = Literal["train", "test"]
_VERBS = {"+": "add", "-": "subtract", "*": "multiply by"}
_PROBLEM_ID = re.compile(r"[1-9]\d\d([-+][1-9]\d\d|\*[2-9]){1,6}")
_TEST_SHARE = 32  # of 256 hash values: one problem in eight is a test problem


@dataclass(frozen=True, slots=True)
class Step:
    """One operation: ``+`` or ``-`` with a number from 100 to 999, or ``*`` with a digit from 2 to 9."""

    operation: str
    operand: int

    def apply(self, value: int) -> int:
        """The exact result, from 0 to 999."""
        if self.operation == "+":
            return (value + self.operand) % MODULUS
        if self.operation == "-":
            return (value - self.operand) % MODULUS
        return (value * self.operand) % MODULUS

    def __str__(self) -> str:
        return f"{_VERBS[self.operation]} {self.operand}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A start value and the operations applied to it in order."""

    start: int
    steps: tuple[Step, ...]

    @property
    def gold(self) -> str:
        """The exact answer, without leading zeros."""
        value = self.start
        for step in self.steps:
            value = step.apply(value)
        return str(value)

    @property
    def text(self) -> str:
        """The question as a user would put it."""
        steps = " ".join(f"Step {number}: {step}." for number, step in enumerate(self.steps, start=1))
        return f"Start with {self.start}. {steps} What is the result modulo {MODULUS}?"

    @property
    def problem_id(self) -> str:
        """A name that is the problem: equal problems have equal names, different ones differ."""
        return str(self.start) + "".join(f"{step.operation}{step.operand}" for step in self.steps)


def parse_problem(problem_id: str) -> Problem:
    """The problem of that name; raises `ConfigError` for a name that no problem has."""
    if not _PROBLEM_ID.fullmatch(problem_id):
        raise ConfigError(f"{problem_id!r} is not the id of an arithmetic problem.", hint="One looks like 345+678*7.")
    start, *rest = re.split(r"([-+*])", problem_id)
    steps = zip(rest[::2], rest[1::2], strict=True)
    return Problem(int(start), tuple(Step(operation, int(operand)) for operation, operand in steps))


def split_of(problem: Problem) -> Split:
    """The only split in which `problem` can occur, whatever the seed."""
    digest = hashlib.sha256(problem.problem_id.encode()).digest()
    return "test" if digest[0] < _TEST_SHARE else "train"


def draw_problems(split: Split, operations: int, *, seed: int) -> Iterator[Problem]:
    """Endless distinct problems of one split with this many operations; equal arguments give equal problems.

    Raises `ConfigError` for an unknown split or a number of operations outside 1 to 6.
    """
    if split not in ("train", "test"):
        raise ConfigError(f"Unknown split {split!r}.", hint="Use 'train' or 'test'.")
    if not 1 <= operations <= 6:
        raise ConfigError(f"A problem cannot have {operations} operations.", hint="Use 1 to 6.")
    rng = random.Random(f"{split}/{operations}/{seed}")  # noqa: S311 - problems, not secrets
    seen: set[str] = set()
    while True:
        problem = _draw(rng, operations)
        if split_of(problem) == split and problem.problem_id not in seen:
            seen.add(problem.problem_id)
            yield problem


def _draw(rng: random.Random, operations: int) -> Problem:
    start = rng.randint(100, 999)
    return Problem(start, tuple(_draw_step(rng) for _ in range(operations)))


def _draw_step(rng: random.Random) -> Step:
    operation = rng.choice("+-*")
    return Step(operation, rng.randint(2, 9) if operation == "*" else rng.randint(100, 999))
