r"""The benchmarks: where their problems are, at which revision, how they are asked, how an answer is found and judged.

No problem is part of this project. A benchmark is fetched from its place on the Hugging Face hub at a pinned commit,
or read from a local copy of the same file. The pins and digests were taken over from public records of several
independent projects; a digest that is given is checked at every load, and every load records the digest it found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import cast

from fot.core.registry import unknown_name

__all__ = ["BENCHMARKS", "BOXED", "CHOICE", "Benchmark", "Source", "benchmark", "benchmark_names"]

BOXED = "{problem}\n\nPlease reason step by step, and put your final answer within \\boxed{}."
_BOXED_IN_LINE = BOXED.replace("\n\n", " ")  # as the project's own reasoner was taught
CHOICE = (
    "{problem}\n\n{options}\n\nPlease reason step by step, and end with a line 'Answer: X', X being one of {letters}."
)
_CODE = "{problem}\n\n{form}"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a dataset on the hub, at a commit. `sha256`: what the file must be; None: only recorded."""

    repository: str
    revision: str
    file: str
    sha256: str | None = None
    is_gated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """How a benchmark's problems are read, asked and judged.

    `reader` is the `module:function` that turns the source's rows into items; for a benchmark that is generated
    (`source` None) it makes the items. `prompt` is a template; `{problem}` and what else the reader knows is put into
    it. `detector` and `grader` are names of `fot.core.commit` and `fot.grading.base`. `problems`: how many there are;
    None: as many as are asked for.
    """

    name: str
    title: str
    source: Source | None
    reader: str
    prompt: str
    detector: str
    grader: str
    problems: int | None


def _math(name: str, title: str, source: Source, reader: str, problems: int) -> Benchmark:
    return Benchmark(
        name=name,
        title=title,
        source=source,
        reader=f"fot.tasks.readers:{reader}",
        prompt=BOXED,
        detector="boxed",
        grader="math",
        problems=problems,
    )


def _livecodebench(part: int, problems: int, sha256: str) -> Benchmark:
    return Benchmark(
        name=f"lcb-lite-v{part}",
        title=f"LiveCodeBench lite, the problems that release {part} added",
        source=Source(
            "livecodebench/code_generation_lite",
            "0fe84c3912ea0c4d4a78037083943e8f0c4dd505",
            f"test{part if part > 1 else ''}.jsonl",
            sha256,
        ),
        reader="fot.tasks.readers:read_livecodebench",
        prompt=_CODE,
        detector="code",
        grader="code",
        problems=problems,
    )


def _arithmetic(difficulty: str) -> Benchmark:
    return Benchmark(
        name=f"arithmetic-{difficulty}",
        title=f"The project's own problems, {difficulty}: chains of arithmetic modulo 1000",
        source=None,
        reader="fot.tasks.readers:read_arithmetic",
        prompt=_BOXED_IN_LINE,
        detector="boxed",
        grader="exact",
        problems=None,
    )


_LIST = (
    _math(
        "aime24",
        "AIME 2024, I and II",
        Source(
            "HuggingFaceH4/aime_2024",
            "2fe88a2f1091d5048c0f36abc874fb997b3dd99a",
            "data/train-00000-of-00001.parquet",
        ),
        "read_math",
        30,
    ),
    _math(
        "aime25",
        "AIME 2025, I and II",
        Source(
            "math-ai/aime25",
            "563bb8404243c5f09de6ec262f2db674fe5bce9b",
            "test.jsonl",
            "b4e273c02d3e7fe1b74b59eae768fc8230bfb0f79539890cb56f4361caac0331",
        ),
        "read_math",
        30,
    ),
    _math(
        "amc23",
        "AMC 12 2023",
        Source("math-ai/amc23", "80815d37005feb82cd7f8fbc6901d5d3eff43057", "test-00000-of-00001.parquet"),
        "read_math",
        40,
    ),
    _math(
        "math500",
        "MATH-500",
        Source(
            "HuggingFaceH4/MATH-500",
            "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
            "test.jsonl",
            "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
        ),
        "read_math",
        500,
    ),
    _math(
        "gsm8k",
        "GSM8K, test split",
        Source(
            "openai/gsm8k",
            "740312add88f781978c0658806c59bc2815b9866",
            "main/test-00000-of-00001.parquet",
            "ee7b8da9e381df27b9e3f7758a159ab2bdaa4dbaa910546cbbc47e0cb44e4f59",
        ),
        "read_gsm8k",
        1319,
    ),
    Benchmark(
        name="gpqa-diamond",
        title="GPQA Diamond",
        source=Source(
            "Idavidrein/gpqa",
            "633f5ee89ab8ad4522a9f850766b73f62147ffdd",
            "gpqa_diamond.csv",
            "41d1213cd7a4998605a26c2798500652572007161b3a92817ba46b35befcd305",
            is_gated=True,
        ),
        reader="fot.tasks.readers:read_gpqa",
        prompt=CHOICE,
        detector="choice",
        grader="choice",
        problems=198,
    ),
    _livecodebench(1, 400, "2bd02b38beb48e8c46b5b9987095d999ff38cd8efc255ea5d58974317c48f63f"),
    _livecodebench(2, 111, "095df7c5daf15f882c51a9deb84085cff1e073495a5dbcf95015a564d485f3a3"),
    _livecodebench(3, 101, "28ed26cc83363ce3f1fe2d5fad9f8393077beb1907b167a31bd3b32f80801b79"),
    _livecodebench(4, 101, "d711138ddaebfcf5f8ec6a4283ee677298c0f5c5d374a235af92aaf0584510da"),
    _livecodebench(5, 167, "7f77571c2a6df0c2a72a3277650309f67e01e0008e18117e624633df53f81214"),
    _livecodebench(6, 175, "bb4c364f71921c4495a6ad15abe1a927350b720009f4933e2e71f8af0f6fd1f5"),
    _arithmetic("easy"),
    _arithmetic("middle"),
    _arithmetic("hard"),
)

BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType({entry.name: entry for entry in _LIST})
"""The benchmarks by name."""


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


_PLAIN_NAMES = {_plain(name): name for name in BENCHMARKS} | {"gpqa": "gpqa-diamond"}

_GROUP = "fot.tasks"


def benchmark_names() -> list[str]:
    """Every name that `benchmark` takes: ours, then those of installed packages."""
    return [*BENCHMARKS, *sorted({point.name for point in entry_points(group=_GROUP)} - set(BENCHMARKS))]


def benchmark(name: str) -> Benchmark:
    """The benchmark of this name, `MATH-500` being `math500`. Raises `ConfigError` for an unknown one.

    Another package brings one as a `Benchmark` at an entry point of the group `fot.tasks`.
    """
    if plain := _PLAIN_NAMES.get(_plain(name)):
        return BENCHMARKS[plain]
    points = tuple(entry_points(group=_GROUP, name=name))
    if not points:
        raise unknown_name("benchmark", name, benchmark_names())
    return cast("Benchmark", points[0].load())
