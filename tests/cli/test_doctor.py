import json

import pytest

from fot.cli.main import main
from fot.core.rollout import Rollout
from fot.engines.scripted import Pace
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
    return code, {finding["name"]: finding for finding in told["findings"]}


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


def test_a_server_that_never_notices_a_closed_connection(capsys):
    code, found = examined(capsys, "sglang", version="0.5.17")
    assert found["abort"]["verdict"] == "good"
    assert code in (0, 1)


def test_nobody_there(capsys):
    assert main(["doctor", "--base-url", "http://127.0.0.1:9"]) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_the_table_says_what_to_change(capsys):
    with serving(recorded(), "openai", pace=Pace(chunk_tokens=4)) as (url, _):
        main(["doctor", "--base-url", url, "--k", "2"])
    out, err = capsys.readouterr()
    assert "resume" in out
    assert "note: resume: Rollouts that break off are lost" in err
