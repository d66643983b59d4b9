# ruff: noqa: RUF001 — the marks that look like others are what is tested
"""The index says what the definitions say, which slice texts and read them again."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fot.core import commit
from fot.core.answers import answer_key
from fot.core.commit import DETECTORS, commitments, committed_answer
from fot.core.markers import PAPER_KERNEL, Kernel, count, density
from fot.core.rollout import Rollout, cut_chars, tokens_reaching
from fot.errors import ConfigError
from fot.pools import index, scan
from fot.pools.importing import import_rows
from fot.pools.index import index_of
from fot.pools.read import Pool
from fot.pools.recipe import code_digest
from tests.pools.rows import Fields, Make, row, write_lines

PIECES = [
    "Wait, ", "Wait", "perhaps ", "no,", "But wait", "aaa", "x = 3 ", "\\boxed{", "}", "{", "1", "C", "\\boxed{C}",
    "\\boxed{2}", "\\boxed{}", "\\boxed{\\text{B}}", "</think>", "</thi", "Answer: D ", "answer is (A)", "Choice B",
    "aNSWER: B ", "anſwer: C", "the ANSWER IS ", "Answer", ": A ",
    "\n```\n", "```", "Final Answer: 7\n", "é", "𝔘", "’", "\n",
]  # fmt: skip
PROMPT = "Put it into \\boxed{C} please"
KERNELS = (PAPER_KERNEL, Kernel("own", ("aa", "a", "Wait", "it, ", "𝔘", "’é")))

texts = st.lists(st.sampled_from(PIECES), max_size=16).map("".join)


@st.composite
def rollouts(draw: st.DrawFn) -> Fields:
    text = draw(texts)
    kind = draw(st.sampled_from(["exact", "interpolated", "estimated"]))
    if kind == "estimated":
        return {"text": text}
    if kind == "interpolated":
        return {"text": text, "n_tokens": draw(st.integers(0, 40))}
    return {"text": text, "token_ends": sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))}


def assert_index_is_naive(rows: list[Rollout], pool: Pool, kernel: Kernel, detector: str, tokens: int) -> None:
    made = index_of(pool, kernel, detector)
    positions = np.arange(len(rows))
    cuts = made.cuts(positions, tokens)
    assert cuts.tolist() == [cut_chars(tokens, len(one.text), one.tokens, one.token_ends) for one in rows]
    assert made.n_tokens.tolist() == [one.tokens for one in rows]
    counts = made.marker_counts(positions, cuts)
    assert counts.tolist() == [count(one.text[:cut], kernel) for one, cut in zip(rows, cuts, strict=True)]
    exact = [density(found, cut) for found, cut in zip(counts.tolist(), cuts.tolist(), strict=True)]
    assert made.densities(positions, cuts).tolist() == exact
    some = Kernel("some", kernel.markers[1:3])
    counts = made.marker_counts(positions, cuts, [1, 2])
    assert counts.tolist() == [count(one.text[:cut], some) for one, cut in zip(rows, cuts, strict=True)]
    for one, cut, answer in zip(rows, cuts.tolist(), made.committed(positions, cuts).tolist(), strict=True):
        wanted = committed_answer(one.text[:cut], detector, one.problem)
        assert (made.answers[answer] if answer >= 0 else None) == (wanted and answer_key(wanted))
    finals = [committed_answer(one.text, detector, one.problem) for one in rows]
    assert made.final_texts(positions) == finals
    assert made.commit_tokens.tolist() == [first_commitment(one, detector) for one in rows]
    for at, one in enumerate(rows):
        steps = commitments(one.text, detector, one.problem)
        said = [(end, None if answer < 0 else made.answers[answer]) for end, answer in made.commitments(at)]
        assert said == [(step.end, None if step.answer is None else answer_key(step.answer)) for step in steps]


def first_commitment(one: Rollout, detector: str) -> int:
    ends = [step.end for step in commitments(one.text, detector, one.problem) if step.answer is not None]
    return tokens_reaching(ends[0], len(one.text), one.tokens, one.token_ends) if ends else -1


@given(
    rows=st.lists(rollouts(), min_size=1, max_size=8),
    kernel=st.sampled_from(KERNELS),
    detector=st.sampled_from(sorted(DETECTORS)),
    prompt=st.sampled_from([None, PROMPT]),
    tokens=st.integers(0, 42),
)
@settings(max_examples=250)
def test_index_is_what_the_definitions_say(
    rows: list[Fields], kernel: Kernel, detector: str, prompt: str | None, tokens: int
) -> None:
    fields = [row(f"p{at % 2}", at, problem=prompt, **one) for at, one in enumerate(rows)]
    with TemporaryDirectory() as folder:
        lines = write_lines(Path(folder, "rows.jsonl"), fields)
        pool = Pool.open(import_rows([lines], Path(folder, "pool")).pool)
        in_order = list(pool)
        assert [(one.problem_id, one.rollout_id) for one in in_order] == sorted(
            (one["problem_id"], one["rollout_id"]) for one in fields
        )
        assert_index_is_naive(in_order, pool, kernel, detector, tokens)


@given(text=texts, detector=st.sampled_from(sorted(scan._BEGINNINGS)), prompt=st.sampled_from([None, PROMPT]))
@settings(max_examples=600)
def test_a_detector_does_nothing_before_its_beginning(text: str, detector: str, prompt: str | None) -> None:
    start = text.find(scan._BEGINNINGS[detector])
    start = start if start >= 0 else len(text)
    echoes = None if "</think>" in text[:start] else prompt
    later = [(start + end, answer) for end, answer in commitments(text[start:], detector, echoes)]
    assert commitments(text, detector, prompt) == later


@given(text=texts, detector=st.sampled_from(sorted(scan._SIGNS)))
@settings(max_examples=600)
def test_a_detector_does_nothing_between_its_beginning_and_the_first_sign(text: str, detector: str) -> None:
    beginning = scan._BEGINNINGS[detector]
    behind = text.partition(beginning)[2]
    small = behind.encode().lower()  # ASCII letters alone
    found = [at for at in map(small.find, scan._SIGNS[detector]) if at >= 0]
    rest = small[min(found, default=len(small)) :].decode()
    rest = behind[len(behind) - len(rest) :]
    shift = len(text) - len(rest) - len(beginning)
    later = [(shift + end, answer) for end, answer in commitments(beginning + rest, detector)] if rest else []
    assert commitments(text, detector) == later


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], str | None]]:
    """What is scanned for, pass by pass."""
    passes: list[tuple[tuple[str, ...], str | None]] = []

    once = scan.scan

    def counted(pool: Pool, markers: tuple[str, ...], detector: str | None, *others: Any) -> scan.Scanned:
        passes.append((markers, detector))
        return once(pool, markers, detector, *others)

    monkeypatch.setattr(scan, "scan", counted)
    return passes


def test_each_thing_is_looked_for_once(make: Make, scans: list[object]) -> None:
    pool = make([row()])
    own = Kernel("own", ("so",))
    wanted: list[tuple[Kernel, str | None]] = [(PAPER_KERNEL, name) for name in ("boxed", "boxed", "choice", "paper")]
    for kernel, detector in [*wanted, (own, None)]:
        made = index_of(pool, kernel, detector)
        assert detector is None or made.final_texts(np.arange(1)) == [committed_answer(row()["text"], detector)]
    assert scans == [(PAPER_KERNEL.markers, "boxed"), ((), "choice"), ((), "paper"), (("so",), None)]


def test_other_text_and_other_code_mean_another_index(
    make: Make, scans: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make([row(text="Wait Wait")])
    assert index_of(pool).marker_counts(np.arange(1), pool.n_chars).tolist() == [2]
    pool = make([row(text="Waits Wai")])
    assert index_of(pool).marker_counts(np.arange(1), pool.n_chars).tolist() == [1]
    monkeypatch.setattr(index, "code_digest", lambda *modules: "changed")
    index_of(pool)
    assert len(scans) == 3


def test_code_digest_tells_modules_apart() -> None:
    assert code_digest(commit) == code_digest(commit)
    assert code_digest(commit) != code_digest(scan)


def test_a_damaged_index_is_built_again(make: Make, scans: list[object]) -> None:
    pool = make([row()])
    index_of(pool)
    (ends,) = pool.path.glob("index/*/markers-*/ends.npy")
    ends.write_bytes(b"no array")
    assert index_of(pool).marker_counts(np.arange(1), pool.n_chars).tolist() == [2]
    index_of(pool)
    assert len(scans) == 2


def test_where_the_pool_takes_no_index_the_cache_does(make: Make, scans: list[object]) -> None:
    pool = make([row(token_ends=[4, 8])])
    (pool.path / "index").write_text("in the way")
    index_of(pool)
    assert index_of(pool).cuts(np.arange(1), 1).tolist() == [4]
    assert len(scans) == 1


def test_without_a_detector_there_are_no_answers(make: Make) -> None:
    made = index_of(make([row()]))
    with pytest.raises(ValueError, match="detector"):
        _ = made.final


def test_an_unknown_detector_or_a_marker_that_is_no_text(make: Make) -> None:
    pool = make([row()])
    with pytest.raises(ConfigError, match="boxed"):
        index_of(pool, PAPER_KERNEL, "boxe")
    with pytest.raises(ConfigError, match="no text"):
        index_of(pool, Kernel("broken", ("\ud800",)))


def test_row_groups_do_not_show(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(f"p{at // 5}", at % 5, "Wait, é 𝔘 </think> Answer: C Wait" * (at + 1), n_tokens=99) for at in range(20)]
    monkeypatch.setattr("fot.pools.write.GROUP_CHARS", 200)
    pool = make(rows)
    assert pool.row_groups > 10
    assert_index_is_naive(list(pool), pool, PAPER_KERNEL, "choice", 50)


def test_progress_ends_with_all_characters(make: Make) -> None:
    pool = make([row(), row("p2")])
    told: list[int] = []
    index_of(pool, progress=told.append)
    assert told[-1] == pool.manifest.chars
