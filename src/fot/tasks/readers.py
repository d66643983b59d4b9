"""From a benchmark's own rows to items: one function for each form in which benchmarks are published."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from fot.errors import ConfigError
from fot.tasks.arithmetic import DIFFICULTIES, draw_problems
from fot.tasks.catalog import Benchmark

__all__ = [
    "Item",
    "Setting",
    "read_arithmetic",
    "read_gpqa",
    "read_gsm8k",
    "read_livecodebench",
    "read_math",
    "read_own",
]

Row = Mapping[str, Any]

_LETTERS = "ABCDEFGHIJ"
_STDIN = "Write a Python program that reads from standard input and prints its answer to standard output."
_STARTER = "Complete this Python code, without changing the names in it:\n\n```python\n{starter}\n```"
_FENCE = "Give the whole program in one block fenced by ``` at the end of your answer."


class Item(NamedTuple):
    """One problem, ready to be asked. `options`: the texts of its choices in the order of their letters, if any."""

    problem_id: str
    problem: str
    prompt: str
    gold: str
    options: tuple[str, ...] = ()


class Setting(NamedTuple):
    """What a load depends on besides the file. `seed`: of shuffled options and generated problems."""

    seed: int
    limit: int | None


def read_math(rows: Iterable[Row], setting: Setting, spec: Benchmark) -> Iterator[Item]:
    """Rows with `problem` (or `question`) and `answer`; AIME, AMC and MATH are published so."""
    for number, row in enumerate(rows):
        problem = _text(row, number, "problem", "question")
        gold = _number(_field(row, number, "answer"))
        yield Item(_name(row, number), problem, _asked(spec, problem), gold)


def read_gsm8k(rows: Iterable[Row], setting: Setting, spec: Benchmark) -> Iterator[Item]:
    """The reference is what follows the last `####` of the worked solution."""
    for number, row in enumerate(rows):
        problem = _text(row, number, "question")
        gold = _text(row, number, "answer").rpartition("####")[2].strip().replace(",", "")
        yield Item(_name(row, number), problem, _asked(spec, problem), gold)


def read_gpqa(rows: Iterable[Row], setting: Setting, spec: Benchmark) -> Iterator[Item]:
    """Options are shuffled by the seed and the problem's own id, so that no order depends on another problem."""
    for number, row in enumerate(rows):
        right = _text(row, number, "Correct Answer")
        options = [right, *(_text(row, number, f"Incorrect Answer {place}") for place in (1, 2, 3))]
        name = _text(row, number, "Record ID")
        order = random.Random(f"{setting.seed}/{name}").sample(range(len(options)), len(options))  # noqa: S311
        yield _choice(name, _text(row, number, "Question"), [options[place] for place in order], order.index(0), spec)


def read_livecodebench(rows: Iterable[Row], setting: Setting, spec: Benchmark) -> Iterator[Item]:
    """The reference holds the tests as they were distributed; the code grader decodes them."""
    for number, row in enumerate(rows):
        problem = _text(row, number, "question_content")
        starter = row.get("starter_code") or ""
        form = _STARTER.replace("{starter}", starter) if starter.strip() else _STDIN
        tests = {name: row.get(name) for name in ("public_test_cases", "private_test_cases", "metadata")}
        prompt = _asked(spec, problem, form=f"{form}\n\n{_FENCE}")
        yield Item(_text(row, number, "question_id"), problem, prompt, json.dumps(tests))


def read_arithmetic(rows: Iterable[Row], setting: Setting, spec: Benchmark) -> Iterator[Item]:
    """Problems of the test split, made from the seed; 100 when no limit is set."""
    operations = DIFFICULTIES[spec.name.rpartition("-")[2]]
    limit = 100 if setting.limit is None else setting.limit
    for problem in islice(draw_problems("test", operations, seed=setting.seed), limit):
        yield Item(problem.problem_id, problem.text, _asked(spec, problem.text), problem.gold)


def read_own(rows: Iterable[Row], setting: Setting, spec: Benchmark) -> Iterator[Item]:
    """A user's rows: `problem` and `gold`, and if wanted `problem_id`, `prompt` and `options`.

    With `options` the reference may be an option's letter or its text; options are not shuffled.
    """
    for number, row in enumerate(rows):
        problem = _text(row, number, "problem")
        gold = _number(_field(row, number, "gold"))
        name = _name(row, number)
        options = row.get("options")
        if options is not None:
            if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
                raise ConfigError(f"row {number + 1}: field 'options' is not a list of texts")
            right = options.index(gold) if gold in options else _LETTERS.find(gold)
            if not 0 <= right < len(options) <= len(_LETTERS):
                raise ConfigError(f"row {number + 1}: field 'gold' is neither an option nor its letter")
            item = _choice(name, problem, options, right, spec)
        else:
            item = Item(name, problem, _asked(spec, problem), gold)
        own = row.get("prompt")
        yield item._replace(prompt=own) if isinstance(own, str) else item


def _choice(name: str, problem: str, options: list[str], right: int, spec: Benchmark) -> Item:
    letters = _LETTERS[: len(options)]
    listed = "\n".join(f"{letter}) {option}" for letter, option in zip(letters, options, strict=True))
    prompt = _asked(spec, problem, options=listed, letters=", ".join(letters))
    return Item(name, problem, prompt, letters[right], tuple(options))


_PLACE = re.compile(r"\{(problem|options|letters|form)\}")


def _asked(spec: Benchmark, problem: str, **more: str) -> str:
    """The template filled in one pass; `str.format` would trip over the braces of LaTeX."""
    parts = {"problem": problem, **more}
    return _PLACE.sub(lambda place: parts.get(place.group(1), place.group()), spec.prompt)


def _name(row: Row, number: int) -> str:
    for field in ("problem_id", "unique_id", "id", "ID"):
        if row.get(field) not in (None, ""):
            return str(row[field])
    return str(number)


def _field(row: Row, number: int, *names: str) -> Any:
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise ConfigError(
        f"row {number + 1} has no field '{names[0]}'", f"it has: {', '.join(map(str, row)) or 'no field at all'}"
    )


def _text(row: Row, number: int, *names: str) -> str:
    value = _field(row, number, *names)
    if not isinstance(value, str):
        raise ConfigError(f"row {number + 1}: field '{names[0]}' is not text")
    return value.strip()


def _number(value: Any) -> str:
    """As text; 27.0, as some files have it, is 27."""
    text = str(value).strip()
    return re.sub(r"\A(-?\d+)\.0+\Z", r"\1", text) if isinstance(value, float) else text
