"""Do the same weights answer alike in llama.cpp, transformers and vLLM? Greedy token ids, engine by engine.

Run `greedy` once for each engine, in an environment that has it, then `compare` on the files.
"""

from __future__ import annotations

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import Any

from fot.tasks.arithmetic import DIFFICULTIES, draw_problems

Ids = list[list[int]]


def questions(problems: int, seed: int) -> list[str]:
    """Unseen questions of the middle difficulty."""
    return [p.text for p in islice(draw_problems("test", DIFFICULTIES["middle"], seed=seed), problems)]


def greedy_llamacpp(model: str, asked: list[str], tokens: int) -> Ids:
    """Through the embedded engine's own chat route, with the template of the GGUF."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 1024
    params.n_parallel = 1
    params.verbosity = 1
    server = xllamacpp.Server(params)
    replies = []
    for question in asked:
        reply = server.handle_chat_completions(
            {
                "messages": [{"role": "user", "content": question}],
                "max_tokens": tokens,
                "temperature": 0,
                "logprobs": True,
            }
        )
        replies.append([item["id"] for item in reply["choices"][0]["logprobs"]["content"]])
    return replies


def greedy_transformers(model: str, asked: list[str], tokens: int) -> Ids:
    """Through `generate`, one question at a time, in float32."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    replies = []
    for question in asked:
        messages = [{"role": "user", "content": question}]
        inputs = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        out = network.generate(**inputs, max_new_tokens=tokens, do_sample=False)
        replies.append(out[0, inputs["input_ids"].shape[1] :].tolist())
    return replies


def greedy_vllm(model: str, asked: list[str], tokens: int) -> Ids:
    """Through vLLM's own engine and chat template, in float32."""
    from vllm import LLM, SamplingParams

    engine = LLM(model, dtype="float32", max_model_len=1024, max_num_seqs=8, enforce_eager=True)
    conversations: list[Any] = [[{"role": "user", "content": question}] for question in asked]
    outputs = engine.chat(conversations, SamplingParams(temperature=0, max_tokens=tokens))
    return [list(output.outputs[0].token_ids) for output in outputs]


ENGINES = {"llamacpp": greedy_llamacpp, "transformers": greedy_transformers, "vllm": greedy_vllm}


def compare(files: list[Path]) -> dict[str, object]:
    """For each file after the first: on how many questions its ids are the same, and where others part."""
    first, *others = [json.loads(path.read_text()) for path in files]
    return {
        f"{first['engine']} = {other['engine']}": {
            "same": sum(a == b for a, b in zip(first["ids"], other["ids"], strict=True)),
            "of": len(first["ids"]),
            "parted at": [
                next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
                for a, b in zip(first["ids"], other["ids"], strict=True)
                if a != b
            ],
        }
        for other in others
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    greedy = commands.add_parser("greedy")
    greedy.add_argument("engine", choices=sorted(ENGINES))
    greedy.add_argument("model", help="a GGUF file for llamacpp, a Hugging Face folder for the others")
    greedy.add_argument("out", type=Path)
    greedy.add_argument("--problems", type=int, default=20)
    greedy.add_argument("--tokens", type=int, default=64)
    greedy.add_argument("--seed", type=int, default=11)
    comparison = commands.add_parser("compare")
    comparison.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "compare":
        print(json.dumps(compare(options.files), indent=1))
    else:
        ids = ENGINES[options.engine](options.model, questions(options.problems, options.seed), options.tokens)
        options.out.write_text(json.dumps({"engine": options.engine, "ids": ids}) + "\n")
