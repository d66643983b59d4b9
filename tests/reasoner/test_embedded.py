"""The weights in the engine that they ship for: they load, answer, tokenize exactly, and differ from seed to seed."""

import json
import urllib.request
from itertools import islice

import pytest

from fot import reasoner
from fot.tasks.arithmetic import draw_problems

xllamacpp = pytest.importorskip("xllamacpp", reason="the embedded engine is an extra")


@pytest.fixture(scope="module")
def server():
    params = xllamacpp.CommonParams()
    params.model.path = str(reasoner.model_path())
    params.n_parallel = 4
    params.n_ctx = 4 * reasoner.CONTEXT_TOKENS
    params.kv_unified = False
    params.n_gpu_layers = 0
    params.verbosity = 1
    return xllamacpp.Server(params)


def post(server, path, body):
    request = urllib.request.Request(
        server.listening_address + path,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.load(reply)


def complete(server, question, **settings):
    body = {"prompt": reasoner.prompt(question), "n_predict": reasoner.SAMPLING.max_tokens, **settings}
    return server.handle_completions(body)["choices"][0]


@pytest.mark.parametrize(
    "text",
    [
        "Step 1: 345+678. 5+8+0=13, no, 5+8+0=13. So 023.\n</think>\nThe answer is \\boxed{23}.",
        "Wait, perhaps I was wrong. Let me reconsider.",
        "words that no chain has, äöü, 思考, \t tabs",
        "  two blanks and 1234567 digits",
    ],
)
def test_text_survives_the_tokenizer(server, text):
    tokens = post(server, "/tokenize", {"content": text})["tokens"]
    assert post(server, "/detokenize", {"tokens": tokens})["content"] == text


def test_every_digit_is_a_token_and_a_word_is_whole(server):
    tokens = post(server, "/tokenize", {"content": "But wait 345", "with_pieces": True})["tokens"]
    assert [token["piece"] for token in tokens] == ["But", " wait", " ", "3", "4", "5"]


def test_greedy_solves_most_easy_problems(server):
    problems = list(islice(draw_problems("test", 1, seed=1), 20))
    texts = [complete(server, problem.text, temperature=0)["text"] for problem in problems]
    right = sum(f"\\boxed{{{problem.gold}}}" in text for problem, text in zip(problems, texts, strict=True))
    assert right >= 12


def test_equal_seeds_repeat_a_rollout_and_others_differ(server):
    question = next(draw_problems("test", 4, seed=2)).text
    settings = {"temperature": reasoner.SAMPLING.temperature, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
    texts = [complete(server, question, seed=seed, **settings)["text"] for seed in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_the_chat_template_gives_the_documented_prompt(server):
    reply = post(server, "/apply-template", {"messages": [{"role": "user", "content": "Q?"}]})
    assert reply["prompt"] == reasoner.prompt("Q?")
