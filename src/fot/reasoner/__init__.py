"""The reasoner in the box: a tiny model that works step by step, hesitates, errs and sometimes recovers.

It is a demonstration and a test bed, trained from scratch on the project's own arithmetic (`fot.tasks.arithmetic`).
It can do nothing else, and no claim about real models rests on it. See the model card in the documentation.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fot.errors import EngineError, PoolCorrupt

__all__ = [
    "CHECKPOINTS",
    "CONTEXT_TOKENS",
    "MODEL_NAME",
    "SAMPLING",
    "Sampling",
    "manifest",
    "model_path",
    "prompt",
    "sample_pool_path",
    "verify",
]

MODEL_NAME = "fot-reasoner"
CONTEXT_TOKENS = 1024
CHECKPOINTS = (180, 260, 340)
"""Checkpoints in tokens for this model, chosen on the sample pool: the first just before its calm rollouts end, the
last where most that are right have answered. The paper's, in proportion to its lengths, would be 310, 520 and 730."""

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the model is meant to be sampled; every figure of the model card was measured so."""

    temperature: float = 0.8
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    max_tokens: int = 920


SAMPLING = Sampling()


def model_path() -> Path:
    """The weights, in the form that llama.cpp loads."""
    return _HERE / "reasoner.gguf"


def sample_pool_path() -> Path:
    """Recorded rollouts of the model on unseen problems, one JSON row each, gzipped."""
    return _HERE / "sample.jsonl.gz"


def manifest() -> dict[str, Any]:
    """Checksums, and the recipe that made the weights."""
    content: dict[str, Any] = json.loads((_HERE / "manifest.json").read_text(encoding="utf-8"))
    return content


def prompt(question: str) -> str:
    """What the model continues, for engines without chat templates; its begin token is the tokenizer's to add."""
    return f"<|user|>{question}<|assistant|><think>\n"


def verify() -> None:
    """Raise `EngineError` when the weights, or `PoolCorrupt` when the sample pool, are not those of the manifest."""
    expected = manifest()["sha256"]
    if _sha256(model_path()) != expected[model_path().name]:
        raise EngineError("The weights of the reasoner are damaged.", hint="Install funnel-of-thoughts again.")
    if _sha256(sample_pool_path()) != expected[sample_pool_path().name]:
        raise PoolCorrupt("The sample pool of the reasoner is damaged.", hint="Install funnel-of-thoughts again.")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
