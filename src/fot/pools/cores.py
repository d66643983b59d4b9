"""How much of the machine a step may take: its cores, and a bound on the memory for what it keeps at hand."""

from __future__ import annotations

import os
import re

from fot.errors import ConfigError

__all__ = ["cores", "memory_bytes"]

_DEFAULT_BYTES = 1 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def cores() -> int:
    """Cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def memory_bytes() -> int:
    """Bytes for blocks of work and for what is kept between them: `FOT_MEMORY` (512M, 4G), 1 GiB by default.

    It bounds what grows with the work in hand, not the interpreter, its libraries, or a few numbers for each rollout.
    """
    said = os.environ.get("FOT_MEMORY", "").strip().upper()
    if not said:
        return _DEFAULT_BYTES
    read = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:I?B)?", said)
    if read is None or float(read[1]) <= 0:
        raise ConfigError(
            f"FOT_MEMORY is '{said}', which is no amount of memory", "Give a number and a unit: 512M, 4G."
        )
    return max(int(float(read[1]) * _UNITS[read[2]]), 1 << 20)
