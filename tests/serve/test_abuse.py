"""What people and programs do to servers: every answer has the right status, nothing leaks, nothing hangs."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import threading
import time
from contextlib import suppress

import httpx2
import pytest

from fot.serve.protocol import read
from fot.serve.settings import Settings
from fot.serve.streams import EventResponse
from tests.serve.house import ASK, PROBLEM, SLOW, House, get, post, rollout, spiders

IDLE = int(os.environ.get("FOT_IDLE", "200"))
KEY = "correct-horse-battery"


@pytest.fixture(scope="module")
def house():
    with House(header_s=0.5, body_s=0.5, max_body_bytes=5000) as house:
        yield house


@pytest.fixture(scope="module")
def locked():
    with House(api_key=(KEY, "another-key-of-ours")) as house:
        yield house


def raw(house, data, *, until_closed=True):
    """Send bytes as they are; what comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", house.port), timeout=20) as line:
        line.sendall(data)
        pieces = []
        while until_closed and (piece := line.recv(65536)):
            pieces.append(piece)
    return b"".join(pieces)


# --- keys


@pytest.mark.parametrize("key", [None, "wrong-key-altogether", KEY[:-1], KEY + "x", "é" * 9])
def test_wrong_keys(locked, key):
    headers = {} if key is None else {"authorization": f"Bearer {key}".encode()}
    answer = httpx2.post(f"{locked.url}/v1/chat/completions", json=ASK, headers=headers, timeout=30)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert answer.headers["www-authenticate"] == "Bearer"
    assert not locked.script.running


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/live/events", "/live/runs/x", "/static/app.js", "/none"])
def test_everything_but_health_needs_the_key(locked, path):
    assert get(locked, path).status_code == 401
    assert get(locked, "/health").json()["status"] == "ok"


def test_right_keys(locked, caplog):
    with caplog.at_level(logging.DEBUG):
        for key in (KEY, "another-key-of-ours"):
            assert post(locked, key=key).json()["fot"]["answer"] == "24"
    assert KEY not in caplog.text
    assert PROBLEM not in caplog.text


def test_the_live_view_needs_the_key_too(locked):
    with httpx2.Client(base_url=locked.url, timeout=30) as browser:
        door = browser.get("/")
        assert door.status_code == 401
        assert "API key" in door.text
        for wrong in ({"key": "wrong-key-altogether"}, {f"k{n}": "" for n in range(99)}, {"key": "\0é"}):
            assert browser.post("/login", data=wrong).status_code == 401
        inside = browser.post("/login", data={"key": KEY})
        assert (inside.status_code, inside.headers["location"]) == (303, "/")
        cookie = inside.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert KEY not in cookie
        assert "data-keyed" in browser.get("/").text
        for path in ("/static/app.js", "/static/welcome.js", "/static/funnel.js", "/v1/models"):
            assert browser.get(path).status_code == 200
        # The cookie lets nobody spend anything.
        assert browser.post("/v1/chat/completions", json=ASK).status_code == 401
        assert browser.get("/metrics").status_code == 401


def test_guessing_keys_is_slowed_down():
    with House(api_key=(KEY,)) as house:
        with httpx2.Client(base_url=house.url, timeout=30) as guesser:
            found = [
                guesser.get("/v1/models", headers={"authorization": f"Bearer guess-{n}"}).status_code for n in range(70)
            ]
        assert found[0] == 401
        assert found[-1] == 429
        assert get(house, "/v1/models", authorization=f"Bearer {KEY}").status_code == 200


# --- requests that are none


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"\xff\xfe", 400),
        (b'{"messages": "hello"}', 400),
        (b'{"messages": [], "messages": 3}', 400),
        (b"[" * 4000, 400),
        (b'{"messages": [{"role": "user", "content": "' + b"x" * 6000 + b'"}]}', 413),
    ],
)
def test_bodies(house, body, status):
    answer = httpx2.post(f"{house.url}/v1/chat/completions", content=body, timeout=30)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert not house.desk.jobs


def test_a_huge_body_without_a_length(house):
    answer = httpx2.post(f"{house.url}/v1/chat/completions", content=iter([b"x" * 1000] * 50), timeout=30)
    assert answer.status_code == 413


@pytest.mark.parametrize("length", ["-5", "1e9", "99999999999999999999999", "5, 6"])
def test_odd_lengths(house, length):
    told = raw(
        house, f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n".encode()
    )
    assert told.split(b" ")[1] in (b"400", b"413")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6", b"400"),
        (b"GET /health HTTP/1.1\r\nhost: localhost\r\nhost: evil.example", b"400"),
        (b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: a\0b", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00", b"400"),  # TLS
        (b"GET /health HTTP/1.0", b"403"),  # no host
        (b"CONNECT evil.example:443 HTTP/1.1\r\nhost: localhost\r\nconnection: close", b"404"),
        (b"GET http://evil.example/health HTTP/1.1\r\nhost: localhost\r\nconnection: close", b"404"),
        (b"GET /health%0d%0ax-evil:1 HTTP/1.1\r\nhost: localhost\r\nconnection: close", b"404"),
    ],
)
def test_heads_that_are_none(house, head, status):
    told = raw(house, head + b"\r\n\r\n")
    assert told.split(b" ")[1] == status
    assert b"x-evil" not in told.lower()


def test_slow_bodies(house):
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"
    assert raw(house, head).split(b" ")[1] == b"408"


@pytest.mark.parametrize("begun", [b"", b"GET /health HTTP/1.1\r\nhost: loc"])
def test_slow_heads_are_cut(house, begun):
    assert raw(house, begun) == b""


def test_idle_connections_keep_nobody_out_and_come_to_an_end():
    """FOT_IDLE=10000 opens that many."""
    with House(header_s=1.5 if IDLE < 1000 else 10.0, max_connections=IDLE // 5) as house:
        lines = [socket.create_connection(("127.0.0.1", house.port), timeout=20) for _ in range(IDLE)]
        assert post(house).status_code == 200
        assert get(house, "/health").status_code == 200
        assert len(house.proxy.server_state.connections) <= IDLE // 5 + 1
        for line in lines:
            with suppress(ConnectionResetError):  # it made room for others
                assert line.recv(1) == b""
            line.close()
        assert post(house).status_code == 200
        assert not [held for held in house.proxy.config.http_protocol_class.idle if held.transport.is_closing()]


def test_paths(house):
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/",
        "/live/runs/..%2f..",
        "/live/runs/x/lanes/-1",
        f"/live/runs/x/lanes/{'9' * 5000}",
    ):
        assert get(house, path).status_code == 404
    assert get(house, "/v1/chat/completions").status_code == 405
    assert (
        raw(house, b"GET //evil.example/ HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").split(b" ")[1]
        == b"404"
    )


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost:80@evil.example", "[", "a]"])
def test_other_names_for_this_machine(house, host):
    assert get(house, "/v1/models", host=host).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1.evil.example", "http://["])
def test_pages_of_others(house, origin):
    assert get(house, "/v1/models", origin=origin).status_code == 403
    assert get(house, "/v1/models", origin=house.url).status_code == 200


def test_injected_headers(house):
    answer = post(house, ASK | {"model": "scripted\r\nx-evil: 1", "user": "a\r\nb"})
    assert "x-evil" not in answer.headers
    assert answer.status_code == 200


@pytest.mark.parametrize("fot", [{"upstream": "http://evil.example"}, {"base_url": "x"}, {"api_key": "x"}])
def test_no_request_redirects_the_upstream(house, fot):
    assert post(house, ASK | {"fot": fot}).status_code == 400


@pytest.mark.parametrize(
    ("fot", "said"),
    [
        ({"checkpoints": list(range(1, 100))}, "more than 64"),
        ({"checkpoints": [20, 10]}, "must be positive and rise"),
        ({"policy": "sc", "keep": 0.5}, "sc has no keep. Leave it out"),
        ({"policy": "dsc"}, "only a replay has. Use another method"),
        ({"policy": "fot:" + "x" * 500}, "longer than 500"),
    ],
)
def test_options_that_cannot_be(house, fot, said):
    answer = post(house, ASK | {"fot": fot})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "fot"
    assert said in answer.json()["error"]["message"]


def test_what_would_speak_over_our_head_is_left_out(house):
    body = ASK | {
        "rid": "fot",
        "request_id": "x",
        "stream_options": {"include_usage": False},
        "prompt": "y",
        "echo": True,
    }
    answer = post(house, body)
    assert answer.json()["fot"]["answer"] == "24"


def test_strict_headers_on_every_answer(house):
    for path in ("/", "/health", "/none", "/static/app.js"):
        headers = get(house, path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def test_the_page_uses_nothing_from_elsewhere(house):
    for path in (
        "/",
        "/static/login.css",
        *(f"/static/{name}" for name in ("app.js", "app.css", "welcome.js", "funnel.js")),
    ):
        text = get(house, path).text
        assert "https://" not in text
        assert "innerHTML" not in text
        assert not any(word in text for word in ("<style", "onclick=", 'style="'))


def test_markup_in_a_model_s_words():
    hostile = "<script>alert(1)</script>"
    with House([rollout(n, 5, hostile) for n in range(3)], k=3) as house:
        answer = post(house)
        assert answer.headers["content-type"] == "application/json"
        run_id = answer.json()["fot"]["id"]
        lane = get(house, f"/live/runs/{run_id}/lanes/0")
        assert hostile in lane.json()["text"]
        assert lane.headers["content-type"] == "application/json"


# --- too much


def test_allowances():
    with House(requests_per_minute=2.0) as house:
        found = [post(house) for _ in range(3)]
        assert [answer.status_code for answer in found] == [200, 200, 429]
        assert int(found[2].headers["retry-after"]) >= 1
        assert found[2].json()["error"]["type"] == "rate_limit_error"
    with House(tokens_per_minute=10.0) as house:
        assert [post(house).status_code for _ in range(2)] == [200, 429]


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_passed_through_counts_too(stream):
    with House(tokens_per_minute=10.0) as house:
        passed = ASK | {"seed": 42, "fot": {"k": 1}, "stream": stream}
        assert [post(house, passed).status_code for _ in range(2)] == [200, 429]


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({}, {"max_tokens": 100}),
        ({"max_tokens": None}, {"max_tokens": 100}),
        ({"max_tokens": 7}, {"max_tokens": 7}),
        ({"max_completion_tokens": 101}, {"max_completion_tokens": 100}),
        ({"max_tokens": 7, "n_predict": -1}, {"max_tokens": 7, "n_predict": 100}),
    ],
)
def test_the_cap_on_tokens_holds_for_what_is_passed_through(asked, sent):
    passed = ASK | {"temperature": 0} | asked
    settings = Settings(upstream=("http://127.0.0.1:1",), max_tokens=100)
    assert json.loads(read(json.dumps(passed).encode(), settings).body) == ASK | {"temperature": 0} | sent


@pytest.mark.parametrize(("stream", "status"), [(False, 504), (True, 200)])
def test_what_is_passed_through_has_a_deadline(stream, status):
    with House(spiders(8, 200), pace=SLOW, deadline_s=0.7) as house:
        answer = post(house, ASK | {"seed": 42, "fot": {"k": 1}, "stream": stream})
        house.settle()
    assert answer.status_code == status
    assert "interrupted_by_deadline" in answer.text


def test_a_queue_that_is_full():
    with House(spiders(8, 100), slots=8, queue=0, pace=SLOW) as house:
        first = threading.Thread(target=post, args=(house,))
        first.start()
        while not house.script.running:
            time.sleep(0.01)
        refused = post(house)
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 600
        assert len(house.desk.board.runs) == 1  # what was refused pushes nothing off the board
        house.loop.call_soon_threadsafe(lambda: [job.interrupt("deadline") for job in house.desk.jobs])
        first.join()


def test_a_client_that_does_not_read():
    class Endless:
        def __init__(self):
            self.is_closed = False

        def __aiter__(self):
            return self

        async def __anext__(self):
            await asyncio.sleep(0)
            return b"x"

        async def aclose(self):
            self.is_closed = True

    async def story():
        events = Endless()
        sent = []

        async def send(message):
            sent.append(message)
            if len(sent) > 3:
                await asyncio.Event().wait()

        async def receive():
            await asyncio.Event().wait()

        async with asyncio.timeout(20):
            await EventResponse(events, 0.05)({}, receive, send)
        assert events.is_closed
        assert len(sent) == 4

    asyncio.run(story())


# --- the end


@pytest.mark.parametrize(("drain_s", "what"), [(60.0, "finished"), (0.1, "cancelled")])
def test_an_orderly_end_says_what_became_of_runs(drain_s, what):
    answers = []
    with House(spiders(8, 20), pace=SLOW, drain_s=drain_s, policy="sc") as house:
        asking = threading.Thread(target=lambda: answers.append(post(house)))
        asking.start()
        while not house.script.running:
            time.sleep(0.01)
        desk = house.desk
        house.loop.call_soon_threadsafe(house.proxy.stop)
        asking.join()
    assert house.left == []
    assert not house.script.running
    assert len(getattr(desk, what)) == 1
    assert len(desk.finished) + len(desk.cancelled) == 1
    assert answers[0].status_code == (200 if what == "finished" else 503)
    assert answers[0].headers["x-fot-run"] in getattr(desk, what)
