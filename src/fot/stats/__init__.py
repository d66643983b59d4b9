"""How sure a figure is: arrays in, plain results out.

Needs the extra `stats` (or `pools`, where no distribution is asked for); importing any of it without raises
`fot.errors.MissingExtra`.
"""

from importlib.util import find_spec

from fot.errors import MissingExtra

if find_spec("numpy") is None:
    raise MissingExtra("stats")
