"""Write training documents, encoded and packed into rows of a context each: prompt, chain, end."""

from __future__ import annotations

import argparse
import bisect
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from chains import CALM, CONTRASTING, LEGIBLE, REALISTIC, Noise, write_chain
from tokenizer import ASSISTANT, BEGIN, END, PAD, SUFFIX, USER, build_tokenizer, prompt_of

from fot.tasks.arithmetic import Problem, draw_problems

CONTEXT = 1024
NOISES = {"calm": CALM, "realistic": REALISTIC, "legible": LEGIBLE, "contrasting": CONTRASTING}
_SHARES = {1: 0.05, 2: 0.2, 3: 0.15, 4: 0.3, 5: 0.15, 6: 0.15}
_SUFFIX_SHARE = 0.15
_BATCH = 2000


def documents(noise: Noise, seed: int) -> Iterator[str]:
    """Endless texts: one problem and one chain each."""
    rng = random.Random(seed)
    sources: dict[int, Iterator[Problem]] = {
        operations: draw_problems("train", operations, seed=seed) for operations in _SHARES if operations > 1
    }
    while True:
        operations = rng.choices(list(_SHARES), weights=list(_SHARES.values()))[0]
        source = sources.get(operations) or draw_problems("train", 1, seed=rng.getrandbits(40))
        problem = next(source)
        question = problem.text + (SUFFIX if rng.random() < _SUFFIX_SHARE else "")
        yield BEGIN + prompt_of(question) + write_chain(problem, noise, rng) + END


def pack(encoded: list[list[int]], pad: int) -> list[list[int]]:
    """Rows of at most a context, each filled with the longest document that still fits."""
    waiting = sorted((document[: CONTEXT + 1] for document in encoded), key=len)
    lengths = [len(document) for document in waiting]
    rows = []
    while waiting:
        row: list[int] = []
        while (fits := bisect.bisect_right(lengths, CONTEXT + 1 - len(row))) > 0:
            lengths.pop(fits - 1)
            row += waiting.pop(fits - 1)
        rows.append(row + [pad] * (CONTEXT + 1 - len(row)))
    return rows


def batches(noise: str, seed: int) -> Iterator[tuple[list[str], list[list[int]]]]:
    """Endless batches of documents, and the rows that each batch makes."""
    tokenizer = build_tokenizer()
    source = documents(NOISES[noise], seed)
    while True:
        texts = [next(source) for _ in range(_BATCH)]
        encoded = [item.ids for item in tokenizer.encode_batch(texts, add_special_tokens=False)]
        yield texts, pack(encoded, tokenizer.token_to_id(PAD))


def first_rows(noise: str, seed: int) -> list[list[int]]:
    """The rows of the first documents, before any shuffling: enough to tell one recipe from another."""
    return next(batches(noise, seed))[1]


def enough(noise: str, tokens: int, seed: int) -> Iterator[tuple[list[str], list[list[int]]]]:
    """The batches of one phase: as many as `tokens` in rows ask for."""
    rows = 0
    for texts, more in batches(noise, seed):
        yield texts, more
        rows += len(more)
        if rows * CONTEXT >= tokens:
            return


def question_of(document: str) -> str:
    """The question that a document answers, as the problem's own text puts it."""
    return document.removeprefix(BEGIN + USER).partition(ASSISTANT)[0].removesuffix(SUFFIX)


def prepare(noise: str, tokens: int, seed: int, out: Path) -> None:
    """Write an array of rows (`tokens` in all, about) as uint16, shuffled."""
    pad = build_tokenizer().token_to_id(PAD)
    rows = [row for _, more in enough(noise, tokens, seed) for row in more]
    array = np.array(rows, dtype=np.uint16)
    np.random.default_rng(seed).shuffle(array)
    np.save(out, array)
    print(f"{out}: {len(array)} rows, {(array != pad).mean():.3f} filled")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", choices=sorted(NOISES), required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    prepare(**vars(parser.parse_args()))
