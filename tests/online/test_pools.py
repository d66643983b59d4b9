"""Recorded pools through the scripted engine and the controller: the simulator's answers, stops and fates.

Needs FOT_POOLS, a folder of row files; left out without it. FOT_POOL_PROBLEMS (12) problems of each file are played.
"""

import os
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from fot.core.policy import Need
from fot.engines.scripted import Pace, Scripted
from fot.methods import Context, parse
from fot.replay.recording import TextRecording
from fot.replay.simulator import simulate
from tests.online.live import lived

FOLDER = os.environ.get("FOT_POOLS")
PROBLEMS = int(os.environ.get("FOT_POOL_PROBLEMS", "12"))
FILES = sorted(Path(FOLDER).glob("*.jsonl*")) if FOLDER else []
POLICIES = (
    "sc",
    "fot",
    "fot:early_voting=off",
    "fot:checkpoints=2000/4000/6000,eager=on",
    "fot:checkpoints=1500/3000/4500/6000,keep=0.5+decided",
    "random",
    "adaptive",
)

pytestmark = pytest.mark.skipif(not FILES, reason="FOT_POOLS names no folder of row files")


def problems_of(path):
    from fot.pools.read import Pool

    pool = Pool.open(path)
    k = 9 if "aime" in path.name else 30
    parts = list(pool.select(k).parts)
    for part in Random(0).sample(parts, min(PROBLEMS, len(parts))):
        yield list(pool.rollouts(part.rows)), "boxed" if "aime" in path.name else "choice"


@pytest.mark.parametrize("way", ["stream", "pause", "barrier"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_recorded_pool_decides_live_as_in_a_replay(path, way):
    import asyncio

    for rollouts, detector in problems_of(path):
        name = rollouts[0].problem_id
        recordings = {}
        for text in POLICIES:
            spec, context = parse(text), Context(k=len(rollouts), problem=name)
            recording = recordings.setdefault(spec.kernel, TextRecording(rollouts, detector, spec.kernel))
            follow = Need.COMMITMENTS in spec.needs
            expected = simulate(spec.build(context), recording, follow_commitments=follow)
            pace = Pace(seed=crc32(f"{name}/{text}/{way}".encode()), chunk_tokens=300)
            engine = Scripted(rollouts, pace=pace)
            run = asyncio.run(
                lived(
                    spec.build(context),
                    rollouts,
                    engine=engine,
                    needs=spec.needs,
                    way=way,
                    commit=detector,
                    kernel=spec.kernel,
                    patience_s=300,
                )
            ).run
            told = (name, text, way)
            assert [charge.tokens for charge in run.charges] == list(expected.stops), told
            assert run.fates == expected.fates, told
            assert list(run.verdict.votes.items()) == list(expected.verdict.votes.items()), told
            assert run.verdict.answer == expected.verdict.answer, told
            assert sum(lane.generated for lane in run.lanes) == sum(engine.generated.values()), told
