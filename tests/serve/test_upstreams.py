"""Upstreams that misbehave, go and come back: whoever asks gets the right status, and nothing leaks."""

from __future__ import annotations

import asyncio
import socket
import time

import httpx2
import pytest

from fot.engines.faults import Fault
from fot.engines.scripted import Pace, Scripted
from fot.engines.scripted_server import ScriptedServer
from fot.serve.upstreams import Upstream
from tests.serve.house import ASK, PROBLEM, SLOW, House, get, post, spiders


class Malformed(ScriptedServer):
    """Says what no protocol knows."""

    def _frames(self, wording, chunk):
        return [b"data: {]\n\n", b"\xff\xfe\n\ndata", b": \n\n", b"event: x\ndata: 7\n\n"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_malformed_stream(stream):
    with House(make=Malformed, retries=1) as house:
        answer = post(house, ASK | {"stream": stream})
        house.settle()
        assert answer.status_code == 502
        assert answer.json()["error"]["code"] == "upstream_error"
        assert house.upstream.url not in answer.text


def test_an_upstream_that_restarts_amid_a_run():
    faults = {(PROBLEM, 2): [Fault("restart", 20)], (PROBLEM, 5): [Fault("torn", 3), Fault("dropped", 9)]}
    with House(script=Scripted(spiders(), faults=faults, pace=Pace(chunk_tokens=4, turns=1)), retries=6) as house:
        answer = post(house, ASK | {"fot": {"policy": "sc"}}).json()
        house.settle()
    assert answer["fot"]["votes"] == {"24": 6, "18": 2}
    assert answer["fot"]["failures"] == 0


def test_an_upstream_that_loses_some_rollouts_for_good():
    faults = {(PROBLEM, number): [Fault("fatal", 3)] for number in (1, 2)}
    with House(script=Scripted(spiders(), faults=faults)) as house:
        answer = post(house, ASK | {"fot": {"policy": "sc"}}).json()
    assert answer["fot"]["failures"] == 2
    assert answer["fot"]["fates"].count("failed") == 2
    assert answer["fot"]["answer"] == "24"


@pytest.mark.parametrize(("stream", "status"), [(False, 503), (True, 200)])
def test_an_upstream_that_breaks_off_what_is_passed_through(stream, status):
    faults = {(PROBLEM, 0): [Fault("dropped", 9)]}
    with House(script=Scripted(spiders(), faults=faults, pace=Pace(chunk_tokens=4, turns=1))) as house:
        answer = post(house, ASK | {"seed": 42, "fot": {"k": 1}, "stream": stream})
        house.settle()
        assert answer.status_code == status
        assert '"upstream_unavailable"' in answer.text
        assert house.upstream.url not in answer.text


def test_an_upstream_that_is_not_there_at_the_start():
    with House(upstream=("http://127.0.0.1:9/v1",)) as house:
        assert get(house, "/health").status_code == 503
        answer = post(house)
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert get(house, "/v1/models").status_code == 503


class Unlisted(ScriptedServer):
    """Has no list of models."""

    async def _plain_answer(self, asked):
        return (404, b"no such page") if asked.path == "/v1/models" else await super()._plain_answer(asked)


def test_an_upstream_that_lists_no_models_serves_chats():
    with House(dialect="openai", make=Unlisted) as house:
        assert post(house).status_code == 200
        house.call(house.proxy.desk.upstreams.check())
        assert get(house, "/health").status_code == 200
        assert get(house, "/v1/models").status_code == 404


def test_upstreams_that_come_up_are_used():
    with House(upstream=("http://127.0.0.1:9/v1",), health_s=0.1) as house:
        upstream = house.desk.upstreams.all[0]
        upstream.url = house.upstream.url
        until = time.monotonic() + 30
        while not upstream.is_up:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert get(house, "/health").json()["status"] == "ok"
        assert post(house).json()["fot"]["answer"] == "24"


def test_an_upstream_that_goes_is_found_out_by_whoever_asks_it():
    with House(health_s=600.0, retries=1) as house:
        assert post(house).status_code == 200
        house.call(house.upstream.__aexit__())
        assert post(house).status_code == 503
        assert get(house, "/health").json()["upstreams_up"] == 0  # long before its next look


def test_an_upstream_that_never_answered_is_told_once(caplog):
    async def look_twice(port: int) -> None:
        upstream = Upstream("upstream 1", f"http://127.0.0.1:{port}/v1", None, None)
        await upstream.check()
        await upstream.check()
        await upstream.close()

    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        asyncio.run(look_twice(taken.getsockname()[1]))
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["upstream 1 is down"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_problem_whose_upstream_is_gone_begins_anew_on_another(stream):
    with House() as one, House() as two:
        urls = tuple(f"{house.upstream.url}/v1" for house in (one, two))
        with House(upstream=urls, health_s=600.0) as house:
            one.call(one.upstream.__aexit__())
            answer = post(house, ASK | {"stream": stream})
            assert answer.status_code == 200
            assert '"answer":"24"' in answer.text
            assert two.generated()
            assert [upstream.used for upstream in house.desk.upstreams.all] == [0, 0]
            (view,) = house.desk.board.runs.values()
            assert view.state == "done"


def test_a_stream_that_begins_anew_begins_with_the_first_tokens(monkeypatch):
    monkeypatch.setattr("fot.serve.streams.PATIENCE_S", 60.0)
    with House() as one, House(spiders(8, 40), pace=SLOW) as two:
        urls = tuple(f"{house.upstream.url}/v1" for house in (one, two))
        with House(upstream=urls, health_s=600.0) as house:
            one.call(one.upstream.__aexit__())
            url, asked = f"{house.url}/v1/chat/completions", ASK | {"stream": True, "fot": {"policy": "sc"}}
            with httpx2.stream("POST", url, json=asked, timeout=30) as answer:
                (view,) = house.desk.board.runs.values()
                assert (answer.status_code, view.state) == (200, "running")
                assert '"answer":"24"' in answer.read().decode()
