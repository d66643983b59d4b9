import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fot.core.commit import DETECTORS, commitments, committed_answer, track
from fot.errors import ConfigError

PIECES = [
    "\\boxed{", "\\boxed", "{", "}", "42", " ", "\n", "</think>", "</thi", "nk>", "Answer: C", "answer is (D)",
    "Answer:", " C", "Choice B", "**Answer: A**", "\\boxed{\\text{C}}", "\\text{", "```", "```python\n", "x = 1\n",
    "\n```\n", "Final Answer: 7.", "final answer", ": ", "e", "'", "ä", "🙂", "I", "(", ")", "$", "\\boxed{7}",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
PROMPT = "Put it as \\boxed{7} please"


def answer_at(steps, cut):
    answer = None
    for step in steps:
        if step.end <= cut:
            answer = step.answer
    return answer


@pytest.mark.parametrize("detector", sorted(DETECTORS))
@settings(max_examples=600, deadline=None)
@given(text=texts, prompt=st.sampled_from([None, PROMPT]))
def test_steps_are_the_definition_applied_to_every_prefix(detector, text, prompt):
    steps = commitments(text, detector, prompt)
    assert [s.end for s in steps] == sorted(s.end for s in steps)
    for cut in range(len(text) + 1):
        assert answer_at(steps, cut) == committed_answer(text[:cut], detector, prompt), cut


@pytest.mark.parametrize("detector", sorted(DETECTORS))
@settings(max_examples=600, deadline=None)
@given(text=texts, sizes=st.lists(st.integers(1, 7), min_size=1), prompt=st.sampled_from([None, PROMPT]))
def test_chunking_changes_nothing(detector, text, sizes, prompt):
    tracker, steps, at, turn = track(detector, prompt), [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        steps += tracker.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    whole = commitments(text, detector, prompt)
    for cut in range(len(text) + 1):
        assert answer_at(steps, cut) == answer_at(whole, cut), cut


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so \\boxed{12", None),
        ("so \\boxed{}", None),
        ("so \\boxed{ \n }", None),
        ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("\\boxed{1} no, \\boxed{2}", "2"),
        ("\\boxed{1} no, \\boxed{2", "1"),
        ("\\boxed{a \\boxed{b} c}", "b"),
        ("}}} \\boxed{3}", "3"),
        ("\\boxed {3}", None),
    ],
)
def test_boxed(text, answer):
    assert committed_answer(text, "boxed") == answer


def test_a_box_of_the_prompt_is_an_echo_until_the_reasoning_has_closed():
    assert committed_answer("They say \\boxed{7}.", "boxed", PROMPT) is None
    assert committed_answer("They say \\boxed{7}. So \\boxed{8}", "boxed", PROMPT) == "8"
    assert committed_answer("</think> \\boxed{7}", "boxed", PROMPT) == "7"
    assert committed_answer("They say \\boxed{7}.", "boxed") == "7"


@pytest.mark.parametrize(
    ("tail", "answer"),
    [
        ("Answer: C", "C"),
        ("the answer is (C).", "C"),
        ("**Answer: C**", "C"),
        ("**Answer:** C", "C"),
        ("**Answer**: C", "C"),
        ("\\boxed{C}", "C"),
        ("\\boxed{\\text{C}}", "C"),
        ("\\boxed{\\textbf{(C)}}", "C"),
        ("\\text{Answer: C}", "C"),
        ("The answer is option B", "B"),
        ("Answer: Carbon", None),
        ("Answer: C or rather Answer: D", "D"),
        ("Answer: Choice B", "B"),
        ("I like B", None),
        ("Answer: K", None),
        ("Answer: I'm not sure", None),
        ("ANSWER: C", "C"),
        ("the Answer IS (c), no: (C)", None),
        ("Answer: C</think> hm", None),
    ],
)
def test_choice_is_read_after_the_reasoning_only(tail, answer):
    assert committed_answer("thoughts Answer: A</think>" + tail, "choice") == answer
    assert committed_answer("thoughts " + tail, "choice") is None or "</think>" in tail


def test_code_is_the_last_closed_block_after_the_reasoning():
    assert committed_answer("```\nno\n```\n</think>text\n```python\nx = 1\n```\nbye", "code") == "x = 1\n"
    assert committed_answer("</think>```\na\n```\n```\nb\n", "code") == "a\n"
    assert committed_answer("</think>```\na\n``` no\n```", "code") == "a\n``` no\n"


def test_paper_prefers_the_box():
    assert committed_answer("Answer: C", "paper") == "C"
    assert committed_answer("Final Answer: 12.\nok", "paper") == "12"
    assert committed_answer("Final Answer: 12. \\boxed{5}", "paper") == "5"


HOSTILE = [
    "\\boxed{" * 30_000 + "}" * 30_000,
    "{" * 200_000,
    "}" * 200_000,
    "\\boxed{" + "\\boxed{}" * 25_000,
    "\\boxed{" + "\\boxed{1}" * 25_000,
    "</think>" + "Answer: " * 25_000,
    "</think>" * 25_000,
    "</think>" + "```\n" * 50_000,
    "</think>" + " " * 200_000,
    "Final Answer: " * 14_000,
]


@pytest.mark.parametrize("detector", sorted(DETECTORS))
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_ends(detector, text):
    """A quadratic reader would not come back from these within the suite's own limit."""
    tracker = track(detector, "p \\boxed{1}")
    for at in range(0, len(text), 4):
        tracker.feed(text[at : at + 4])
    commitments(text, detector)


def test_unknown_detector():
    with pytest.raises(ConfigError, match="Did you mean 'boxed'"):
        track("boxe")
