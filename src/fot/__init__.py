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
    from fot.errors import FotError

__version__ = "0.1.0"

__all__ = ["FotError", "Policy", "Rollout", "Verdict"]

_HOMES = {
    "FotError": "fot.errors",
    "Policy": "fot.core.policy",
    "Rollout": "fot.core.rollout",
    "Verdict": "fot.core.vote",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fot' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
