"""A kernel learnt from texts: found where a marker was planted, absent where none was, in any script."""

import json

import pytest

from fot.cli.main import main
from fot.errors import ConfigError
from fot.report.exhibit import NotHere
from fot.report.fitting import candidates, fit
from tests.report.pools import material, planted


@pytest.mark.parametrize("marker", ["hmm,", "vielleicht", "等等", "или нет"])
def test_a_planted_marker_is_found(tmp_path, marker):
    fitted = fit(material(planted(tmp_path, problems=20, k=8, marker=marker)), count=4)
    assert marker.strip(",") in fitted.markers[0].text
    assert fitted.markers[0].r < -0.5
    assert fitted.markers[0].q < 1e-6
    assert fitted.held_out.is_present
    assert fitted.held_out.within.auroc > 0.9
    assert fitted.kernel.markers == tuple(one.text for one in fitted.markers)


@pytest.mark.parametrize("criterion", ["pooled", "within"])
def test_where_there_is_nothing_nothing_is_claimed(tmp_path, criterion):
    fitted = fit(material(planted(tmp_path, problems=30, k=8, effect=0.0, seed=3)), count=5, criterion=criterion)
    assert not fitted.held_out.is_present


def test_folds_choose_without_what_they_are_judged_on(tmp_path):
    """A marker that marks wrong rollouts in one problem alone is not there in the others."""
    single = material(planted(tmp_path, problems=20, k=8, effect=0.0, seed=4))
    fitted = fit(single, count=5)
    assert fitted.held_out.within.auroc < 0.7
    assert 0 <= fitted.stable <= 1


def test_candidates_are_shared_by_problems_and_stand_in_the_text():
    texts = [(number, f"Wait, that is so. But wait: word{chr(97 + number)} 12 等等 x") for number in range(8)]
    found = candidates([*texts[:-1], (7, "nothing")])
    assert "Wait," in found
    assert "But wait" in found
    assert "Wait, that" in found
    assert "等等" in found
    assert not any("word" in gram for gram in found)
    assert all(any(gram in text for _, text in texts) for gram in found)


def test_what_cannot_be_learnt_from(tmp_path):
    always = material(planted(tmp_path / "a", problems=6, k=3, gold="9"))
    with pytest.raises(NotHere, match="nothing to tell apart"):
        fit(always)
    few = material(planted(tmp_path / "b", problems=3, k=6))
    with pytest.raises(ConfigError, match="folds"):
        fit(few, count=5)
    with pytest.raises(ConfigError, match="criterion"):
        fit(few, criterion="best")


def test_the_command(tmp_path, capsys):
    pool = planted(tmp_path, problems=12, k=8)
    assert main(["markers", "fit", str(pool), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "fot.markers.fit/1"
    assert told["present"] is True
    assert "perhaps" in told["markers"][0]["text"]
    assert main(["simulate", str(pool), "--policy", told["policy"], "--json"]) == 0
    capsys.readouterr()
    assert main(["markers", "fit", str(pool), "--size", "3"]) == 0
    out = capsys.readouterr()
    assert "The signal is there" in out.out
    assert "--policy 'fot:kernel=" in out.err
