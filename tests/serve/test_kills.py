"""Clients that are killed at random moments: nothing goes on upstream, and both sides' books agree.

FOT_KILLS=500 kills that many; -rP tells what came of it.
"""

from __future__ import annotations

import json
import os
import random
import socket
import time

import pytest

from fot.engines.scripted import Pace
from tests.serve.house import House, spiders
from tests.serve.llama import RealHouse

KILLS = int(os.environ.get("FOT_KILLS", "12"))
K = 8
TOKEN_S = 0.04
"""Slow enough for a busy machine to close a connection within a token's time."""
LIFE_S = 0.5
PATIENCE_S = 20.0


def request(house, *, stream):
    body = json.dumps(house.asked(stream=stream, ignore_eos=True)).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def kill(house, number, after_s):
    """A client that asks and is gone after some time."""
    with socket.create_connection(("127.0.0.1", house.port), timeout=20) as line:
        line.sendall(request(house, stream=bool(number % 2)))
        if number % 3 == 0:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, not a farewell
        time.sleep(after_s)


def test_killed_clients_of_a_real_server():
    """Its books leave out what was stopped, so only what runs is looked at."""
    chance = random.Random(7)
    with RealHouse(policy="sc") as house:
        caught = 0
        for number in range(KILLS):
            kill(house, number, chance.uniform(0, LIFE_S))
            caught += bool(house.script.running)
            house.settle()
        assert caught
    print(f"{KILLS} killed, {caught} of them while rollouts ran, nothing runs on")  # noqa: T201 - as below


@pytest.mark.parametrize("dialect", ["sglang", "vllm"])
def test_killed_clients(dialect):
    """A token a rollout may be underway when its connection is closed: only the upstream knows of it."""
    chance = random.Random(7)
    pace = Pace(chunk_tokens=1, turns=1, token_s=TOKEN_S, abort_tokens=1 if dialect == "sglang" else 0)
    with House(spiders(K, 20), dialect=dialect, pace=pace, k=K, policy="fot:checkpoints=4/8") as house:
        books: dict[str, int] = {}
        untold, most = 0, 0
        for number in range(KILLS):
            kill(house, number, chance.uniform(0, LIFE_S))
            before, untold = untold, compare(house, books, untold)
            most = max(most, untold - before)
        assert house.call(house.script.counters()).running == 0
        assert books
        generated, told = house.generated(), sum(books.values())
    print(  # noqa: T201 - these figures are what it is run for
        f"{KILLS} killed, {len(books)} runs of {K} rollouts had begun, nothing runs on; tokens: {generated} upstream, "
        f"{told} here, at most {most} of one run untold"
    )


def compare(house, books, before):
    """Wait until all is quiet and the books agree; a request may be read only after its client is gone."""
    until = time.monotonic() + PATIENCE_S
    while True:
        generated, told, is_quiet = house.call(look(house))
        books |= told
        untold = generated - sum(books.values())
        if is_quiet and 0 <= untold - before <= K:
            return untold
        assert time.monotonic() < until, (before, untold, is_quiet)
        time.sleep(0.01)


async def look(house):
    """Both sides' books at one moment: upstream and proxy live in one loop, and nothing here waits."""
    told = {run_id: view.generated for run_id, view in house.desk.board.runs.items()}
    is_busy = house.script.running or house.desk.jobs or house.desk.admission.running
    return house.generated(), told, not is_busy
