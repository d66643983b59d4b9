"""What a method charges on recorded rollouts, summed up by model: what a cost model goes on with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from fot.core.cost import Work
from fot.methods import Spec
from fot.replay.sheet import Sheet

__all__ = ["work_by_model"]


def work_by_model(sheets: Sequence[Sheet], spec: Spec, seed: int = 0) -> dict[str, Work]:
    """One draw of a method on all problems. Where no row tells its prompt's length, prompts take nothing."""
    found: dict[str, Work] = {}
    for sheet in sheets:
        batch = sheet.run(spec, seed)
        for at, (bill, prompt) in enumerate(zip(batch.bills, _prompt_tokens(sheet), strict=True)):
            launched = sum(charge.tokens > 0 for charge in batch.outcome(at).charges)
            own = Work(1, launched, bill.tokens, bill.attention, launched * prompt)
            model = sheet.parts[at].problem.model
            known = found.get(model, Work(0, 0, 0, 0))
            found[model] = Work(*(a + b for a, b in zip(known, own, strict=True)))
    return found


def _prompt_tokens(sheet: Sheet) -> Iterator[int]:
    """Of each problem, as far as rows tell."""
    rows = np.concatenate([part.rows for part in sheet.parts])
    told = iter(sheet.pool.column("prompt_tokens", rows).to_pylist())
    for part in sheet.parts:
        yield max((tokens for tokens in islice(told, len(part.rows)) if tokens is not None), default=0)
