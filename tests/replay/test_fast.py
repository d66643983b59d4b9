"""The vectorised path, the plain path over the index and the plain path over texts decide alike."""

from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fot.core.policy import Need
from fot.methods import Context, parse
from fot.replay import rounds
from fot.replay import sheet as sheets
from fot.replay.recording import TextRecording
from fot.replay.sheet import Sheet
from fot.replay.simulator import simulate
from tests.replay import pools
from tests.replay.pools import as_pool

SPECS = [
    "sc",
    "fot:checkpoints=4/9/15",
    "fot:checkpoints=1/2/3/25,keep=0.5,minimum=1",
    "fot:checkpoints=5,keep=1",
    "fot:checkpoints=3/6/9/12,keep=0.34,early_voting=off",
    "fot:checkpoints=3/8,kernel=top-3",
    "fot:checkpoints=3/8,kernel=plain/long stretch",
    "random:checkpoints=2/6/10",
    "oracle:checkpoints=2/6/10,keep=0.75",
    "fot:checkpoints=4/9,eager=on",
    "fot:checkpoints=2/5/11,keep=0.34,minimum=1,eager=on",
    "random:checkpoints=3/6,eager=on",
]
SAMPLING = [
    "pass",
    "first-n:n=4",
    "ac",
    "ac:window=3,threshold=0.8",
    "ac:criterion=dirichlet,threshold=0.7",
    "ac:criterion=entropy",
    "ac:criterion=majority,mode=cancel,threshold=0.6",
    "ac:mode=cancel",
    "esc",
    "esc:window=2,failures=off",
    "esc:window=3,remainder=on",
    "dsc",
    "dsc:window=2,run=2,before=3,threshold=0.8",
]


def seen(outcome):
    votes = list(outcome.verdict.votes.items())
    return outcome.verdict.answer, votes, outcome.stops, outcome.fates


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pools.problems, min_size=1, max_size=12))
def test_every_path_decides_alike(tmp_path_factory, problems):
    pool = as_pool(tmp_path_factory.mktemp("pool"), problems)
    sheet = Sheet(pool, pool.select().parts, "boxed")
    for text in SPECS:
        spec = parse(text)
        for draw in range(2 if "random" in text else 1):
            assert sheets._vectorised(spec) is not None
            fast = sheet.run(spec, seed=3, draw=draw)
            plain = sheet.simulate_plainly(spec, 3, draw)
            assert list(fast.winners) == list(plain.winners), text
            assert list(fast.bills) == list(plain.bills), text
            assert list(fast.votes) == list(plain.votes), text
            for at, rows in enumerate(problems):
                recording = TextRecording(pools.as_rollouts(rows), "boxed", spec.kernel)
                policy = spec.build(Context(k=len(rows), problem=f"m/b/p{at}", seed=3, draw=draw))
                reference = seen(simulate(policy, recording, follow_commitments=Need.COMMITMENTS in spec.needs))
                assert seen(fast.outcome(at)) == seen(plain.outcome(at)) == reference, (text, at)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pools.problems, min_size=1, max_size=12))
def test_rounds_are_those_of_the_policies(tmp_path_factory, problems):
    pool = as_pool(tmp_path_factory.mktemp("pool"), problems)
    sheet = Sheet(pool, pool.select().parts, "boxed")
    for text, draw in product(SAMPLING, range(2)):
        spec = parse(text)
        assert rounds.is_sampling(spec)
        fast, plain = sheet.run(spec, seed=3, draw=draw), sheet.simulate_plainly(spec, 3, draw)
        assert list(fast.winners) == list(plain.winners), text
        assert list(fast.bills) == list(plain.bills), text
        assert list(fast.votes) == list(plain.votes), text
        assert list(fast.notes) == list(plain.notes), text
        for at in range(len(problems)):
            assert seen(fast.outcome(at)) == seen(plain.outcome(at)), (text, at)
            assert fast.outcome(at).charges == plain.outcome(at).charges, (text, at)


def test_blocks_of_problems_do_not_show(tmp_path, monkeypatch):
    problems = [[{"text": f"so \\boxed{{{at % 3}}}", "n_tokens": 3 + at}] * (2 + at % 4) for at in range(11)]
    sheet = Sheet((pool := as_pool(tmp_path, problems)), pool.select().parts, "boxed")
    whole = [sheet.run(parse(text)) for text in SAMPLING]
    monkeypatch.setattr(rounds, "_BLOCK_PROBLEMS", 4)
    for text, one in zip(SAMPLING, whole, strict=True):
        again = sheet.run(parse(text))
        assert (list(again.winners), list(again.bills)) == (list(one.winners), list(one.bills))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pools.problems, min_size=1, max_size=12))
def test_policies_that_follow_commitments_see_the_same_on_index_and_text(tmp_path_factory, problems):
    pool = as_pool(tmp_path_factory.mktemp("pool"), problems)
    sheet = Sheet(pool, pool.select().parts, "boxed")
    for text in ("fot:checkpoints=4/9,eager=on", "fot:checkpoints=4/9,eager=on+decided", "sc+decided"):
        spec = parse(text)
        batch = sheet.run(spec)
        for at, rows in enumerate(problems):
            recording = TextRecording(pools.as_rollouts(rows), "boxed")
            reference = simulate(spec.build(Context(k=len(rows))), recording, follow_commitments=True)
            assert seen(batch.outcome(at)) == seen(reference), (text, at)


@settings(max_examples=300, deadline=None)
@given(pools.problems, pools.checkpoints, pools.keeps, st.booleans(), st.booleans())
def test_the_lossless_stop_never_changes_an_answer_and_never_costs_more(rows, checkpoints, keep, early, eager):
    recording = TextRecording(pools.as_rollouts(rows), "boxed")
    marks = "/".join(map(str, checkpoints))
    switches = f"early_voting={'on' if early or eager else 'off'},eager={'on' if eager else 'off'}"
    for text in ("sc", f"fot:checkpoints={marks},keep={keep},{switches}"):
        context = Context(k=len(rows))
        alone = simulate(parse(text).build(context), recording, follow_commitments=True)
        stopped = simulate(parse(f"{text}+decided").build(context), recording, follow_commitments=True)
        assert stopped.verdict.answer == alone.verdict.answer
        assert all(a <= b for a, b in zip(stopped.stops, alone.stops, strict=True))


@pytest.mark.parametrize("text", ["sc", "fot:checkpoints=2", "fot:checkpoints=2,eager=on", *SAMPLING])
def test_a_sheet_without_problems_is_no_error(tmp_path, text):
    pool = as_pool(tmp_path, [[{"text": "x", "n_tokens": 1}]])
    assert list(Sheet(pool, [], "boxed").run(parse(text)).winners) == []
