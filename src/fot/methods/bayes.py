"""The Bayesian stop: end everything once the winner will stay the winner with a stated probability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

from fot.core.policy import Policy
from fot.core.vote import Seat
from fot.errors import ConfigError
from fot.methods.spec import Context, Method, parameter
from fot.methods.until import Until

__all__ = ["BAYES", "stays"]


@cache
def stays(counts: tuple[int, ...], open_votes: int) -> float:
    """Probability that the leader still has most votes, alone, when `open_votes` more have been cast.

    The votes to come are Dirichlet-multinomial: one prior count for each answer seen, and one for an answer not seen
    yet. `counts` fall. Exact: a sum over how many of them the leader gets, the others' votes being convolved.
    """
    leader, *others = counts
    rivals = [(count, count + 1) for count in others] + [(0, 1)]
    total_prior = sum(counts) + len(counts) + 1
    chance = 0.0
    for gained in range(open_votes + 1):
        ways = [1.0] + [0.0] * (open_votes - gained)
        for has, prior in rivals:
            room = min(leader + gained - 1 - has, open_votes - gained)
            ways = _convolved(ways, [_rising(prior, votes) for votes in range(room + 1)])
        chance += _rising(leader + 1, gained) * ways[open_votes - gained]
    return min(1.0, chance / _rising(total_prior, open_votes))


def _rising(prior: int, votes: int) -> float:
    """Ways in which an answer with this prior count gets so many votes: C(prior + votes - 1, votes)."""
    return float(comb(prior + votes - 1, votes))


def _convolved(ways: list[float], other: list[float]) -> list[float]:
    size = len(ways)
    out = [0.0] * size
    for at, way in enumerate(ways):
        for votes, factor in enumerate(other[: size - at]):
            out[at + votes] += way * factor
    return out


@dataclass(frozen=True)
class BayesPlan:
    """The Bayesian stop's parameters."""

    posterior: float = parameter(0.99, "how sure it must be that the winner stays the winner")
    least: int = parameter(3, "votes that must have been cast")

    def __post_init__(self) -> None:
        if not 0 < self.posterior <= 1 or self.least < 1:
            raise ValueError("posterior must lie above 0 and at most at 1, and least be at least 1")

    def is_clear(self, seats: Sequence[Seat]) -> bool:
        """Will the leader of these stay the leader, as surely as asked?"""
        votes = Counter(seat.answer for seat in seats)
        open_votes = votes.pop(None, 0)
        if votes.total() < self.least:
            return False
        return stays(tuple(sorted(votes.values(), reverse=True)), open_votes) >= self.posterior


def _wrap(plan: BayesPlan, context: Context, inner: Callable[[Context], Policy]) -> Policy:
    policy = inner(context)
    if policy.seats() is None:
        raise ConfigError("this method's vote cannot be told ahead, so 'bayes' cannot stop it", "Leave it out.")
    return Until(policy, lambda inner: plan.is_clear(inner.seats() or ()))


BAYES = Method(
    name="bayes",
    summary="wrapper: stop once the winner will stay the winner with a stated probability",
    plan=BayesPlan,
    wrap=_wrap,
)
