# ruff: noqa: RUF001 — the marks that look like others are what is tested
"""The fast search finds what `str.find` finds, string by string."""

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fot.core.markers import PAPER_KERNEL
from fot.pools.matching import Texts

Found = set[tuple[int, int]]

# Few letters, some of two, three and four bytes: strings that contain, extend and overlap each other.
ALPHABET = "ab,é中𝔘"
PIECES = [*PAPER_KERNEL.markers, "But ", "Wai", "wro", "I was ", "Let me t", " ", "é", "’", "𝔘", ",", "no", "Or"]

kernels = st.lists(st.text(ALPHABET, min_size=1, max_size=4), min_size=1, max_size=8, unique=True)


def naive(texts: list[str], strings: tuple[str, ...]) -> Found:
    """Ends (as if the texts were joined) of each string's matches, found one after the other from the left."""
    found: Found = set()
    base = 0
    for text in texts:
        for which, string in enumerate(strings):
            at = text.find(string)
            while at >= 0:
                found.add((base + at + len(string), which))
                at = text.find(string, at + len(string))
        base += len(text)
    return found


def assert_found(texts: list[str], strings: tuple[str, ...]) -> None:
    matches = Texts(pa.array(texts, pa.large_string())).find(strings)
    ends, which = matches.end_chars.tolist(), matches.which.tolist()
    found = list(zip(ends, which, strict=True))
    assert ends == sorted(ends)
    assert len(set(found)) == len(found)
    assert set(found) == naive(texts, strings)
    assert len(found) == sum(text.count(string) for text in texts for string in strings)


@given(texts=st.lists(st.text(ALPHABET, max_size=40), max_size=5), strings=kernels)
@example(texts=["aa", "aaa"], strings=["aa", "aaa"])  # across the end of a text there is no match
@example(texts=["ababababa"], strings=["aba", "ab"])
@example(texts=["", "", "a"], strings=["a"])
@example(texts=[], strings=["a"])
@settings(max_examples=400)
def test_any_strings_in_any_texts(texts: list[str], strings: list[str]) -> None:
    assert_found(texts, tuple(strings))


@given(texts=st.lists(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), max_size=4))
@settings(max_examples=200)
def test_the_paper_kernel(texts: list[str]) -> None:
    assert_found(texts, PAPER_KERNEL.markers)


def test_a_part_of_a_column() -> None:
    column = pa.array(["aé", "éa", "aa"], pa.large_string()).slice(1, 2)
    matches = Texts(column).find(("a",))
    assert matches.end_chars.tolist() == [2, 3, 4]
    assert matches.start_bytes.tolist() == [2, 3, 4]
