"""Votes by answer class: an index whose answers are those that stand for them under some vote keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fot.grading.keys import Keys
from fot.pools.index import Index
from fot.pools.read import Part

__all__ = ["merged"]


def merged(index: Index, parts: Sequence[Part], keys: Keys) -> Index:
    """The index with every commitment's answer replaced by the one that stands for its class, problem by problem."""
    rows, answers = index.committing_rows, index.committing_answers.copy()
    number = {name: at for at, name in enumerate(index.answers)}
    for part in parts:
        first, last = np.searchsorted(rows, (part.rows[0], part.rows[-1] + 1))
        said = answers[first:last]
        names = [index.answers[at] for at in np.unique(said) if at >= 0]
        for name, stands in keys.classes(names).items():
            if name != stands:
                said[said == number[name]] = number[stands]
    return index.with_answers(answers)
