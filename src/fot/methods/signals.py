"""Free signals by name: what pruning may rank by. Lower values are kept.

A third party adds one by the entry-point group `fot.signals`: a function from a `Context` to a `Signal`.
`a/b` ranks by `a`, and by `b` where that leaves a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from zlib import compress, crc32

from fot.core.answers import answer_key
from fot.core.commit import committed_answer
from fot.core.policy import Need, Prefix
from fot.core.registry import unknown_name
from fot.core.signals import DENSITY, FINAL_LENGTH, Signal, mix, random_signal
from fot.core.vote import Ballot, plurality
from fot.methods.spec import Context

__all__ = ["AGREEMENT", "REPETITION", "SIGNALS", "problem_seed", "signal_for", "signal_names"]

_RECENT = 6000  # characters that repetition looks at
_STATED_WITHIN = 4000  # characters in which a rollout's latest interim statement is looked for


def problem_seed(context: Context) -> int:
    """One number for this problem and draw, the same wherever it is computed."""
    return mix(mix(context.seed, context.draw), crc32(context.problem.encode("utf-8", "surrogatepass")))


def _repetition(prefix: Prefix, bank: Sequence[Ballot]) -> float:
    recent = prefix.text[-_RECENT:].encode("utf-8", "surrogatepass")
    return -len(compress(recent, 1)) / len(recent) if recent else 0.0


REPETITION = Signal("repetition", _repetition, frozenset({Need.TEXT}))
"""How well the last 6,000 characters compress: a rollout that goes in circles repeats itself."""


def _agreement(prefix: Prefix, bank: Sequence[Ballot]) -> float:
    leader = plurality(bank).answer
    if leader is None:
        return 0.0
    stated = committed_answer(prefix.text[-_STATED_WITHIN:], "paper")
    return 0.5 if stated is None else float(answer_key(stated) != leader)


AGREEMENT = Signal("agreement", _agreement, frozenset({Need.TEXT}), reads_bank=True)
"""Whether the answer that a rollout last named in passing leads the bank (0), is another (1), or there is none (½)."""


SIGNALS: Mapping[str, Callable[[Context], Signal]] = {
    "density": lambda context: DENSITY,
    "random": lambda context: random_signal(problem_seed(context)),
    "length": lambda context: FINAL_LENGTH,
    "repetition": lambda context: REPETITION,
    "agreement": lambda context: AGREEMENT,
}
"""The project's own signals."""


@cache
def _signals() -> Mapping[str, Callable[[Context], Signal]]:
    found = dict(SIGNALS)
    for entry in entry_points(group="fot.signals"):
        found.setdefault(entry.name, entry.load())
    return found


def signal_names() -> list[str]:
    """Every signal, those of third parties included."""
    return sorted(_signals())


def signal_for(name: str, context: Context) -> Signal:
    """The named signal (or signals, joined by `/`) at work on one problem; `ConfigError` for an unknown one."""
    signals = [_one(part, context) for part in name.split("/")]
    if len(signals) == 1:
        return signals[0]
    return Signal(
        name,
        lambda prefix, bank: tuple(rank for signal in signals for rank in _ranks(signal.measure(prefix, bank))),
        frozenset().union(*(signal.needs for signal in signals)),
        any(signal.reads_bank for signal in signals),
    )


def _ranks(measured: float | tuple[float, ...]) -> tuple[float, ...]:
    return measured if isinstance(measured, tuple) else (measured,)


def _one(name: str, context: Context) -> Signal:
    if name not in _signals():
        raise unknown_name("signal", name, _signals())
    return _signals()[name](context)
