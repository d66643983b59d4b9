"""Rebuild the reasoner from nothing: documents, training phases, export, sample pool, manifest. See RECIPE."""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from chains import digest
from model import Llama, Shape
from prepare import NOISES, first_rows
from tokenizer import build_tokenizer

from fot import reasoner

HERE = Path(__file__).parent
SAMPLE_PROBLEMS = 64
REPORT_PROBLEMS, REPORT_SEED = 208, 31
"""Problems of the model card; their seed was used for nothing else, so none of them was looked at before."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One stage of training: which documents, how many steps, how fast."""

    name: str
    noise: str
    tokens: int
    document_seed: int
    steps: int
    batch: int
    lr: float
    warm: int
    decay_from: float
    floor: float
    seed: int


RECIPE = (
    Phase("phase1", "calm", 25_000_000, 1, 1400, 4, 0.02, 50, 1.0, 1.0, 0),
    Phase("phase2", "realistic", 26_000_000, 2, 1600, 6, 0.01, 30, 0.25, 0.02, 2),
    Phase("phase3", "legible", 12_000_000, 3, 850, 6, 0.008, 20, 0.3, 0.02, 3),
    Phase("phase4", "contrasting", 5_000_000, 4, 480, 6, 0.006, 15, 0.25, 0.02, 4),
)
"""Each phase starts from the weights of the one before."""


def run(script: str, *arguments: object) -> None:
    """Run one of the scripts beside this one, and stop when it fails."""
    subprocess.run([sys.executable, str(HERE / script), *map(str, arguments)], check=True)


def train(work: Path, most_steps: int | None) -> Path:
    """Train all phases in `work`; what is there already is kept or continued. The last checkpoint."""
    before: Path | None = None
    for phase in RECIPE:
        if most_steps is not None:
            phase = replace(phase, tokens=1, steps=min(phase.steps, most_steps))  # noqa: PLW2901 - the same, cut short
        rows, checkpoint = work / f"{phase.name}.npy", work / f"{phase.name}.pt"
        if not rows.exists():
            wanted = ("--noise", phase.noise, "--tokens", phase.tokens, "--seed", phase.document_seed)
            run("prepare.py", *wanted, "--out", rows)
        settings = ("steps", "batch", "lr", "warm", "decay_from", "floor", "seed")
        flags = [part for name in settings for part in (f"--{name.replace('_', '-')}", getattr(phase, name))]
        start = ("--start-from", before) if before else ()
        compiled = () if most_steps is not None else ("--compile",)
        run("train.py", "--rows", rows, "--out", checkpoint, *compiled, *flags, *start)
        before = checkpoint
    assert before is not None
    return before


def rebuild(work: Path, *, is_shipped: bool, most_steps: int | None) -> None:
    """Documents, training, export, sample pool, profile; the manifest is the caller's."""
    work.mkdir(parents=True, exist_ok=True)
    last = train(work, most_steps)
    folder = reasoner.model_path().parent if is_shipped else work
    weights, sample = folder / reasoner.model_path().name, folder / reasoner.sample_pool_path().name
    sizes = (SAMPLE_PROBLEMS, REPORT_PROBLEMS) if most_steps is None else (2, 2)
    run("export.py", last, "--gguf", weights, "--hugging-face", work / "hugging-face")
    run("record.py", weights, sample, "--problems", sizes[0])
    run("record.py", weights, work / "report.jsonl.gz", "--problems", sizes[1], "--seed", REPORT_SEED)
    run("evaluate.py", work / "report.jsonl.gz")


def manifest() -> dict[str, object]:
    """What ties the shipped files to the recipe: their checksums, the phases, and checksums of what is learnt from."""
    tokenizer = build_tokenizer()
    documents = {
        phase.noise: _sha256(np.array(first_rows(phase.noise, phase.document_seed), dtype=np.uint16).tobytes())
        for phase in RECIPE
    }
    shipped = (reasoner.model_path(), reasoner.sample_pool_path())
    return {
        "name": reasoner.MODEL_NAME,
        "rebuild": "python training/rebuild.py --work build/reasoner --ship",
        "sha256": {path.name: _sha256(path.read_bytes()) for path in shipped},
        "recipe": {
            "phases": [asdict(phase) for phase in RECIPE],
            "documents": documents,
            "chains": {phase.noise: digest(NOISES[phase.noise]) for phase in RECIPE},
            "tokenizer": _sha256(tokenizer.to_str().encode()),
            "shape": asdict(Shape()),
            "parameters": sum(parameter.numel() for parameter in Llama(Shape()).parameters()),
            "torch": torch.__version__,
        },
    }


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for documents and checkpoints; resumed")
    parser.add_argument("--ship", action="store_true", help="replace the weights, pool and manifest of the package")
    parser.add_argument("--manifest-only", action="store_true", help="only write the manifest of the shipped files")
    parser.add_argument("--rehearse", type=int, metavar="STEPS", help="so few steps a phase: try the machinery out")
    options = parser.parse_args()
    if options.rehearse and options.ship:
        parser.error("a rehearsal is nothing to ship")
    if not options.manifest_only:
        rebuild(options.work, is_shipped=options.ship, most_steps=options.rehearse)
    if options.ship or options.manifest_only:
        target = reasoner.model_path().parent / "manifest.json"
        target.write_text(json.dumps(manifest(), indent=2) + "\n")
