r"""The tests that a program is held to, and when its output is right: the official rules of LiveCodeBench.

A reference for the `code` grader is JSON text, in one of three forms:

    {"inputs": ["1 2\n"], "outputs": ["3\n"], "fn_name": null}
    {"tests": [{"input": "[1]\n2", "output": "3"}], "fn_name": "add"}
    {"public_test_cases": ..., "private_test_cases": ..., "metadata": ...}     as LiveCodeBench distributes them

With a function's name the tests are calls: an argument a line, in JSON. Private tests of LiveCodeBench are a pickle out
of a download; they are read by an unpickler that makes nothing but strings.
"""

from __future__ import annotations

import base64
import io
import json
import pickle
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

__all__ = ["ProgramTests", "decode_private", "is_output_right", "is_value_right", "read_tests"]

_LARGEST = 512 * 2**20


@dataclass(frozen=True, slots=True)
class ProgramTests:
    """Inputs and expected outputs, one of each a test. `function`: what is called; None: programs read stdin."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    function: str | None


def read_tests(gold: str) -> ProgramTests:
    """The tests of a reference. Raises `ValueError` saying what cannot be read."""
    try:
        data = json.loads(gold)
    except ValueError:
        raise ValueError("the tests are not JSON") from None
    if not isinstance(data, dict):
        raise ValueError("the tests are not a JSON object")
    if "inputs" in data:
        return _made(data["inputs"], data.get("outputs"), data.get("fn_name"))
    tests = data["tests"] if "tests" in data else [*_cases(data.get("public_test_cases")), *_private(data)]
    if not isinstance(tests, list) or not all(isinstance(test, dict) for test in tests):
        raise ValueError("the tests are not a list of objects")
    function = data.get("fn_name") or _metadata(data).get("func_name")
    return _made([test.get("input") for test in tests], [test.get("output") for test in tests], function)


def _made(inputs: Any, outputs: Any, function: Any) -> ProgramTests:
    for name, part in (("inputs", inputs), ("outputs", outputs)):
        if not isinstance(part, list) or not all(isinstance(entry, str) for entry in part):
            raise ValueError(f"the tests' {name} are not a list of strings")
    if not inputs or len(inputs) != len(outputs):
        raise ValueError(f"there are {len(inputs)} inputs and {len(outputs)} outputs")
    if function is not None and not isinstance(function, str):
        raise ValueError("the function's name is not a string")
    return ProgramTests(tuple(inputs), tuple(outputs), function or None)


def _cases(cases: Any) -> list[Any]:
    read = json.loads(cases) if isinstance(cases, str) and cases.strip() else cases or []
    if not isinstance(read, list):
        raise ValueError("the test cases are not a list")
    return read


def _private(data: dict[str, Any]) -> list[Any]:
    cases = data.get("private_test_cases")
    if not isinstance(cases, str) or not cases.strip():
        return _cases(cases)
    try:
        return _cases(cases)
    except ValueError:
        return _cases(decode_private(cases))


def _metadata(data: dict[str, Any]) -> dict[str, Any]:
    metadata = data.get("metadata")
    if isinstance(metadata, str) and metadata.strip():
        metadata = json.loads(metadata)
    return metadata if isinstance(metadata, dict) else {}


class _StringsOnly(pickle.Unpickler):
    """Reads plain values; a pickle that names anything that could be called is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"the private tests ask for {module}.{name}")


def decode_private(encoded: str) -> str:
    """The JSON text in LiveCodeBench's base64 of a zlib of a pickle. Raises `ValueError` for anything else."""
    try:
        decompressor = zlib.decompressobj()
        packed = decompressor.decompress(base64.b64decode(encoded, validate=True), _LARGEST)
        if decompressor.unconsumed_tail:
            raise ValueError(f"they are larger than {_LARGEST // 2**20} MiB")
        text = _StringsOnly(io.BytesIO(packed)).load()
    except Exception as error:  # a damaged or hostile pickle may fail in any way
        raise ValueError(f"the private tests cannot be decoded: {error}") from None
    if not isinstance(text, str):
        raise ValueError("the private tests are not text")
    return text


def is_output_right(printed: str, expected: str) -> bool:
    """As many lines, and each the same but for blanks around it, or the same numbers.

    Numbers are compared as decimals, without tolerance: `1.0` is `1.00`, and `0.3` is not `0.30000000000000004`.
    """
    ours, theirs = _lines(printed), _lines(expected)
    return len(ours) == len(theirs) and all(
        line == other or _are_same_numbers(line, other) for line, other in zip(ours, theirs, strict=True)
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _are_same_numbers(line: str, other: str) -> bool:
    try:
        return [Decimal(word) for word in line.split()] == [Decimal(word) for word in other.split()]
    except InvalidOperation:
        return False


def is_value_right(returned: Any, expected: str) -> bool:
    """Python's equality with the expected JSON; a tuple counts as a list, but not inside of one.

    `returned` is encoded as `fot.grading.program_runner` does. Raises `ValueError` when `expected` is not JSON.
    """
    value = _decode(returned)
    return bool((list(value) if isinstance(value, tuple) else value) == json.loads(expected))


def _decode(encoded: dict[str, Any]) -> Any:
    ((tag, held),) = encoded.items()
    return _FORMS[tag](held) if tag in _FORMS else object()  # any other object equals nothing


_FORMS: dict[str, Callable[[Any], Any]] = {
    "v": lambda value: value,
    "i": int,
    "f": float.fromhex,
    "l": lambda parts: [_decode(part) for part in parts],
    "t": lambda parts: tuple(_decode(part) for part in parts),
    "d": lambda parts: {_decode(key): _decode(part) for key, part in parts},
}
