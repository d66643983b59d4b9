import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.core.markers import PAPER_KERNEL, Kernel, MarkerCounter, count, density, kernel_of

PIECES = [
    *PAPER_KERNEL.markers,
    "W",
    "ait",
    ",",
    " ",
    "Or",
    "But ",
    "aa",
    "a",
    "ä",
    "no",
    "I was ",
    "waiting",
    "🙂",
]
KERNELS = [PAPER_KERNEL, PAPER_KERNEL.top(1), Kernel("self-overlap", ("aa", "a", "aba", "abab"))]


@given(
    text=st.lists(st.sampled_from([*PIECES, "ab", "ba"]), max_size=40).map("".join),
    cuts=st.lists(st.integers(0, 9), min_size=1),
    kernel=st.sampled_from(KERNELS),
)
def test_any_chunking_counts_what_str_count_counts_on_every_prefix(text, cuts, kernel):
    counter, at, turn = MarkerCounter(kernel), 0, 0
    while at < len(text):
        size = cuts[turn % len(cuts)] if any(cuts) else 1
        counter.feed(text[at : at + size])
        at, turn = at + size, turn + 1
        assert counter.markers == sum(text[:at].count(marker) for marker in kernel.markers)
        assert counter.chars == len(text[:at])
    for cut in range(len(text) + 1):
        assert counter.within(cut) == count(text[:cut], kernel)


def test_overlaps_count_as_the_paper_has_it():
    assert count("Wait, wait") == 2  # "Wait," and "Wait"
    assert count("But wait, I was wrong") == 3  # with "wrong" inside
    assert count("knowing waiting piano") == 0
    assert count("piano, ") == 1  # no word boundaries: "no,"
    assert count("Or else") == 1
    assert count("Or\n") == 0


def test_density():
    assert density(3, 1500) == 2.0
    assert density(0, 0) == 0.0
    counter = MarkerCounter()
    counter.feed("Wait" + "x" * 996)
    assert counter.density == 1.0


def test_the_kernel_is_the_papers():
    assert len(PAPER_KERNEL.markers) == 21
    assert PAPER_KERNEL.markers[6] == "Or "
    assert kernel_of(["top-3"]).markers == ("perhaps", "Wait,", "Wait")
    assert kernel_of(["hm", "Tja,"]).markers == ("hm", "Tja,")
    assert kernel_of(["paper"]).digest == PAPER_KERNEL.digest != kernel_of(["top-20"]).digest


@pytest.mark.parametrize("markers", [(), ("",), ("a", "a")])
def test_a_kernel_must_make_sense(markers):
    with pytest.raises(ValueError, match="kernel"):
        Kernel("bad", markers)
