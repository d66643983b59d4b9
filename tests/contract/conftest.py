"""No test of the contract may hang: each asynchronous one is given a long time, and then fails."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable

import pytest

PATIENCE_S = 300.0


def bounded(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def run(**arguments: object) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await test(**arguments)

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and "contract" in item.path.parts
            and inspect.iscoroutinefunction(item.obj)
        ):
            item.obj = bounded(item.obj)
