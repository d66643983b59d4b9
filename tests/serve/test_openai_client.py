"""The official `openai` client against the proxy: in front of a real llama.cpp server with the model in the box, and of
a scripted server that speaks like each engine.
"""

from __future__ import annotations

import asyncio

import openai
import pytest

from fot.engines.faults import Fault
from fot.engines.scripted import Scripted
from tests.serve.house import PROBLEM, SLOW, House, rollout, spiders
from tests.serve.llama import RealHouse

UPSTREAMS = ("vllm", "sglang", "llamacpp", "openai", "real")


@pytest.fixture(scope="module", params=UPSTREAMS)
def house(request):
    with RealHouse() if request.param == "real" else House(dialect=request.param) as house:
        yield house


@pytest.fixture(scope="module", params=["sglang", "real"])
def slow(request):
    """Takes seconds, which leave time to leave."""
    with (
        RealHouse(policy="sc") if request.param == "real" else House(spiders(8, 200), dialect="sglang", pace=SLOW)
    ) as house:
        yield house


@pytest.fixture
def client(house):
    with caller(house) as client:
        yield client


def caller(house, **more):
    return openai.OpenAI(base_url=f"{house.url}/v1", api_key="unused", **{"max_retries": 0, **more})


def endless(house, **more):
    """A request that takes long: the real model is kept from ending."""
    more.setdefault("extra_body", {})
    if house.is_real:
        more["extra_body"] |= {"ignore_eos": True}
    return house.asked(**more)


def reasoning_of(message):
    return getattr(message, "reasoning", None) or getattr(message, "reasoning_content", None)


def check(house, content, reasoning):
    """The answer of this house's problem, as the winner wrote it."""
    if house.is_real:
        assert content.startswith("The answer is \\boxed{")
        assert "Step 1" in reasoning
        assert "</think>" not in reasoning
    else:
        assert content == "It is \\boxed{24}."
        assert reasoning.endswith("So it is. " * 12)


def test_a_plain_answer(house, client):
    before = house.generated()
    answer = client.chat.completions.create(**house.asked())
    house.settle()
    check(house, answer.choices[0].message.content, reasoning_of(answer.choices[0].message))
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == house.model
    assert answer.usage.completion_tokens - answer.fot["usage"]["overshoot_tokens"] == sum(answer.fot["stops"])
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.fot["counts"] == ("estimated" if house.upstream._dialect == "openai" else "exact")
    if answer.fot["counts"] == "exact" and not house.is_real:
        # What was underway when a connection was closed is known to the upstream only.
        assert 0 <= house.generated() - before - answer.usage.completion_tokens <= 8 * 40
    assert f"\\boxed{{{answer.fot['answer']}}}" in answer.choices[0].message.content
    assert answer.fot["votes"][answer.fot["answer"]] == max(answer.fot["votes"].values())
    assert len(answer.fot["fates"]) == 8
    assert "pruned" in answer.fot["fates"]
    assert answer.fot["id"] in house.desk.board.runs


def test_the_reasoning_is_in_the_upstreams_field(house, client):
    message = client.chat.completions.create(**house.asked()).choices[0].message
    field = "reasoning" if house.upstream._dialect == "vllm" else "reasoning_content"
    assert getattr(message, field).startswith("Start with" if house.is_real else "So it is.")


def test_a_stream(house, client):
    chunks = list(client.chat.completions.create(**house.asked(stream=True, stream_options={"include_usage": True})))
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    thought = "".join(reasoning_of(chunk.choices[0].delta) or "" for chunk in chunks if chunk.choices)
    check(house, said, thought)
    assert not thought.startswith("[")
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-2].fot["votes"]
    assert chunks[-1].usage.completion_tokens >= sum(chunks[-2].fot["stops"])
    assert not chunks[-1].choices


def test_progress_among_the_thoughts(house, client):
    ask = house.asked(stream=True, extra_body={"fot": {"progress": "reasoning"}})
    chunks = list(client.chat.completions.create(**ask))
    thought = "".join(reasoning_of(chunk.choices[0].delta) or "" for chunk in chunks)
    assert thought.startswith("[")
    check(house, "".join(chunk.choices[0].delta.content or "" for chunk in chunks), thought)


def test_options_of_ours(house, client):
    fot = {"k": 3, "policy": "sc", "seed": 43}
    answer = client.chat.completions.create(**house.asked(extra_body={"fot": fot}))
    assert answer.fot["k"] == 3
    assert answer.fot["policy"] == "sc"
    assert answer.fot["fates"] == ["finished"] * 3
    assert answer.fot["savings"]["tokens"] == 0
    assert sum(answer.fot["votes"].values()) <= 3
    assert house.is_real or answer.fot["votes"] == {"24": 2, "18": 1}


def test_all_that_was_generated_is_counted(house, client):
    house.settle()
    before = house.generated()
    answer = client.chat.completions.create(**house.asked(extra_body={"fot": {"policy": "sc"}}))
    house.settle()
    assert answer.usage.completion_tokens == sum(answer.fot["stops"])
    if answer.fot["counts"] == "exact":
        assert house.generated() - before == answer.usage.completion_tokens


def test_checkpoints_and_keep_by_name(house, client):
    answer = client.chat.completions.create(**house.asked(extra_body={"fot": {"checkpoints": [5], "keep": 0.5}}))
    assert answer.fot["policy"] == "fot:checkpoints=5,keep=0.5"
    assert answer.fot["fates"].count("pruned") == 4


def test_max_tokens_caps_every_rollout(house, client):
    answer = client.chat.completions.create(**house.asked(max_tokens=7, extra_body={"fot": {"policy": "sc"}}))
    assert answer.fot["answer"] is None
    assert answer.choices[0].finish_reason == "length"
    if house.upstream._dialect != "openai":
        assert set(answer.fot["stops"]) == {7}


def test_async(house):
    async def ask():
        async with openai.AsyncOpenAI(base_url=f"{house.url}/v1", api_key="unused", max_retries=0) as client:
            plain = client.chat.completions.create(**house.asked())
            stream = await client.chat.completions.create(**house.asked(stream=True))
            said = [chunk.choices[0].delta.content or "" async for chunk in stream]
            return (await plain).choices[0].message.content, "".join(said)

    for said in asyncio.run(ask()):
        assert "\\boxed{" in said


def test_models(house, client):
    assert [model.id for model in client.models.list()] == [house.model]
    assert client.models.retrieve(house.model).id == house.model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other/../model")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"n": 2}, "n is 2"),
        ({"messages": []}, "no messages"),
        ({"messages": [{"content": "x"}]}, "role"),
        ({"messages": [{"role": "user", "content": 7}]}, "content"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"extra_body": {"fot": {"k": 65}}}, "allows 1 to 64"),
        ({"extra_body": {"fot": {"k": 0}}}, "allows 1 to 64"),
        ({"extra_body": {"fot": {"kk": 3}}}, "kk"),
        ({"extra_body": {"fot": {"policy": "fots"}}}, "Did you mean 'fot'"),
        ({"extra_body": {"fot": {"policy": "fot:keep=7"}}}, "keep"),
        ({"extra_body": {"fot": {"policy": "x" * 501}}}, "500 characters"),
        ({"extra_body": {"fot": {"policy": "oracle"}}}, "final length"),
        ({"extra_body": {"fot": {"commit": "boxer"}}}, "commitment detector"),
        ({"extra_body": {"fot": {"deadline_s": 1e9}}}, "deadline_s"),
        ({"extra_body": {"fot": {"checkpoints": [4, 2]}}}, "rise"),
        ({"extra_body": {"fot": []}}, "fot"),
    ],
)
def test_what_is_refused(house, client, more, said):
    with pytest.raises(openai.BadRequestError, match=r".") as caught:
        client.chat.completions.create(**house.asked(**more))
    assert said in caught.value.body["message"]
    assert caught.value.body["type"] == "invalid_request_error"


def test_where_nobody_commits_the_first_finished_text_is_the_answer():
    with House([rollout(number, answer=None) for number in range(3)], k=3) as house, caller(house) as client:
        raw = client.chat.completions.with_raw_response.create(**house.asked())
        answer = raw.parse()
    assert (raw.headers["x-fot-mode"], raw.headers["x-fot-reason"]) == ("vote", "no-answer")
    assert (answer.fot["answer"], answer.fot["votes"]) == (None, {})
    assert answer.choices[0].message.content == "I do not know."


def test_free_form_chat_is_passed_through():
    said = "Write a poem about spiders."
    with House([rollout(number, problem=said) for number in range(3)], k=3) as house, caller(house) as client:
        messages = [{"role": "user", "content": said}]
        raw = client.chat.completions.with_raw_response.create(**house.asked(messages=messages, stream=True))
        assert (raw.headers["x-fot-mode"], raw.headers["x-fot-reason"]) == ("pass", "free-form")
        assert list(raw.parse())
        assert not house.desk.board.runs
        voted = client.chat.completions.create(**house.asked(messages=messages, extra_body={"fot": {}}))
        assert voted.fot["k"] == 3


def test_completions_are_not_there(client):
    with pytest.raises(openai.NotFoundError, match="/v1/chat/completions"):
        client.completions.create(model="scripted", prompt=PROBLEM)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"tools": [{"type": "function", "function": {"name": "add", "parameters": {}}}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response-format"),
        ({"logprobs": True}, "logprobs"),
        ({"temperature": 0}, "greedy"),
        ({"extra_body": {"fot": {"k": 1}}}, "k-1"),
        ({"extra_body": {"fot": {"policy": "none"}}}, "policy-none"),
        ({"messages": [{"role": "assistant", "content": "It"}]}, "prefill"),
    ],
)
def test_what_is_passed_through(house, client, more, reason):
    if "messages" in more:
        more = {"messages": [*house.messages, *more["messages"]]}
    raw = client.chat.completions.with_raw_response.create(**house.asked(stream=True, seed=44, **more))
    assert raw.headers["x-fot-mode"] == "pass"
    assert raw.headers["x-fot-reason"] == reason
    chunks = list(raw.parse())
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said if house.is_real else "24" in said
    assert not any(hasattr(chunk, "fot") for chunk in chunks)


def test_a_time_out_stops_everything_upstream(slow):
    with caller(slow, timeout=0.7) as client, pytest.raises(openai.APITimeoutError):
        client.chat.completions.create(**endless(slow))
    slow.settle()
    view = next(reversed(slow.desk.board.runs.values()))
    assert (view.state, view.why) == ("interrupted", "client")


@pytest.mark.parametrize("after", [1, 2])
def test_a_stream_that_is_left_stops_everything_upstream(slow, after):
    before = slow.generated()
    with (
        caller(slow) as client,
        client.chat.completions.create(
            **endless(slow, stream=True, extra_body={"fot": {"progress": "reasoning"}})
        ) as stream,
    ):
        for _ in range(after):
            next(iter(stream))
    slow.settle()
    view = next(reversed(slow.desk.board.runs.values()))
    assert view.why == "client"
    assert view.result is not None
    if not slow.is_real:  # whose books leave out what was stopped
        assert view.result["usage"]["completion_tokens"] == slow.generated() - before


def test_a_cancelled_task_stops_everything_upstream(slow):
    async def ask():
        async with openai.AsyncOpenAI(base_url=f"{slow.url}/v1", api_key="unused", max_retries=0) as client:
            asking = asyncio.ensure_future(client.chat.completions.create(**endless(slow)))
            while not slow.script.running:
                await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.wait({asking})

    asyncio.run(ask())
    slow.settle()


def test_a_deadline_gives_the_vote_so_far_or_says_that_there_is_none(slow):
    with caller(slow) as client, pytest.raises(openai.InternalServerError, match="deadline") as caught:
        client.chat.completions.create(**endless(slow, extra_body={"fot": {"deadline_s": 0.5}}))
    assert caught.value.status_code == 504
    slow.settle()


def test_errors_of_the_upstream_keep_their_status():
    other = [rollout(number, problem="How many wings has a swan?") for number in range(2)]
    with House([*spiders(2), *other], k=2, retries=1) as house, caller(house) as client:
        for stream in (False, True):
            with pytest.raises(openai.NotFoundError, match="no recorded problem") as caught:
                client.chat.completions.create(
                    **house.asked(messages=[{"role": "user", "content": "How many?"}], stream=stream)
                )
            assert house.upstream.url not in str(caught.value)


def test_an_upstream_that_is_gone():
    faults = {(PROBLEM, number): [Fault("refused")] * 9 for number in range(2)}
    with House(script=Scripted(spiders(2), faults=faults), k=2, retries=0) as house, caller(house) as client:
        with pytest.raises(openai.InternalServerError) as caught:
            client.chat.completions.create(**house.asked())
        assert caught.value.status_code == 503
        assert caught.value.response.headers["retry-after"]
        assert house.upstream.url not in str(caught.value)


def test_a_client_that_tries_again_after_a_full_queue():
    async def ask(house):
        async with openai.AsyncOpenAI(base_url=f"{house.url}/v1", api_key="unused", max_retries=9) as client:
            return await asyncio.gather(*(client.chat.completions.create(**house.asked()) for _ in range(3)))

    with House(spiders(8), slots=8, queue=1) as house:
        house.desk.admission._mean_s = 0.5  # so that nobody is told to wait for long
        answers = asyncio.run(ask(house))
        assert [answer.fot["answer"] for answer in answers] == ["24"] * 3
        assert 'status="429"' in house.desk.gauges.text().decode()
