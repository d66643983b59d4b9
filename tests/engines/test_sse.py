"""Events come out the same however their bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fot.engines import sse
from fot.engines.sse import EventParser
from fot.errors import EngineProtocolError

STREAM = (
    b'\xef\xbb\xbf: a comment\n\ndata: {"a": 1}\n\nevent: message\nid: 7\ndata:no blank\nretry: 3\n\n'
    b"data: one\ndata: two\n\n\n\ndata\n\n: ping\n\ndata: \xc3\xbc\xe2\x80\xa6\n\ndata: [DONE]\n\n"
)
EVENTS = [b'{"a": 1}', b"no blank", b"one\ntwo", "ü…".encode(), b"[DONE]"]


@given(st.lists(st.integers(0, len(STREAM) + 30)), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_cuts_and_line_endings_do_not_matter(cuts: list[int], ending: bytes) -> None:
    stream = STREAM.replace(b"\n", ending)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parser = EventParser()
    events = [event for a, b in pairwise(places) for event in parser.feed(stream[a:b])]
    last = parser.finish()
    assert events + ([last] if last is not None else []) == EVENTS


def test_an_event_without_its_blank_line_is_given_at_the_end() -> None:
    parser = EventParser()
    assert parser.feed(b"data: a\n\ndata: [DO") == [b"a"]
    assert parser.feed(b"NE]") == []
    assert parser.finish() == b"[DONE]"
    assert parser.finish() is None


def test_what_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_LARGEST", 100)
    parser = EventParser()
    parser.feed(b"data: " + b"x" * 60)
    with pytest.raises(EngineProtocolError, match="does not end"):
        parser.feed(b"x" * 60)
