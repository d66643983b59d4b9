import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.core.answers import answer_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("033", "33"),
        (" 33. ", "33"),
        ("$33$", "33"),
        ("\\text{C}", "C"),
        ("(C)", "C"),
        ("C.", "C"),
        ("\\dfrac{1}{2}", "\\frac{1}{2}"),
        ("\\left(1,\\, 2\\right)", "(1,2)"),
        ("-0", "0"),
        ("+7", "7"),
        ("a  b", "a b"),
        ("10\\,000", "10000"),
        ("1\\,234\\,567", "1234567"),
    ],
)
def test_the_same_answer_has_one_key(one, other):
    assert answer_key(one) == answer_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7", "700"),
        ("0.5", "50"),
        ("10001", "10000"),
        ("(1,2)", "[1,2]"),
        ("50\\%", "50"),
        ("-3", "3"),
        ("A", "a"),
        ("1/2", "0.5"),
        ("\\leftarrow", "arrow"),
        ("3.0", "30"),
        ("", "0"),
        ("5\\ 6", "56"),
        ("1\\,2", "12"),
        ("5~6", "56"),
        ("1\\,2345", "12345"),
    ],
)
def test_different_answers_keep_different_keys(one, other):
    assert answer_key(one) != answer_key(other)


def test_code_is_left_alone():
    assert answer_key("if x:\n    y  =  1\n") == "if x:\n    y  =  1"
    assert answer_key("x" * 5000 + " ") == "x" * 5000


@given(st.one_of(st.text(max_size=40), st.text(alphabet="$. ~,(C)0-+{}\\texlf!", max_size=14)))
def test_a_key_is_its_own_key(answer):
    key = answer_key(answer)
    assert answer_key(key) == key
