"""One row: what makes it acceptable, and why it is not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from fot.core.rollout import Cut, ProblemKey, cut_kind
from fot.pools.schema import REQUIRED

__all__ = ["FIELDS", "REQUIRED", "BadRow", "Row", "parse_line", "parse_record", "row_of"]

_Natural = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class BadRow(Exception):
    """A row that cannot go into a pool; the message is the reason."""


class _Fields(msgspec.Struct):
    """The contract's fields, with their types."""

    model: str
    benchmark: str
    problem_id: str
    rollout_id: _Natural
    text: str
    problem: str | None = None
    gold: str | None = None
    n_tokens: _Natural | None = None
    finish_reason: Literal["stop", "length", "abort"] | None = None
    token_ends: list[_Natural] | None = None
    seed: _Int64 | None = None
    prompt_tokens: _Natural | None = None
    source: str | None = None
    unbiased: bool | None = None


FIELDS = frozenset(_Fields.__struct_fields__)


@dataclass(frozen=True, slots=True)
class Row:
    """An acceptable row: typed fields, token ends as an array, everything else as one JSON object."""

    fields: _Fields
    token_ends: NDArray[np.int32] | None
    n_tokens: int | None
    extra: str | None

    @property
    def key(self) -> ProblemKey:
        """The problem that it belongs to."""
        return (self.fields.model, self.fields.benchmark, self.fields.problem_id)

    @property
    def cut(self) -> Cut:
        """How prefixes of it are found."""
        return cut_kind(self.n_tokens is not None, self.token_ends is not None)


_typed = msgspec.json.Decoder(_Fields)
_raw = msgspec.json.Decoder(dict[str, msgspec.Raw])
_AT = re.compile(r" - at `\$\.?(.*?)(?:\[\.\.\.\])?`$")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_line(line: bytes) -> Row:
    """The row in one line of JSON; `BadRow` says what is wrong with it."""
    try:
        fields = _typed.decode(line)
        others = {name: value for name, value in _raw.decode(line).items() if name not in FIELDS}
        extra = _raw_object(others) if others else None
    except msgspec.ValidationError as error:
        raise BadRow(_readable(error)) from None
    except msgspec.DecodeError as error:
        if _SURROGATE.search(line):
            raise BadRow("a \\u escape is half of a character (a lone surrogate)") from None
        raise BadRow(f"not JSON: {error}") from None
    except UnicodeDecodeError as error:
        raise BadRow(f"not UTF-8: {error.reason} at byte {error.start} of a string") from None
    except RecursionError:
        raise BadRow("nested too deeply") from None
    return _checked(fields, extra)


def parse_record(record: Mapping[str, Any]) -> Row:
    """The row in one record of a Parquet file; `BadRow` says what is wrong with it."""
    try:
        fields = msgspec.convert(record, _Fields)
        others = {name: value for name, value in record.items() if name not in FIELDS and value is not None}
        extra = msgspec.json.encode(others).decode() if others else None
    except msgspec.ValidationError as error:
        raise BadRow(_readable(error)) from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadRow(f"an extra field cannot be kept as JSON: {error}") from None
    return _checked(fields, extra)


def row_of(*, token_ends: NDArray[np.int32] | None = None, n_tokens: int | None = None, **fields: Any) -> Row:
    """A row of fields that are known to be acceptable."""
    return Row(_Fields(**fields), token_ends, n_tokens, None)


def _raw_object(others: Mapping[str, msgspec.Raw]) -> str:
    """The extra fields as the line has them, once they have been seen to be readable."""
    for value in others.values():
        msgspec.json.decode(value)
    return msgspec.json.encode(others).decode()


def _readable(error: msgspec.ValidationError) -> str:
    return _AT.sub(lambda at: f" in field `{at.group(1)}`" if at.group(1) else "", str(error))


def _checked(fields: _Fields, extra: str | None) -> Row:
    ends, fields.token_ends = fields.token_ends, None
    if ends is None:
        return Row(fields, None, fields.n_tokens, extra)
    if fields.n_tokens is not None and fields.n_tokens != len(ends):
        raise BadRow(f"n_tokens is {fields.n_tokens}, but token_ends has {len(ends)}")
    array = np.asarray(ends, dtype=np.int32)
    if len(array) and (np.diff(array) < 0).any():
        raise BadRow("token_ends go backwards")
    if len(array) and array[-1] > len(fields.text):
        raise BadRow(f"token_ends reach {array[-1]}, beyond the {len(fields.text)} characters of the text")
    return Row(fields, array, len(array), extra)
