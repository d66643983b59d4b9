"""Every analysis on pools whose truth is known."""

import math
import re

import numpy as np
import pytest

from fot.core.policy import Need
from fot.core.signals import Signal
from fot.methods import parse
from fot.methods import signals as known
from fot.methods.signals import SIGNALS
from fot.pools.importing import import_rows
from fot.report import drawing
from fot.report.catalogue import SECTIONS, steps
from fot.report.exhibit import NotHere
from fot.report.steps import behaviour, cost, markers, mechanism, outcome, tuning, votes
from tests.pools.rows import row, write_lines
from tests.report.pools import material, planted

SEVERAL = {"transfer"}


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return material(planted(tmp_path_factory.mktemp("one"), problems=14, k=10))


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    easy = planted(folder / "a", problems=8, k=8, seed=1, benchmark="easy")
    hard = planted(folder / "b", problems=8, k=8, seed=2, benchmark="hard", model="made-up-model")
    return material(easy, hard)


@pytest.mark.parametrize("name", list(steps()))
def test_every_step_makes_an_exhibit_that_speaks_of_this_pool(one, two, name):
    made = steps()[name].make(two if name in SEVERAL else one)
    assert re.search(r"\d", made.sentence)
    assert "nan" not in made.sentence.lower()
    assert made.sentence.endswith(".")
    assert made.table is not None
    assert made.table.rows
    assert "nan" not in made.table.csv()
    for figure in made.figures:
        drawn = drawing.svg(figure, "synthetic texts")
        assert drawn == drawing.svg(figure, "synthetic texts")
        assert "synthetic texts" in drawn


def test_names_are_used_once():
    names = [step.name for section in SECTIONS.values() for step in section]
    assert len(names) == len(set(names))


def test_a_planted_effect_shows_where_it_must(one):
    told = dict(
        zip(
            [row[0] for row in markers.markers(one).table.rows], markers.markers(one).table.column("auroc"), strict=True
        )
    )
    assert told["perhaps"] > 0.9
    assert told["Wait"] == 0.5
    shares = behaviour.deciles(one).table.column("accuracy")
    assert shares[0] > shares[-1] + 0.4
    running = [row for row in markers.signals(one).table.rows if row[1] == "density"]
    assert all(row[4] > 0.8 for row in running)
    better = one.result("fot").correct - one.result("random").correct
    assert better > 0


def test_signals_of_third_parties_are_judged_too(one, monkeypatch):
    shouting = Signal("shouting", lambda prefix, bank: (prefix.text.count("perhaps"), 0.0), frozenset({Need.TEXT}))
    asking = Signal("asking", lambda prefix, bank: 0.0, frozenset({Need.LOGPROBS}))
    found = dict(SIGNALS) | {one.name: lambda context, one=one: one for one in (shouting, asking)}
    monkeypatch.setattr(known, "_signals", lambda: found)
    rows = markers.signals(one).table.rows
    assert {row[1] for row in rows} == {"density", "repetition", "agreement", "shouting", "final length"}
    assert all(row[4] > 0.8 for row in rows if row[1] == "shouting")


def test_without_an_effect_the_signal_is_chance(tmp_path):
    nothing = material(planted(tmp_path, problems=30, k=10, effect=0.0))
    whole = markers.markers(nothing).table.rows[-1]
    assert abs(whole[5] - 0.5) < 0.08


def test_the_profile_sums_to_everything(one):
    table = behaviour.profile(one).table
    assert sum(table.column("rollouts")) == int(one.sizes.sum())
    assert math.isclose(sum(table.column("share")), 1)
    assert math.isclose(sum(table.column("attention_share")), 1)


def test_the_typology_accounts_for_every_vote_and_square(one):
    table = votes.typology(one).table
    assert math.isclose(sum(table.column("sc_attention")), 1)
    assert math.isclose(sum(table.column("sc_votes")), 1)
    saved = one.result("fot").savings.attention
    assert math.isclose(1 - sum(table.column("fot_attention")), saved)
    cast = one.result("fot").votes_mean * len(one.problems) / int(one.rollouts.answered.sum())
    assert math.isclose(sum(table.column("fot_votes")), cast)


def test_attention_regimes_end_at_the_tokens(one):
    saved = cost.attention(one).table.column("saved")
    assert math.isclose(saved[0], one.result("fot").savings.attention)
    assert math.isclose(saved[-1], one.result("fot").savings.tokens)
    assert saved == sorted(saved, reverse=True)


def test_strata_and_concentration_cover_all_problems(one):
    assert sum(outcome.strata(one).table.column("problems")) == len(one.problems)
    assert sum(votes.concentration(one).table.column("problems")) == len(one.problems)
    net = sum(value or 0 for value in votes.concentration(one).table.column("net"))
    assert net == one.result("fot").delta


def test_discordant_problems_are_listed_one_by_one(one):
    made = votes.discordant(one)
    won, lost = (sum(made.table.column(name)) for name in ("won", "lost"))
    result = one.result("fot")
    assert (won, lost) == (result.wins, result.losses)
    assert not won + lost or len(made.more[0][1].rows) == won + lost


def test_pool_sizes_end_at_the_whole_pool(one):
    last = mechanism.pool_size(one).table.rows[-1]
    assert last[0] == one.k
    assert math.isclose(last[2], one.baseline.mean())
    assert math.isclose(last[3], one.result("fot").accuracy)


def test_cells_add_up_to_the_whole(two):
    made = outcome.main(two)
    ((name, cells),) = made.more
    assert name == "by-cell"
    own = [row for row in cells.rows if row[2] == "fot" and row[0] != "mean of cells"]
    assert len(own) == 2
    assert sum(row[5] for row in own) == two.result("fot").delta
    parts, rule = outcome.halves(two)
    assert "gap" in rule
    assert not (parts["hard"] & parts["easy"]).any()


def test_a_transfer_is_counted_on_questions_that_its_choice_has_not_seen(two):
    table = tuning.transfer(two).table
    own = tuning.per_model(two).table
    for number, model in enumerate(two.models):
        row = next(row for row in table.rows if row[0] == f"chosen on {model}")
        assert row[1 + number] == own.column("honest")[number]
        assert row[-1] == sum(row[1:-1])
    assert table.rows[0][1:-1] == tuple(own.column("default"))
    with pytest.raises(NotHere, match="at least two"):
        tuning.transfer(material(*[pool.path for pool in two.chosen.pools][:1]))


def test_the_default_of_the_sweep_is_that_of_the_main_comparison(one):
    default = dict(
        zip((c.name for c in tuning.search(one).table.columns), tuning.search(one).table.rows[-1], strict=True)
    )
    result = one.result("fot")
    assert (default["wins"], default["losses"], default["p"]) == (result.wins, result.losses, result.p)
    assert default["ci_pp"] == pytest.approx(result.ci95_pp)


def test_folds_keep_a_choice_from_the_questions_it_is_reported_on(two):
    """Whatever happens in a fold, the configuration that is counted there stays the same."""
    swept = two.swept
    among = list(range(0, 340, 17))
    before = tuning._picks(swept, two.where(), among, two)
    assert sum(pick.held for pick in before).tolist() == [1] * len(two.problems)
    one = before[0]
    others = swept.correct.copy()
    swept.correct[:, one.held] = ~swept.correct[:, one.held]
    again = tuning._picks(swept, two.where(), among, two)
    swept.correct[:] = others
    assert again[0].configuration == one.configuration


def test_tuning_on_the_test_says_so_everywhere(one):
    flattered = material(*[pool.path for pool in one.chosen.pools], tune_on_test=True)
    for make in (tuning.search, tuning.per_model):
        assert make(flattered).banner.startswith("TUNED ON TEST")
        assert make(one).banner is None
    assert tuning.search(flattered).table.rows[0][3] >= tuning.search(one).table.rows[0][3]


def test_without_references_nothing_can_be_right(tmp_path):
    blind = material(planted(tmp_path, problems=3, k=4, gold=None))
    for name, step in steps().items():
        if name != "attention":
            with pytest.raises(NotHere):
                step.make(blind)


def test_undecided_answers_and_merged_votes_are_told(tmp_path):
    """Three writings of a half win together where 2 won apart; problems without a reference are undecided."""
    pytest.importorskip("math_verify", reason="the extra 'math' is not installed")
    votes = [r"\frac{1}{2}", "0.5", "1/2", "2", "2"]
    rows = [
        row(name, at, rf"Wait, \boxed{{{answer}}}", n_tokens=9, gold=gold)
        for name, gold in (("p", "0.5"), ("q", None))
        for at, answer in enumerate(votes)
    ]
    import_rows([write_lines(tmp_path / "rows.jsonl", rows)], tmp_path / "pool")
    apart, together = (material(tmp_path / "pool", keys=keys) for keys in ("exact", "math"))
    assert (apart.result("sc").undecided, apart.undecided) == (1, 5)
    assert apart.merging is None
    assert [str(row.outcome.verdict.answer) for row in apart.study.rows(parse("sc"))] == ["2", "2"]
    assert [str(row.outcome.verdict.answer) for row in together.study.rows(parse("sc"))] == ["0.5", "0.5"]
    assert (apart.result("sc").correct, together.result("sc").correct) == (0, 1)
    notes = " ".join(outcome.main(together).notes)
    assert "4 answers out of 8" in notes
    assert "that changes the winner of sc in 2 of 2 problems" in notes
    assert "5 of 10 rollouts have one" in notes


def test_pools_too_small_say_so(tmp_path):
    tiny = material(planted(tmp_path, problems=1, k=3, effect=0.0))
    reasons = {}
    for name, step in steps().items():
        try:
            step.make(tiny)
        except NotHere as reason:
            reasons[name] = str(reason)
    assert {"pareto", "regimes", "sweep", "transfer"} <= set(reasons)
    assert all(reason and not reason.endswith("..") for reason in reasons.values())


def test_texts_come_in_the_order_of_the_rollouts(two):
    found = dict(two.texts())
    assert sorted(found) == list(range(int(two.sizes.sum())))
    lengths = np.array([len(found[at]) for at in range(len(found))])
    assert lengths.tolist() == two.chars.tolist()
