import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.core.policy import Need
from fot.errors import ConfigError
from fot.methods import Context, methods, parse


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("sc", "sc"),
        ("fot", "fot"),
        ("fot:keep=0.67", "fot"),
        ("fot:checkpoints=6000/10000,keep=0.5", "fot:checkpoints=6000/10000,keep=0.5"),
        ("fot:keep=0.5+decided", "fot:keep=0.5+decided"),
        ("decided+fot", "fot+decided"),
        ("fot:kernel=top-3,early_voting=off", "fot:kernel=top-3,early_voting=off"),
        ("fot:kernel=Wait%2C/perhaps", "fot:kernel=Wait%2C/perhaps"),
        ("fot:checkpoints=", "fot:checkpoints="),
    ],
)
def test_a_spec_has_one_canonical_text(text, canonical):
    spec = parse(text)
    assert spec.text == canonical
    assert parse(spec.text) == spec


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ft", "Did you mean 'fot'"),
        ("", "unknown method ''"),
        ("fot:kep=1", "Did you mean 'keep'"),
        ("fot:keep", "not key=value"),
        ("fot:keep=x", "fot:keep takes a number, not 'x'"),
        ("fot:keep=2", "keep must lie"),
        ("fot:keep=nan", "keep must lie"),
        ("fot:keep=0.5,keep=0.6", "given twice"),
        ("fot:checkpoints=3/2", "rise"),
        ("fot:checkpoints=0/2", "positive"),
        ("fot:checkpoints=a", "takes a list, each item a whole number"),
        ("fot:early_voting=perhaps", "takes on or off"),
        ("fot:early_voting=off,eager=on", "eager"),
        ("fot:kernel=top-99", "21 markers"),
        ("fot:signal=dens", "Did you mean 'density'"),
        ("decided", "works around another"),
        ("sc+fot", "cannot work around"),
    ],
)
def test_a_bad_spec_says_what_is_wrong(text, complaint):
    with pytest.raises(ConfigError, match=complaint):
        parse(text)


@given(st.text(max_size=30))
def test_any_text_is_a_spec_or_a_clear_error(text):
    try:
        parse(text)
    except ConfigError as error:
        assert error.hint


def test_every_method_has_a_summary_and_builds_or_wraps():
    for name, method in methods().items():
        assert method.name == name
        assert method.summary
        assert method.build is not None or method.wrap is not None  # waves is both


def test_needs():
    assert parse("fot").needs == frozenset()
    assert parse("fot:eager=on+decided").needs == {Need.COMMITMENTS}
    assert parse("oracle").needs == {Need.FUTURE}
    assert parse("random:draws=3").draws(30) == 3
    assert parse("pass").draws(30) == 30
    assert parse("pass").order(Context(k=3, draw=1)) == [1, 0, 2]
