"""Other people's clients, pointed at the server as the guide says. Opt-in: `make clients` brings them.

FOT_CLIENTS is a folder of virtual environments, one for each client: they do not agree on what else is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.serve.house import PROBLEM, House, spiders

CLIENTS = Path(os.environ.get("FOT_CLIENTS", ""))
SAID = "It is \\boxed{24}."
HEAD = """
import json, os
url, problem = os.environ["OPENAI_BASE_URL"], os.environ["PROBLEM"]
messages = [{"role": "user", "content": problem}]
"""
LANGCHAIN = """
from langchain_openai import ChatOpenAI

model = ChatOpenAI(base_url=url, api_key="unused", model="scripted", extra_body={"fot": {"k": 4}})
streamed = "".join(chunk.content for chunk in model.stream(problem))
print(json.dumps([model.invoke(problem).content, streamed]))
"""
LITELLM = """
import litellm

ask = {"model": "openai/scripted", "api_base": url, "api_key": "unused", "messages": messages}
ask["extra_body"] = {"fot": {"k": 4}}
streamed = [chunk.choices[0].delta.content or "" for chunk in litellm.completion(**ask, stream=True)]
print(json.dumps([litellm.completion(**ask).choices[0].message.content, "".join(streamed)]))
"""
INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes

@task
def spiders():
    return Task(dataset=[Sample(input={problem!r}, target="boxed{{24}}")], scorer=includes())
"""
LM_EVAL = """
task: spiders
dataset_path: json
dataset_kwargs: {{data_files: {{test: {rows}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: [], do_sample: true, temperature: 0.6, max_gen_toks: 400}}
metric_list: [{{metric: exact_match}}]
"""

pytestmark = pytest.mark.skipif(not CLIENTS.name, reason="no clients here: `make clients` brings them")


@pytest.fixture(scope="module")
def house():
    with House(spiders(8), k=4) as house:
        yield house


def run(house, folder, client, program, *flags):
    """Run a client's program in a folder, without the network."""
    command = [str(CLIENTS / client / "bin" / program), *flags]
    env = os.environ | {
        "OPENAI_BASE_URL": f"{house.url}/v1",
        "OPENAI_API_KEY": "unused",
        "FOT_BASE_URL": f"{house.url}/v1",
        "FOT_API_KEY": "unused",
        "PROBLEM": PROBLEM,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "HF_HUB_OFFLINE": "1",
        "HOME": str(folder),
    }
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def votes(house):
    """Of all runs so far, how many rollouts each had."""
    return [len(view.lanes) for view in house.desk.board.runs.values()]


@pytest.mark.parametrize(("client", "script"), [("langchain", LANGCHAIN), ("litellm", LITELLM)])
def test_libraries(house, tmp_path, client, script):
    before = len(votes(house))
    told = run(house, tmp_path, client, "python", "-c", HEAD + script)
    assert json.loads(told.splitlines()[-1]) == [SAID, SAID]
    assert votes(house)[before:] == [4, 4]


def test_inspect(house, tmp_path):
    before = len(votes(house))
    (tmp_path / "task.py").write_text(INSPECT.format(problem=PROBLEM))
    flags = ["--model", "openai-api/fot/scripted", "--temperature", "0.6", "--log-format", "json", "--log-dir", "logs"]
    run(house, tmp_path, "inspect", "inspect", "eval", "task.py", *flags, "--display", "plain")
    log = json.loads(next((tmp_path / "logs").glob("*.json")).read_text())
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 1.0
    assert votes(house)[before:] == [4]


def test_lm_eval(house, tmp_path):
    before = len(votes(house))
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"question": PROBLEM, "answer": SAID}) + "\n")
    (tmp_path / "spiders.yaml").write_text(LM_EVAL.format(rows=rows))
    model = f"model=scripted,base_url={house.url}/v1/chat/completions,num_concurrent=1,seed=42"
    flags = ["--model", "local-chat-completions", "--model_args", model, "--apply_chat_template"]
    flags += ["--tasks", "spiders", "--include_path", ".", "--output_path", "results"]
    run(house, tmp_path, "lmeval", "lm_eval", *flags)
    told = json.loads(next((tmp_path / "results").rglob("results_*.json")).read_text())
    assert told["results"]["spiders"]["exact_match,none"] == 1.0
    assert votes(house)[before:] == [4]
