"""What the live view tells of a run while it goes on."""

from __future__ import annotations

import json

import pytest

from fot.online.events import Banked, Finished, Progress, Pruned
from fot.serve.live import RunView
from fot.serve.protocol import Asked, read
from fot.serve.settings import Settings
from tests.serve.house import MESSAGES, House
from tests.serve.test_abuse import get, post


def view_of(events):
    lanes = max((event.rollout for event in events), default=0) + 1
    body = json.dumps({"messages": MESSAGES, "model": "m" * 9999, "fot": {"k": max(lanes, 2)}}).encode()
    asked = read(body, Settings(upstream=("http://127.0.0.1:1",)))
    assert isinstance(asked, Asked)
    view = RunView("0" * 16, asked, has_texts=True)
    for event in events:
        view.note(event)
    return view


@pytest.mark.parametrize(
    ("events", "saved"),
    [
        ([], None),
        ([Progress(0, 40, 0.0, None)], None),
        ([Finished(0, 100, "7", "stop")], None),
        ([Finished(0, 100, "7", "stop"), Banked(0, 100, 0.0, "7")], 0.0),  # had ended before it was banked
        ([Finished(0, 100, "7", "stop"), Finished(1, 200, "7", "stop"), Pruned(2, 50, 9.0)], 100 / 450),
        ([Finished(0, 100, "7", "stop"), Finished(1, 200, "7", "stop"), Pruned(2, 180, 9.0)], 0.0),  # beyond the mean
        ([Pruned(0, 50, 9.0), Banked(1, 50, 1.0, "7"), Progress(2, 100, 0.0, None)], 100 / 300),  # as the longest
        ([Pruned(0, 0, 0.0)], 0.0),
    ],
)
def test_what_was_saved_so_far_errs_downwards(events, saved):
    assert view_of(events).as_json()["saved"] == (None if saved is None else pytest.approx(saved))


def test_what_a_client_wrote_is_shown_short():
    assert len(view_of([]).as_json()["model"]) == 200


def test_in_the_end_the_view_tells_what_the_answer_tells():
    with House(k=8) as house:
        answer = post(house).json()["fot"]
        told = get(house, f"/live/runs/{answer['id']}").json()
        lane = get(house, f"/live/runs/{answer['id']}/lanes/1").json()
    assert told["saved"] == answer["savings"]["tokens"] > 0
    assert [state for _, _, state, *_ in told["lanes"]] == answer["fates"]
    assert "Wait," in lane["markers"]
    assert "Wait, no." in lane["text"]
