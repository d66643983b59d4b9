"""Random pools for property tests: short texts full of markers, boxes and cuts in awkward places."""

import json

from hypothesis import strategies as st

from fot.core.rollout import Rollout
from fot.pools.importing import import_rows
from fot.pools.read import Pool

PIECES = [
    "Wait, ", "Wait", "perhaps ", "no,", "But wait", "I was wrong", "so ", "x = 3 ", "\\boxed{", "}", "1", "2",
    "\\boxed{1}", "\\boxed{2}",
    "\\boxed{3}", "\\boxed{}", "\\boxed{\\frac{1}{2}}", "{", "é", "\n", "long stretch of plain words ",
]  # fmt: skip


@st.composite
def rollout(draw):
    text = "".join(draw(st.lists(st.sampled_from(PIECES), max_size=14)))
    row = {"text": text, "n_tokens": draw(st.integers(1, 24))}
    if draw(st.booleans()):
        row["n_tokens"] = draw(st.integers(0 if not text else 1, 20))
        inner = [draw(st.integers(0, len(text))) for _ in range(max(row["n_tokens"] - 1, 0))]
        row["token_ends"] = [*sorted(inner), len(text)][: row["n_tokens"]]
    return row


problems = st.lists(rollout(), min_size=1, max_size=9)
checkpoints = st.lists(st.integers(1, 26), max_size=4, unique=True).map(sorted)
keeps = st.sampled_from([0.25, 0.33, 0.5, 0.67, 0.75, 0.85, 1.0])


def as_rollouts(rows):
    return [Rollout(model="m", benchmark="b", problem_id="p", rollout_id=at, **row) for at, row in enumerate(rows)]


def as_pool(folder, problems, **fields):
    """The rows of each problem, all with these fields, as a pool in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = folder / "rows.jsonl"
    with rows.open("w", encoding="utf-8") as out:
        for number, rollouts in enumerate(problems):
            for at, row in enumerate(rollouts):
                keys = {"model": "m", "benchmark": "b", "problem_id": f"p{number}", "rollout_id": at, "gold": "1"}
                out.write(json.dumps(keys | {"finish_reason": "stop"} | row | fields) + "\n")
    return Pool(import_rows([rows], folder / "pool").pool)
