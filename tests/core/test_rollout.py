from hypothesis import given
from hypothesis import strategies as st

from fot.core.rollout import Rollout, tokens_reaching


def rollout(text, **known):
    return Rollout(model="m", benchmark="b", problem_id="p", rollout_id=0, text=text, **known)


def test_prefixes_are_exact_interpolated_or_estimated():
    exact = rollout("abcdefghij", n_tokens=4, token_ends=[1, 3, 6, 10])
    assert [exact.prefix(t) for t in (0, 1, 2, 3, 4, 9)] == ["", "a", "abc", "abcdef", "abcdefghij", "abcdefghij"]
    between = rollout("abcdefghij", n_tokens=4)
    assert [between.prefix(t) for t in (0, 1, 2, 3, 4)] == ["", "ab", "abcde", "abcdefg", "abcdefghij"]
    guessed = rollout("abcdefghij")
    assert guessed.tokens == 3  # at 3.5 characters a token
    assert guessed.prefix(1) == "abc"
    assert (exact.cut, between.cut, guessed.cut) == ("exact", "interpolated", "estimated")
    assert rollout("abc", token_ends=[1, 3]).tokens == 2


@given(st.text(max_size=30), st.integers(1, 20), st.integers(0, 30), st.data())
def test_tokens_reaching_is_the_first_prefix_that_holds_an_end(text, n_tokens, end, data):
    end = min(end, len(text))
    ends = None
    if data.draw(st.booleans()):
        inner = data.draw(st.lists(st.integers(0, len(text)), min_size=n_tokens - 1, max_size=n_tokens - 1))
        ends = [*sorted(inner), len(text)]
    one = rollout(text, n_tokens=n_tokens, token_ends=ends)
    reached = tokens_reaching(end, len(text), n_tokens, ends)
    assert len(one.prefix(reached)) >= end
    assert reached == 0 or len(one.prefix(reached - 1)) < end
