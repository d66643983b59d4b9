"""Counting votes: plurality with the contract's tie rule, and when a vote can no longer change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Ballot", "Position", "Seat", "Verdict", "is_decided", "plurality", "tally"]


class Ballot(NamedTuple):
    """One rollout's vote."""

    rollout: int
    answer: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The winning answer (None: nobody voted) and the count of every answer, in order of insertion."""

    answer: str | None
    votes: Mapping[str, float] = field(default_factory=dict)


def tally(ballots: Iterable[Ballot]) -> dict[str, float]:
    """Votes by answer, in the order in which the answers were first seen."""
    votes: dict[str, float] = {}
    for ballot in ballots:
        votes[ballot.answer] = votes.get(ballot.answer, 0) + ballot.weight
    return votes


def plurality(ballots: Iterable[Ballot]) -> Verdict:
    """The answer with most votes; of equal ones the one that was inserted first."""
    votes = tally(ballots)
    # max() returns the first of equals, and a dict keeps the order of insertion.
    return Verdict(max(votes, key=votes.__getitem__, default=None), votes)


Position = tuple[int, ...]


class Seat(NamedTuple):
    """A place in the ballot order, taken (`answer` is certain to be counted) or still open (`answer` is None).

    `earliest` and `latest` bound where it will stand in the order of insertion; an open seat may stay empty.
    """

    answer: str | None
    earliest: Position
    latest: Position


def is_decided(seats: Sequence[Seat]) -> bool:
    """Can no way of filling the open seats change the winner of these?

    Nothing helps a challenger more than every open seat voting for it, as early as it may; so each answer that has
    votes, and one that has none yet, is tried as the challenger. Certain seats bind the leader at their latest place
    and the challenger at its earliest. With no certain vote the vote is decided only when no seat is open.
    """
    taken = [seat for seat in seats if seat.answer is not None]
    opens = [seat.earliest for seat in seats if seat.answer is None]
    if not opens:
        return True
    if not taken:
        return False
    counts: dict[str, int] = {}
    earliest: dict[str, Position] = {}
    latest: dict[str, Position] = {}
    for seat in taken:
        answer = seat.answer or ""
        counts[answer] = counts.get(answer, 0) + 1
        earliest[answer] = min(earliest.get(answer, seat.earliest), seat.earliest)
        latest[answer] = min(latest.get(answer, seat.latest), seat.latest)
    most = max(counts.values())
    leader = min((a for a in counts if counts[a] == most), key=latest.__getitem__)
    first_open = min(opens)

    def is_safe(votes: int, place: Position) -> bool:
        reachable = votes + len(opens)
        return most > reachable or (most == reachable and latest[leader] < min(place, first_open))

    rivals = [is_safe(counts[a], earliest[a]) for a in counts if a != leader]
    return all(rivals) and is_safe(0, first_open)
