"""Which chats look as if they had an answer to vote on."""

from __future__ import annotations

import json

import pytest

from fot.serve.protocol import Asked, Pass, read
from fot.serve.settings import Settings
from fot.serve.signs import looks_answerable


@pytest.mark.parametrize(
    ("question", "commit"),
    [
        ("What is 6 times 7?", "boxed"),
        ("How many legs do three spiders have?", "boxed"),
        ("Is $x^2 + 1$ irreducible over the integers", "boxed"),
        (r"Let \(n\) be the least such number.", "boxed"),
        ("What is 1+1", "boxed"),
        ("12个苹果, 还剩多少\uff1f", "boxed"),
        ("Which of these is a mammal?\nA) newt\nB) newtess", "choice"),
        ("Which of these is a mammal? (A) newt (B) newtess", "choice"),
        ("Which of these is a mammal?\nA) newt\nB) newtess", "paper"),
        ("Write a function that sorts a list.", "code"),
        ("anything", "a detector of somebody's own"),
    ],
)
def test_problems(question, commit):
    assert looks_answerable(question, commit)


@pytest.mark.parametrize(
    ("question", "commit"),
    [
        ("Hello there!", "boxed"),
        ("Write a poem about the sea.", "boxed"),
        ("Write an essay of 500 words.", "boxed"),
        ("Give me 5 ideas for dinner.", "boxed"),
        ("What is the meaning of life?", "boxed"),
        ("How many legs do three spiders have?", "choice"),
        ("Translate this to French: good morning", "code"),
        ("", "paper"),
    ],
)
def test_chats(question, commit):
    assert not looks_answerable(question, commit)


def body(question, system="Be kind.", **more):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    return json.dumps({"messages": messages} | more).encode()


@pytest.mark.parametrize(
    ("when", "raw", "reason"),
    [
        ("auto", body("Hello there!"), "free-form"),
        ("auto", body("What is 6 times 7?"), None),
        ("auto", body("Hello there!", fot={}), None),
        ("auto", body("Hello there!", system="Put your answer within \\boxed{}."), None),
        ("always", body("Hello there!"), None),
        ("asked", body("What is 6 times 7?"), "not-asked"),
        ("asked", body("What is 6 times 7?", fot={}), None),
        ("asked", body("What is 6 times 7? Answer: ..."), None),
    ],
)
def test_when_a_vote_is_taken(when, raw, reason):
    found = read(raw, Settings(upstream=("http://127.0.0.1:1",), when=when))
    if reason is None:
        assert isinstance(found, Asked)
    else:
        assert isinstance(found, Pass)
        assert found.reason == reason
        assert found.body == raw
