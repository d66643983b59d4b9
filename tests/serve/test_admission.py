"""Who runs when, without a server: the queue, its fairness, allowances."""

from __future__ import annotations

import asyncio

import pytest

from fot.serve.admission import Admission, Buckets, Refused
from fot.serve.upstreams import Upstreams


def upstreams(slots=8, number=1):
    made = Upstreams([f"http://127.0.0.1:{port}" for port in range(1, number + 1)], None, slots)
    for upstream in made.all:
        upstream.is_up = True
    return made


class Office:
    """Clients that come and stay until they are let go; `order` is who got in."""

    def __init__(self, slots=8, limit=4, number=1):
        self.upstreams = upstreams(slots, number)
        self.admission = Admission(self.upstreams, limit)
        self.order = []
        self.places = {}
        self.refused = []
        self._leave = {}

    async def come(self, client, rollouts=8, model=None):
        self._leave[client] = asyncio.Event()
        try:
            async with self.admission.admitted(client[0], rollouts, model) as upstream:
                self.order.append(client)
                self.places[client] = upstream.name
                await self._leave[client].wait()
        except Refused as error:
            self.refused.append((client, error.status))

    async def arrive(self, *clients, rollouts=8, model=None):
        tasks = []
        for client in clients:
            tasks.append(asyncio.ensure_future(self.come(client, rollouts, model)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return tasks

    async def leave(self, client):
        self._leave[client].set()
        for _ in range(5):
            await asyncio.sleep(0)


def run(story):
    asyncio.run(asyncio.wait_for(story, 20))


def test_all_rollouts_of_a_problem_begin_together_or_wait():
    async def story():
        office = Office(slots=8)
        tasks = await office.arrive("a1", "b1", rollouts=5)
        assert office.order == ["a1"]
        await office.leave("a1")
        assert office.order == ["a1", "b1"]
        await office.leave("b1")
        await asyncio.gather(*tasks)
        assert office.upstreams.all[0].used == 0
        assert (office.admission.running, office.admission.waiting) == (0, 0)

    run(story())


def test_a_problem_larger_than_all_the_room_runs_alone():
    async def story():
        office = Office(slots=8)
        tasks = await office.arrive("a1", "b1", rollouts=20)
        assert office.order == ["a1"]
        await office.leave("a1")
        await office.leave("b1")
        await asyncio.gather(*tasks)

    run(story())


def test_clients_take_turns():
    async def story():
        office = Office(slots=8, limit=9)
        tasks = await office.arrive("a1", "a2", "a3", "b1", "c1")
        for _ in tasks:
            await office.leave(office.order[-1])
        await asyncio.gather(*tasks)
        assert office.order[0] == "a1"
        assert office.order.index("b1") < office.order.index("a3")
        assert office.order.index("c1") < office.order.index("a3")

    run(story())


def test_a_full_queue_refuses_whoever_has_most_in_it():
    async def story():
        office = Office(slots=8, limit=3)
        tasks = await office.arrive("a1", "a2", "a3", "a4", "a5", "b1")
        assert office.refused == [("a5", 429), ("a4", 429)]
        for _ in range(4):
            await office.leave(office.order[-1])
        await asyncio.gather(*tasks)
        assert sorted(office.order) == ["a1", "a2", "a3", "b1"]

    run(story())


def test_who_gives_up_waiting_leaves_nothing_behind():
    async def story():
        office = Office(slots=8)
        tasks = await office.arrive("a1", "b1", "c1")
        tasks[1].cancel()
        await office.leave("a1")
        assert office.order == ["a1", "c1"]
        await office.leave("c1")
        await asyncio.wait(tasks)
        assert office.upstreams.all[0].used == 0

    run(story())


def test_who_is_let_in_and_gone_at_once_gives_the_room_back():
    async def story():
        office = Office(slots=8)
        tasks = await office.arrive("a1", "b1")
        office._leave["a1"].set()
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        assert office.upstreams.all[0].used == 0
        assert office.admission.running == 0

    run(story())


def test_problems_go_where_most_room_is_and_not_where_nobody_answers():
    async def story():
        office = Office(slots=8, number=3)
        office.upstreams.all[0].is_up = False
        tasks = await office.arrive("a1", "b1", rollouts=5)
        assert sorted(office.places.values()) == ["upstream 2", "upstream 3"]
        for client in ("a1", "b1"):
            await office.leave(client)
        for upstream in office.upstreams.all:
            upstream.is_up = False
        tasks += await office.arrive("c1")
        await asyncio.gather(*tasks)
        assert office.refused == [("c1", 503)]

    run(story())


def test_problems_go_where_their_model_is_listed():
    async def story():
        office = Office(slots=8, number=3, limit=2)
        one, two, three = office.upstreams.all
        one.models, two.models, three.models = frozenset({"a", "b"}), frozenset({"b"}), frozenset({"c"})
        tasks = await office.arrive("a1", model="a")
        tasks += await office.arrive("b1", "b2", model="b")
        tasks += await office.arrive("c1", model="c")  # does not wait behind b2, with whom it shares no upstream
        assert office.places == {"a1": "upstream 1", "b1": "upstream 2", "c1": "upstream 3"}
        tasks += await office.arrive("b3", model="a")  # waits behind b2, which may take the same upstream
        await office.leave("a1")
        assert office.places["b2"] == "upstream 1"
        await office.leave("b1")
        assert "b3" not in office.places
        three.is_up = False
        tasks += await office.arrive("e1", model="c")
        assert office.refused == [("e1", 503)]
        for client in ("b2", "c1", "b3"):
            await office.leave(client)
        await asyncio.gather(*tasks)
        assert office.places["b3"] == "upstream 1"

    run(story())


def test_a_model_that_nobody_lists_may_be_anywhere():
    async def story():
        office = Office(slots=8, number=2)
        for upstream, name in zip(office.upstreams.all, "ab", strict=True):
            upstream.models = frozenset({name})
        tasks = await office.arrive("a1", "b1", model="alias")
        assert sorted(office.places.values()) == ["upstream 1", "upstream 2"]
        for client in ("a1", "b1"):
            await office.leave(client)
        await asyncio.gather(*tasks)

    run(story())


def test_closing_refuses_those_who_wait_and_those_who_come():
    async def story():
        office = Office(slots=8)
        tasks = await office.arrive("a1", "b1")
        office.admission.close()
        tasks += await office.arrive("c1")
        assert office.refused == [("b1", 503), ("c1", 503)]
        await office.leave("a1")
        await asyncio.gather(*tasks)

    run(story())


def test_an_allowance_fills_up_again():
    now = [0.0]
    bucket = Buckets(60.0, lambda: now[0]).of("a")
    bucket.spend(60.0)
    assert bucket.wait_s(1.0) == pytest.approx(1.0)
    now[0] = 1.0
    assert bucket.wait_s(1.0) == 0.0
    bucket.spend(31.0)  # what a run has cost is known afterwards: debts are possible
    assert bucket.wait_s(0.0) == pytest.approx(30.0)
    now[0] = 1000.0
    assert bucket.wait_s(60.0) == 0.0
    assert bucket.wait_s(61.0) > 0.0


def test_no_limit_is_no_bucket():
    assert Buckets(0.0).of("a") is None


def test_a_refusal_says_when_to_come_back():
    assert Refused("x", 429, 0.0).retry_after_s == 1.0
    assert Refused("x", 429, 1e9).retry_after_s == 600.0
