"""What the live view tells of a run while it goes on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fot.core.policy import Fate
from fot.core.vote import Ballot, plurality
from fot.engines.scripted import Pace
from fot.online.events import Banked, Finished, Progress, Pruned
from fot.online.result import Result, RolloutResult, Usage
from fot.serve.live import RunView
from fot.serve.protocol import Asked, read
from fot.serve.replies import told
from fot.serve.settings import Settings
from tests.serve.house import MESSAGES, PROBLEM, House, get, post, rollout


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


def test_what_came_after_the_decision_does_not_contradict_it():
    before, after = "So \\boxed{24}. I am sure of it. ", "Wait, no, it is \\boxed{18}.</think>It is \\boxed{18}."
    ends = [*range(4, len(before + after), 4), len(before + after)]
    changed = [replace(rollout(n), text=before + after, token_ends=ends, n_tokens=len(ends)) for n in range(4)]
    pace = Pace(chunk_tokens=40, turns=1)  # all at once: the engine is ahead of every decision
    with House(changed, k=4, pace=pace, policy="fot:checkpoints=8") as house:
        answer = post(house).json()
        lane = get(house, f"/live/runs/{answer['fot']['id']}/lanes/0").json()
    assert answer["fot"]["votes"] == {"24": 4}
    message = answer["choices"][0]["message"]
    assert message["content"] == "\\boxed{24}"
    assert message["reasoning"] == before
    assert (lane["text"], lane["decided"]) == (before + after, len(before))


@pytest.mark.parametrize(
    ("commit", "text", "answer", "content"),
    [
        ("boxed", "\\boxed{7}</think>It is \\boxed{7}.", "7", "It is \\boxed{7}."),
        ("boxed", "\\boxed{7}</think>It", "7", "\\boxed{7}"),  # stopped amid its last words
        ("boxed", "\\boxed{7}", "7", "\\boxed{7}"),  # amid its thoughts
        ("choice", "</think>Answer: C. Therefore", "C", "Answer: C. Therefore"),
        ("code", "</think>```\n1\n```\nThis", "1", "```\n1\n```\nThis"),
    ],
)
def test_the_content_holds_the_answer_where_a_rollout_was_stopped(commit, text, answer, content):
    made = RolloutResult(0, 9, Fate.BANKED, answer, None, 9, None, f"{text}</think>", len(text), text)
    verdict = plurality([Ballot(0, answer)])
    result = Result(verdict, (made,), Usage(0, 0, 9, 0, 0, 0), "fot", "stream", "exact", 1.0, False)
    assert told(result, commit).content == content


def test_in_the_end_the_view_tells_what_the_answer_tells():
    with House(k=8) as house:
        answer = post(house).json()["fot"]
        told = get(house, f"/live/runs/{answer['id']}").json()
        lane = get(house, f"/live/runs/{answer['id']}/lanes/1").json()
    assert told["saved"] == answer["savings"]["tokens"] > 0
    assert [state for _, _, state, *_ in told["lanes"]] == answer["fates"]
    assert "Wait," in lane["markers"]
    assert "Wait, no." in lane["text"]


@pytest.mark.parametrize(("view", "run", "lane"), [("figures", 200, 404), ("off", 404, 404)])
def test_what_the_view_shows_is_a_setting(view, run, lane):
    with House(view=view) as house:
        run_id = post(house).json()["fot"]["id"]
        told = get(house, f"/live/runs/{run_id}")
        assert told.status_code == run
        assert PROBLEM not in told.text
        assert get(house, f"/live/runs/{run_id}/lanes/0").status_code == lane
        assert get(house, "/").status_code == run
