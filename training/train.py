"""Train the reasoner on packed rows: Muon for the matrices, AdamW for the rest; seeded, resumable."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from export import load
from model import Llama, Shape
from tokenizer import BEGIN, PAD, THINK, build_tokenizer
from torch import Tensor
from torch.nn import functional

IGNORED = -100


class Muon(torch.optim.Optimizer):
    """Momentum whose step is made nearly orthogonal by Newton-Schulz iterations; for matrices only."""

    def __init__(self, parameters: list[Tensor], lr: float, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                velocity = state.setdefault("velocity", torch.zeros_like(parameter))
                velocity.lerp_(parameter.grad, 1 - group["momentum"])
                update = _orthogonal(parameter.grad.lerp(velocity, group["momentum"]))
                scale = max(1.0, parameter.shape[0] / parameter.shape[1]) ** 0.5
                parameter.add_(update, alpha=-group["lr"] * scale)


def _orthogonal(matrix: Tensor) -> Tensor:
    wide = matrix.mT if matrix.shape[0] > matrix.shape[1] else matrix
    x = wide / (wide.norm() + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.mT if matrix.shape[0] > matrix.shape[1] else x


def batches(rows: np.ndarray, size: int, seed: int, skip: int) -> Iterator[Tensor]:
    """Endless batches in a seeded order, one epoch after another, `skip` of them left out."""
    epoch = 0
    while True:
        order = np.random.default_rng((seed, epoch)).permutation(len(rows))
        for first in range(0, len(order) - size + 1, size):
            if skip:
                skip -= 1
                continue
            yield torch.from_numpy(rows[order[first : first + size]].astype(np.int64))
        epoch += 1


class Masks:
    """Which tokens may see which, and which are learnt, from the ids of packed rows."""

    def __init__(self, context: int) -> None:
        tokenizer = build_tokenizer()
        self.begin, self.pad, self.think = (tokenizer.token_to_id(token) for token in (BEGIN, PAD, THINK))
        self.causal = torch.ones(context, context, dtype=torch.bool).tril()

    def attention(self, ids: Tensor) -> Tensor:
        """A token sees earlier tokens of its own document."""
        document = (ids == self.begin).cumsum(1)
        same = document[:, :, None] == document[:, None, :]
        return (same & self.causal)[:, None]

    def targets(self, row: Tensor) -> Tensor:
        """The next tokens; what the question says and the padding are not learnt."""
        opened, thinking = (row == self.begin).cumsum(1), (row == self.think).cumsum(1)
        in_question = opened > thinking
        following = row[:, 1:]
        return following.masked_fill(in_question[:, 1:] | in_question[:, :-1] | (following == self.pad), IGNORED)


def rate_at(step: int, steps: int, warm: int, decay_from: float, floor: float) -> float:
    """Warm up, hold, then fall linearly to `floor`."""
    if step < warm:
        return (step + 1) / warm
    start = decay_from * steps
    return 1.0 if step < start else max(floor, 1 - (1 - floor) * (step - start) / (steps - start))


def weights_of(source: Path) -> dict[str, Tensor]:
    """The weights of a checkpoint, or of an exported GGUF."""
    if source.suffix == ".gguf":
        return load(source)
    state: dict[str, Tensor] = torch.load(source)["model"]
    return state


def train(options: argparse.Namespace) -> None:
    """Train to the last step, saving as it goes; a checkpoint that exists already is continued."""
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    shape = Shape()
    model, masks = Llama(shape), Masks(shape.context)
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "layers" in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "layers" not in name]
    muon = Muon(matrices, options.lr)
    adam = torch.optim.AdamW(others, lr=options.lr * 0.15, betas=(0.9, 0.95), weight_decay=0.0)
    first = 0
    if options.start_from:
        model.load_state_dict(weights_of(options.start_from))
    if options.out.exists():
        saved = torch.load(options.out)
        model.load_state_dict(saved["model"])
        muon.load_state_dict(saved["muon"])
        adam.load_state_dict(saved["adam"])
        first = saved["step"]
    forward = torch.compile(model) if options.compile else model
    rows = np.load(options.rows, mmap_mode="r")
    began, learnt, running = time.monotonic(), 0, 0.0
    for step, row in enumerate(batches(rows, options.batch, options.seed, first), start=first):
        if step >= options.steps:
            break
        rate = rate_at(step, options.steps, options.warm, options.decay_from, options.floor)
        for optimizer, base in ((muon, options.lr), (adam, options.lr * 0.15)):
            for group in optimizer.param_groups:
                group["lr"] = base * rate
        ids = row[:, :-1]
        with torch.autocast("cpu", torch.bfloat16):
            logits = forward(ids, masks.attention(ids))
        loss = functional.cross_entropy(
            logits.float().flatten(0, 1), masks.targets(row).flatten(), ignore_index=IGNORED
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer in (muon, adam):
            optimizer.step()
            optimizer.zero_grad()
        learnt += ids.numel()
        running = loss.item() if not running else 0.95 * running + 0.05 * loss.item()
        if step % 20 == 19:
            speed = learnt / (time.monotonic() - began)
            print(f"step {step + 1} loss {running:.4f} rate {rate:.3f} {speed:.0f} tokens/s", flush=True)
        if (step + 1) % options.save_every == 0 or step + 1 == options.steps:
            save(options.out, model, muon, adam, step + 1)


def save(out: Path, model: Llama, muon: Muon, adam: torch.optim.AdamW, step: int) -> None:
    """Replace the checkpoint in one move, so that a kill never leaves half of one."""
    half = out.with_suffix(".part")
    state = {"model": model.state_dict(), "muon": muon.state_dict(), "adam": adam.state_dict(), "step": step}
    torch.save(state, half)
    half.replace(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="checkpoint; resumed from when it exists")
    parser.add_argument("--start-from", type=Path, help="checkpoint or .gguf whose weights a new run starts from")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--warm", type=int, default=50)
    parser.add_argument("--decay-from", type=float, default=0.6, help="share of the steps after which the rate falls")
    parser.add_argument("--floor", type=float, default=0.05)
    parser.add_argument("--save-every", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    train(parser.parse_args())
