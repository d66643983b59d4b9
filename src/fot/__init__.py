"""Funnel of Thoughts: self-consistency at a fraction of its price.

The names below are the promised ones, each imported from its module when it is first used. Everything else is
importable from its module, and not promised.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fot.core.policy import Policy
    from fot.core.rollout import Rollout
    from fot.core.vote import Verdict
    from fot.engines import connect
    from fot.engines.base import Engine
    from fot.errors import FotError
    from fot.online.api import solve, solve_sync, stream
    from fot.online.result import Result
    from fot.replay.study import compare

__version__ = "0.1.0"

__all__ = [
    "Engine",
    "FotError",
    "Policy",
    "Result",
    "Rollout",
    "Verdict",
    "compare",
    "connect",
    "solve",
    "solve_sync",
    "stream",
]

_HOMES = {
    "Engine": "fot.engines.base",
    "FotError": "fot.errors",
    "Policy": "fot.core.policy",
    "Result": "fot.online.result",
    "Rollout": "fot.core.rollout",
    "Verdict": "fot.core.vote",
    "compare": "fot.replay.study",
    "connect": "fot.engines",
    "solve": "fot.online.api",
    "solve_sync": "fot.online.api",
    "stream": "fot.online.api",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fot' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
