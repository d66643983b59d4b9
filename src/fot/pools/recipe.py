"""What something was made of: the code and the settings, as a digest."""

from __future__ import annotations

import hashlib
import inspect
from types import ModuleType

__all__ = ["code_digest", "recipe_of"]


def code_digest(*modules: ModuleType) -> str:
    """Identifies the source of modules: arrays that they made are made anew when it changes."""
    sources = "\0".join(inspect.getsource(module) for module in modules)
    return hashlib.sha256(sources.encode()).hexdigest()[:12]


def recipe_of(code: str, *depends: object) -> str:
    """Identifies what comes of this code and these settings, each known by its `repr`."""
    return hashlib.sha256(f"{code} {' '.join(map(repr, depends))}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
