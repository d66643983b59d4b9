"""vLLM in this process under the engines' contract. Needs vLLM, and in FOT_VLLM_MODEL a folder or a hub id."""

import asyncio
import inspect
import os
import sys

import pytest

from fot.engines.asyncllm import AsyncLlm
from tests.contract import test_engines
from tests.contract.subjects import IGNORE_EOS, Subject

MODEL = os.environ.get("FOT_VLLM_MODEL")
CONTRACT = {name: test for name, test in vars(test_engines).items() if name.startswith("test_")}

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(MODEL is None, reason="FOT_VLLM_MODEL names no model")]


async def test_the_contract():
    """All of it on one engine, which takes long to start; what closes it comes last."""
    pytest.importorskip("vllm")
    engine = AsyncLlm(MODEL, parallel=32, settings={"enforce_eager": True, "max_num_batched_tokens": 8192})
    subject = Subject(engine, ask={"sampling": IGNORE_EOS})
    told = {}
    for name, test in sorted(CONTRACT.items(), key=lambda item: "closing_the_engine" in item[0]):
        assert inspect.iscoroutinefunction(test)
        try:
            async with asyncio.timeout(300):
                await test(subject)
            told[name] = "passed"
        except pytest.skip.Exception as skipped:
            told[name] = f"skipped: {skipped}"
        except Exception as error:
            told[name] = f"failed: {error!r}"
    await engine.close()
    sys.stdout.write("\n".join(f"{name}: {outcome}" for name, outcome in told.items()) + "\n")
    assert not [name for name, outcome in told.items() if outcome.startswith("failed")], told
