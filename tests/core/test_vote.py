import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from fot.core.vote import Ballot, Seat, is_decided, plurality


def test_plurality_gives_ties_to_the_answer_inserted_first():
    assert plurality([Ballot(0, "b"), Ballot(1, "a"), Ballot(2, "a"), Ballot(3, "b")]).answer == "b"
    assert plurality([]).answer is None
    verdict = plurality([Ballot(0, "a", 0.5), Ballot(1, "b", 2.0)])
    assert verdict.answer == "b"
    assert verdict.votes == {"a": 0.5, "b": 2.0}


def every_winner(votes):
    """All winners that filling the open places (None) of an ordered vote can bring."""
    answers = [*{vote for vote in votes if vote is not None}, "new", "newer", None]
    opens = [at for at, vote in enumerate(votes) if vote is None]
    for choice in itertools.product(answers, repeat=len(opens)):
        filled = list(votes)
        for at, answer in zip(opens, choice, strict=True):
            filled[at] = answer
        yield plurality([Ballot(at, answer) for at, answer in enumerate(filled) if answer is not None]).answer


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=8).filter(lambda votes: votes.count(None) <= 4))
def test_decided_is_exact_where_places_are_known(votes):
    seats = [Seat(vote, (at,), (at,)) for at, vote in enumerate(votes)]
    assert is_decided(seats) == (len(set(every_winner(votes))) == 1)
