"""The configurations of a sweep.

The paper sweeps 340: five keep ratios by 68 schedules of 1 to 5 checkpoints that it does not list. The 68 here are all
schedules with equal steps that start at 2, 4, 6 or 8 thousand tokens and go on in steps of 2, 4, 5 or 10 thousand: 4 of
one checkpoint (which has no step) and 4 by 4 of each longer kind. Every schedule that the paper names is among them.
Checkpoints beyond the longest rollout do nothing; such schedules stay in, so that the grid is the same for every pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from fot.core.markers import PAPER_KERNEL
from fot.errors import ConfigError
from fot.methods import Spec, parse

__all__ = ["KEEPS", "KERNEL_SIZES", "NAMED", "SCHEDULES", "Configuration", "grid", "scaled"]

_STARTS = (2_000, 4_000, 6_000, 8_000)
_STEPS = (2_000, 4_000, 5_000, 10_000)
_COUNTS = (2, 3, 4, 5)

KEEPS = (0.50, 0.60, 0.67, 0.75, 0.85)
KERNEL_SIZES = (1, 2, 3, 5, 7, 10, 15, 21)
"""The paper's kernel sizes."""

SCHEDULES: tuple[tuple[int, ...], ...] = tuple((start,) for start in _STARTS) + tuple(
    tuple(start + step * at for at in range(count)) for count, start, step in product(_COUNTS, _STARTS, _STEPS)
)

NAMED: dict[str, tuple[int, ...]] = {
    "Early": (4_000, 8_000, 12_000),
    "Mid": (6_000, 10_000, 14_000),
    "Math-only": (6_000, 11_000, 16_000),
    "Late": (8_000, 12_000, 16_000),
    "Math-only maximiser": (4_000, 14_000),
}
"""The schedules that the paper calls by a name; `Mid` is its default."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One funnel of a sweep; `kernel` is how many of the paper's markers, from the first, are counted."""

    checkpoints: tuple[int, ...]
    keep: float
    kernel: int = len(PAPER_KERNEL.markers)

    @property
    def spec(self) -> Spec:
        """The method that `fot simulate` runs for it."""
        marks = "/".join(map(str, self.checkpoints))
        kernel = f",kernel=top-{self.kernel}" if self.kernel < len(PAPER_KERNEL.markers) else ""
        return parse(f"fot:checkpoints={marks},keep={self.keep}{kernel}")


def grid(
    schedules: Sequence[tuple[int, ...]] = SCHEDULES,
    keeps: Sequence[float] = KEEPS,
    kernels: Sequence[int] = (len(PAPER_KERNEL.markers),),
) -> tuple[Configuration, ...]:
    """All combinations: schedule by schedule, then keep ratio, then kernel size."""
    if not all(1 <= size <= len(PAPER_KERNEL.markers) for size in kernels):
        raise ConfigError(f"kernel sizes lie between 1 and {len(PAPER_KERNEL.markers)}", "Give numbers of markers.")
    return tuple(Configuration(*one) for one in product(schedules, keeps, kernels))


def scaled(schedules: Sequence[tuple[int, ...]], factor: float) -> tuple[tuple[int, ...], ...]:
    """The same schedules with every checkpoint multiplied: for models that think more briefly, or at more length."""
    if not factor > 0:
        raise ConfigError(f"the scale is {factor}; it must be more than 0", "Give 0.5 for checkpoints half as late.")
    return tuple(tuple(max(1, round(mark * factor)) for mark in schedule) for schedule in schedules)
