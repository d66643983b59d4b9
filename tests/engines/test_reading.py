"""From events to chunks: what servers really sent, shortened, and what they had better not send."""

import msgspec
import pytest

from fot.engines.base import Chunk, Request, Sampling
from fot.engines.llamacpp import LlamaReader
from fot.engines.reading import ChunkReader, remaining_tokens
from fot.engines.sglang import GenerateReader
from fot.errors import EngineProtocolError, EngineRefused


def asked(**more: object) -> Request:
    return Request(id="r0.", prompt="p", **more)  # type: ignore[arg-type]


def chat(told: dict[str, object] | None, tokens: int | None = None, **more: object) -> bytes:
    choices = [] if told is None else [{"index": 0, "delta": told, "finish_reason": None, **more}]
    usage = None if tokens is None else {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
    return msgspec.json.encode({"id": "x", "object": "chat.completion.chunk", "choices": choices, "usage": usage})


def read(reader: ChunkReader, *events: bytes) -> list[Chunk]:
    return [chunk for event in events for chunk in reader.feed(event)]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_comes_on_its_channel(field: str) -> None:
    reader = ChunkReader(asked())
    chunks = read(
        reader,
        chat({"role": "assistant", "content": ""}, 0),
        chat({field: "Wait"}, 1),
        chat({field: ", no"}, 3),
        chat({"content": "Yes"}, 5),
        chat({"content": "."}, 6, finish_reason="stop"),
        chat(None, 6),
        b"[DONE]",
    )
    assert [(c.text, c.channel, c.tokens, c.ends) for c in chunks] == [
        ("Wait", "reasoning", 1, (4,)),
        (", no", "reasoning", 3, ()),
        ("Yes", "content", 5, (0, 3)),  # the tag was a token, and is left out
        (".", "content", 6, (1,)),
    ]
    last = reader.last(is_cut=False)
    assert (last.tokens, last.finish_reason, last.prompt_tokens, last.is_estimated) == (6, "stop", 5, False)
    assert reader.is_done


@pytest.mark.parametrize("pieces", [["<think>\nHm", "m"], ["<th", "ink>", "\nHmm"], ["<", "think", ">\n", "Hmm"]])
def test_an_opening_tag_is_left_out_however_it_comes(pieces: list[str]) -> None:
    reader = ChunkReader(asked())
    chunks = read(reader, *(chat({"content": piece}, n) for n, piece in enumerate(pieces, 1)))
    assert "".join(chunk.text for chunk in chunks) == "\nHmm"
    assert reader.opening.was_seen
    assert reader.last(is_cut=False).tokens == len(pieces)


@pytest.mark.parametrize("text", ["<thin ice", "<", "Think", "<think"])
def test_what_only_looks_like_a_tag_is_kept(text: str) -> None:
    reader = ChunkReader(asked())
    chunks = [
        *read(reader, *(chat({"content": letter}, n) for n, letter in enumerate(text, 1))),
        reader.last(is_cut=False),
    ]
    assert "".join(chunk.text for chunk in chunks) == text
    assert not reader.opening.was_seen


def test_a_rollout_that_goes_on_has_no_opening() -> None:
    assert read(ChunkReader(asked(prefix="x")), chat({"content": "<think>"}, 1))[0].text == "<think>"


def test_without_counts_tokens_are_estimated_until_the_end() -> None:
    reader = ChunkReader(asked())
    chunks = read(reader, chat({"content": "x" * 7}), chat({"content": "y" * 7}))
    assert [(chunk.tokens, chunk.is_estimated, chunk.ends) for chunk in chunks] == [(2, True, ()), (4, True, ())]
    assert reader.last(is_cut=True).is_estimated
    read(reader, chat({}, finish_reason="stop"), chat(None, 5))
    assert (reader.last(is_cut=False).tokens, reader.last(is_cut=False).is_estimated) == (5, False)


def test_token_ids_count_where_usage_is_not_told() -> None:
    reader = ChunkReader(asked())
    chunks = read(reader, chat({"content": "a"}, token_ids=[5]), chat({"content": "bc"}, token_ids=[6, 7]))
    assert [(chunk.tokens, chunk.is_estimated) for chunk in chunks] == [(1, False), (3, False)]


def test_halves_of_a_character_count_with_it() -> None:
    reader = ChunkReader(asked())
    chunks = read(reader, chat({"content": ""}, 1), chat({"content": ""}, 2), chat({"content": "語"}, 3))
    assert [(chunk.text, chunk.tokens, chunk.ends) for chunk in chunks] == [("語", 3, (0, 0, 1))]


def test_log_probabilities_give_confidences_and_ends() -> None:
    def token(text: str, *logprobs: float) -> dict[str, object]:
        return {"token": text, "logprob": -9, "top_logprobs": [{"token": "?", "logprob": p} for p in logprobs]}

    told = {"content": [token("Wa", -1.0, -3.0), token("it", -2.0, -4.0)]}
    [chunk] = read(ChunkReader(asked(logprobs=2)), chat({"content": "Wait"}, 2, logprobs=told))
    assert chunk.ends == (2, 4)
    assert chunk.confidences == (2.0, 3.0)
    listed = {"tokens": ["Wa", "it"], "top_logprobs": [{"a": -1.0, "b": -3.0, "c": -90.0}, {"d": -2.0, "e": -4.0}]}
    [chunk] = read(ChunkReader(asked(logprobs=2)), chat({"content": "Wait"}, 2, logprobs=listed))
    assert (chunk.ends, chunk.confidences) == ((2, 4), (2.0, 3.0))


@pytest.mark.parametrize("torn", [b'{"choices": [{"ind', b"", b"<html>", b"[1]"])
def test_what_cannot_be_read_is_an_error_that_a_retry_may_mend(torn: bytes) -> None:
    readers = (ChunkReader(asked()), LlamaReader(asked()), GenerateReader(asked(), is_incremental=False))
    for reader in readers:
        with pytest.raises(EngineProtocolError) as raised:
            reader.feed(torn)
        assert raised.value.retryable


@pytest.mark.parametrize(
    ("error", "status", "is_retryable"),
    [
        ({"message": "out of memory", "code": 500}, 500, True),
        ({"message": "too long", "code": 400}, 400, False),
        ("overloaded", 500, True),
        ({"message": "slow down", "code": 429}, 429, True),
        ({"message": "who knows", "type": "server_error"}, 500, True),
    ],
)
def test_an_error_amid_a_stream_is_raised(error: object, status: int, is_retryable: bool) -> None:
    event = msgspec.json.encode({"error": error})
    for reader in (ChunkReader(asked()), LlamaReader(asked())):
        with pytest.raises(EngineRefused) as raised:
            reader.feed(event)
        assert (raised.value.status, raised.value.retryable, raised.value.request_id) == (status, is_retryable, "r0.")


def generated(text: str, tokens: int, ids: int, finish: object = None) -> bytes:
    meta = {"id": "r0.", "completion_tokens": tokens, "prompt_tokens": 5, "cached_tokens": 4, "finish_reason": finish}
    return msgspec.json.encode({"text": text, "output_ids": list(range(ids)), "meta_info": meta})


def test_a_cumulative_stream_gives_what_is_new() -> None:
    reader = GenerateReader(asked(), is_incremental=False)
    abort = {"type": "abort"}
    chunks = read(reader, generated("Wa", 1, 1), generated("Wait", 2, 2), generated("Wait", 2, 2, abort), b"[DONE]")
    assert [(chunk.text, chunk.tokens) for chunk in chunks] == [("Wa", 1), ("it", 2)]
    assert reader.last(is_cut=False).finish_reason == "abort"


def test_the_token_that_an_abort_repeats_is_not_taken_twice() -> None:
    reader = GenerateReader(asked(), is_incremental=True)
    chunks = read(reader, generated("Wa", 1, 1), generated("it", 2, 1), generated("it", 2, 1, {"type": "abort"}))
    assert "".join(chunk.text for chunk in chunks) == "Wait"
    assert reader.last(is_cut=False).tokens == 2


def test_an_abort_that_nobody_asked_for_is_an_error() -> None:
    reader = GenerateReader(asked(), is_incremental=True)
    with pytest.raises(EngineRefused) as raised:
        read(reader, generated("", 0, 0, {"type": "abort", "message": "queue is full", "status_code": 503}))
    assert raised.value.retryable


def test_remaining_tokens() -> None:
    assert remaining_tokens(asked()) is None
    assert remaining_tokens(asked(max_tokens=5)) == 5
    assert remaining_tokens(asked(max_tokens=5, prefix="x", prefix_tokens=8, sampling=Sampling(max_tokens=10))) == 2
    assert remaining_tokens(asked(prefix="x", prefix_tokens=12, sampling=Sampling(max_tokens=10))) == 0
