"""``-`` in place of a file: standard input."""

import re
from typing import Any

from cyclopts import Parameter

__all__ = ["OR_STANDARD_INPUT"]


_OPTION = re.compile(r"--?[A-Za-z][\w-]*(=.*)?", re.DOTALL)


def _refuse_options(_kind: Any, value: object) -> None:
    if _OPTION.fullmatch(str(value)):
        raise ValueError("There is no such option.")


OR_STANDARD_INPUT = Parameter(allow_leading_hyphen=True, validator=_refuse_options)
"""For a positional parameter that takes ``-``; a mistyped option is still one."""
