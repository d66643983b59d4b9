"""Recorded rollouts: one pool format, its import, its reader, and the index that spares reading text twice.

    fot.pools.importing   import_rows(files, out): row files -> pool, bad rows set aside with their reason
    fot.pools.read        Pool.open(path), Problem, Selection: who answered what, lazily with which text
    fot.pools.index       index_of(pool, kernel, detector): marker ends, commitments and token ends as arrays
    fot.pools.summary     describe(pool): what `fot pool info` tells

Needs the extra `pools`; importing any of it without raises `fot.errors.MissingExtra`.
"""

from importlib.util import find_spec

from fot.errors import MissingExtra

if any(find_spec(name) is None for name in ("numpy", "polars", "pyarrow")):
    raise MissingExtra("pools")
