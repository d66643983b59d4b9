"""What the registry tells, and what third parties may add."""

from importlib.metadata import EntryPoint
from pathlib import Path

import msgspec
import pytest

from fot.cli.main import main
from fot.errors import MissingExtra
from fot.methods import Context, methods, parse, signals, spec
from fot.methods.embedding import EMBEDDERS, embedder

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_method.py"


def test_fot_methods_lists_all(capsys):
    assert main(["methods", "--json"]) == 0
    listed = msgspec.json.decode(capsys.readouterr().out)
    assert listed["schema"] == "fot.methods/1"
    assert [entry["name"] for entry in listed["methods"]] == list(methods())
    assert all(entry["summary"] for entry in listed["methods"])
    assert all(parameter["summary"] for entry in listed["methods"] for parameter in entry["parameters"])
    needs = {entry["name"]: entry["needs"] for entry in listed["methods"]}
    assert needs["oracle"] == ["future"]
    assert needs["dsc"] == ["dataset"]
    kinds = {entry["name"]: entry["kind"] for entry in listed["methods"]}
    assert (kinds["fot"], kinds["decided"], kinds["ac"]) == ("method", "wrapper", "sampler")


def test_fot_methods_tells_one(capsys):
    assert main(["methods", "adaptive"]) == 0
    out = capsys.readouterr().out
    assert "settle" in out
    assert "esc" not in out
    assert main(["methods"]) == 0
    listed = capsys.readouterr()
    assert "fot methods NAME" in listed.err
    assert "checkpoints=6000/10000/14000, keep=0.67" in listed.out
    assert main(["methods", "adaptve"]) == 2
    assert "Did you mean 'adaptive'" in capsys.readouterr().err


def test_the_example_of_a_method_stays_short():
    code = [line for line in EXAMPLE.read_text().splitlines() if line.strip()]
    assert len(code) < 40


@pytest.fixture
def entry_points(monkeypatch):
    """Entry points as an installed package would bring them."""
    offered = {
        "fot.methods": [EntryPoint("mine", "fot.methods.sampling:SC", "fot.methods")],
        "fot.signals": [EntryPoint("flat", "tests.methods.test_registry:flat", "fot.signals")],
    }
    for module in (spec, signals):
        monkeypatch.setattr(module, "entry_points", lambda *, group: offered[group])
    for cached in (spec.methods, signals._signals):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (spec.methods, signals._signals):
        cached.cache_clear()


def flat(context):
    return signals.Signal("flat", lambda prefix, bank: 0.0)


def test_third_parties_add_methods_and_signals(entry_points):
    assert "mine" in methods()
    assert parse("fot:signal=flat/density").build(Context(k=3)).signal.name == "flat/density"
    assert "flat" in signals.signal_names()


@pytest.mark.parametrize("name", EMBEDDERS)
def test_an_absent_embedder_names_its_extra(name, monkeypatch):
    monkeypatch.setattr("fot.methods.embedding.find_spec", lambda package: None)
    embedder.cache_clear()
    with pytest.raises(MissingExtra, match="slimsc"):
        embedder(name)
