"""What a study holds in memory: bounded, shared by its parts, and without texts."""

import json
import tracemalloc

import numpy as np
import pytest

from fot.grading.keys import vote_keys
from fot.methods import parse
from fot.pools.importing import import_rows
from fot.pools.read import Pool
from fot.replay.held import Held
from fot.replay.sheet import Sheet
from fot.stats.paired import sign_flip

ANSWERS = [("3", "3", "1/2", "0.5", "\\frac12"), ("7", "700", "7", "8", "8"), ("1", "2", "2.0", "1", "4/2")]
SPECS = ["sc", "ac", "fot:checkpoints=5", "fot+decided", "fot:checkpoints=5,kernel=so/Done"]


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("held")
    with (folder / "rows.jsonl").open("w") as out:
        for problem, answers in enumerate(ANSWERS):
            for at, answer in enumerate(answers):
                row = {"model": "m", "benchmark": "b", "problem_id": f"p{problem}", "rollout_id": at, "gold": "1"}
                row |= {"text": f"so so \\boxed{{{answer}}}. Done." + " Wait" * at, "n_tokens": 9 + at}
                out.write(json.dumps(row) + "\n")
    return Pool(import_rows([folder / "rows.jsonl"], folder / "pool").pool)


def test_what_has_no_room_is_made_anew(monkeypatch):
    monkeypatch.setenv("FOT_MEMORY", "1M")  # 256 rollouts
    held, made = Held(), []

    def recording(key):
        return held.of(key, 100, lambda: made.append(key) or object())

    first = [recording(key) for key in "abc"]
    assert [recording(key) is one for key, one in zip("abc", first, strict=True)] == [True, True, False]
    assert made == list("abcc")


@pytest.mark.parametrize("text", SPECS)
def test_a_part_tells_what_the_whole_tells_of_it(pool, text):
    parts = pool.select().parts
    with vote_keys("math") as keys:
        whole = Sheet(pool, parts, "boxed", keys)
        part = whole.only(parts[1:])
        own = part.run(parse(text))  # first: what the part prepares must serve the whole
        everything = whole.run(parse(text))
    assert list(own.winners) == list(everything.winners)[1:]
    assert list(own.bills) == list(everything.bills)[1:]


def test_a_recording_is_shared_with_the_parts(pool):
    parts = pool.select().parts
    whole = Sheet(pool, parts, "boxed")
    spec = parse("fot+decided")
    held = list(whole._recorded(spec.kernel, range(len(parts))))
    again = list(whole.only(parts[1:])._recorded(spec.kernel, range(2)))
    assert [one is other for one, other in zip(held[1:], again, strict=True)] == [True, True]


def test_texts_that_a_method_read_are_let_go(pool):
    parts = pool.select().parts
    sheet = Sheet(pool, parts, "boxed")
    spec = parse("fot:checkpoints=4,signal=repetition,early_voting=off")
    sheet.run(spec)
    for recording in sheet._recorded(spec.kernel, range(len(parts))):
        assert "texts" not in recording._unread.__dict__
        assert recording.prefix(0, 99).text.startswith("so so")
        assert "texts" in recording._unread.__dict__


def test_flipping_many_signs_takes_no_more_memory_than_flipping_few():
    differences = np.random.default_rng(0).random(4_000)
    tracemalloc.start()
    sign_flip(differences)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6  # all signs at once would be 320 MB
