import json
from dataclasses import replace

import pytest

from fot.cli.main import main
from fot.core.rollout import Rollout
from fot.engines.scripted import Pace, Scripted
from fot.engines.vllm import Vllm
from fot.errors import EngineRefused
from fot.online.doctor import QUESTION, Examination
from tests.cli.serving import serving


def recorded(k=9):
    texts = [f"<think>thought {at}</think>" + f"so {at} it goes on " * 400 for at in range(k)]
    return [
        Rollout(
            model="m", benchmark="b", problem_id="p", rollout_id=at, text=text, n_tokens=len(text), prompt_tokens=30
        )
        for at, text in enumerate(texts)
    ]


def examined(capsys, dialect="vllm", k=4, **options):
    with serving(recorded(), dialect, pace=Pace(token_s=0.0002, chunk_tokens=4), **options) as (url, _):
        code = main(["doctor", "--base-url", url, "--k", str(k), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "fot.doctor/1"
    known = [finding for finding in told["findings"] if finding["name"] == "this server"]
    return code, {finding["name"]: finding for finding in told["findings"]} | {"this server": known}


@pytest.mark.parametrize("dialect", ["vllm", "llamacpp", "sglang"])
def test_a_fit_server(capsys, dialect):
    code, found = examined(capsys, dialect)
    assert code == 0
    for name in ("token counts", "seeds", "abort", "resume"):
        assert found[name]["verdict"] == "good", found[name]
    assert found["abort"]["figures"]["seconds"] < 30


def test_a_server_of_which_little_is_known(capsys):
    code, found = examined(capsys, "openai")
    assert code == 0
    assert found["resume"]["verdict"] == "poor"
    assert found["abort"]["verdict"] in ("unknown", "good")


def test_a_server_that_never_notices_a_closed_connection_is_warned_of(capsys):
    code, found = examined(capsys, "sglang", version="0.5.17")
    assert found["abort"]["verdict"] == found["closed connection"]["verdict"] == "good"  # is told by name before
    assert "0.5.20 or newer" in found["this server"][0]["found"]
    assert code == 0


def test_nobody_there(capsys):
    assert main(["doctor", "--base-url", "http://127.0.0.1:9"]) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_the_table_says_what_to_change(capsys):
    with serving(recorded(), "openai", pace=Pace(chunk_tokens=4)) as (url, _):
        main(["doctor", "--base-url", url, "--k", "2"])
    out, err = capsys.readouterr()
    assert "resume" in out
    assert "note: resume: Rollouts that break off are lost" in err


def test_a_context_that_is_shorter_than_what_is_asked_for(monkeypatch, capsys):
    stream = Vllm.stream

    async def strict(self, request):
        if request.max_tokens > 1024:
            raise EngineRefused("max_tokens cannot be greater than max_model_len", status=400)
        async for chunk in stream(self, request):
            yield chunk

    monkeypatch.setattr(Vllm, "stream", strict)
    code, found = examined(capsys)
    assert code == 0
    assert found["abort"]["verdict"] == found["closed connection"]["verdict"] == "good"


@pytest.mark.anyio
@pytest.mark.parametrize(("is_buffered", "verdict"), [(False, "good"), (True, "poor")])
async def test_a_stream_that_comes_late_and_all_at_once(monkeypatch, is_buffered, verdict):
    """A clock of the test's own: a millisecond for each token that is read, or all of them before the first."""
    now = 0.0

    class Slow(Scripted):
        async def stream(self, request):
            nonlocal now
            chunks, before = [chunk async for chunk in super().stream(request)], 0
            if is_buffered:
                now += chunks[-1].tokens / 1000
            for chunk in chunks:
                if not is_buffered:
                    now += (chunk.tokens - before) / 1000
                before = chunk.tokens
                yield chunk

    monkeypatch.setattr("fot.online.doctor.time.perf_counter", lambda: now)
    engine = Slow([replace(row, problem=QUESTION) for row in recorded()], pace=Pace(chunk_tokens=4))
    finding = await Examination(engine, await engine.capabilities(), 4).flow()
    assert finding.verdict == verdict
    assert finding.figures["whole_s"] == pytest.approx(0.128)
