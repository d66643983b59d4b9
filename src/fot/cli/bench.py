"""``fot bench``: the online table, measured on a running engine."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fot.cli.engines import DrawFlags, EngineFlags
from fot.cli.files import written
from fot.cli.output import ExitCode, print_json, print_note, print_table, progress

if TYPE_CHECKING:
    from fot.engines.base import Engine
    from fot.grading.base import Grader
    from fot.methods import Spec
    from fot.online.api import Options
    from fot.online.trials import Key, Trial
    from fot.tasks.load import Loaded

__all__ = ["bench"]

_ENGINE, _DRAW = EngineFlags(), DrawFlags()
_RESULTS = ("method", "accuracy", "vs sc (pp)", "95%", "wall s", "wall saved", "95%")
_COSTS = ("method", "attention saved", "95%", "KV peak saved", "tokens", "tokens saved", "overshoot")


def bench(  # noqa: PLR0913, D417 - each parameter is a flag; groups of them tell themselves
    benchmark: str,
    /,
    *,
    policy: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    limit: int | None = None,
    from_engine: Annotated[EngineFlags, Parameter(name="*")] = _ENGINE,
    draws: Annotated[DrawFlags, Parameter(name="*")] = _DRAW,
    k: Annotated[int, Parameter(name=["-k", "--k"])] = 32,
    commit: str | None = None,
    grader: str | None = None,
    way: Literal["stream", "pause", "barrier"] = "stream",
    repeats: int = 1,
    per_run: Path | None = None,
    json: bool = False,
) -> int:
    """Measure methods on a running engine: the same problems and seeds under each, one run at a time.

    Costs are of the tokens that were truly generated, overshoot included. Savings are against sc, which always runs.

    Parameters
    ----------
    benchmark
        A benchmark (see fot tasks), or a file of rows with `problem` and `gold`.
    policy
        A method: NAME or NAME:key=value,key=value; repeat it for more. Default: pass, sc and fot.
    limit
        Only the first so many problems.
    k
        Rollouts.
    commit
        When a rollout has committed to an answer; default: the benchmark's own.
    grader
        What compares an answer with the reference; default: the benchmark's own.
    way
        How checkpoints are met: stream, pause or barrier.
    repeats
        How often everything is run, each time with other seeds.
    per_run
        Write a JSON line for each run; runs that are in it already are not made again.
    json
        Print one JSON object in place of a table.
    """
    import fot.stats  # noqa: F401 - that it is there, before anything is measured
    from fot.cli.problems import load_benchmark
    from fot.grading.base import grader as named_grader

    loaded = load_benchmark(benchmark, limit=limit, seed=0)
    options = from_engine.options()
    options |= {"k": k, "commit": commit or loaded.benchmark.detector, "way": way, "seed": draws.seed}
    options["sampling"] = draws.sampling()
    gold = {item.problem_id: item.gold for item in loaded.items}
    with named_grader(grader or loaded.benchmark.grader) as judge:  # before the measurement: what lacks is told first
        trials = asyncio.run(_measured(loaded, policy, options, repeats, per_run))
        rows = summarise(trials, gold, judge)
    lost = sum(trial.failures for trial in trials)
    if json:
        about = {"benchmark": loaded.benchmark.name, "problems": len(gold), "k": k, "repeats": repeats, "way": way}
        print_json({"schema": "fot.bench/1", **about, "lost_rollouts": lost, "methods": rows})
    else:
        what = f"{loaded.benchmark.name}: {len(gold)} problems, k = {k}, {way}, repeats: {repeats}"
        print_table(_RESULTS, [_results(row) for row in rows], title=what)
        print_table(_COSTS, [_costs(row) for row in rows], title="cost, of tokens truly generated")
        for row in rows:
            if repeats > 1 and row["policy"] != "sc":
                told = ", ".join(f"{saved:.1%}" for saved in row["wall_saved_by_repeat"])
                print_note(f"wall time saved by {row['policy']}, repeat by repeat: {told}")
    if lost:
        print_note(f"{lost} rollouts were lost to the engine")
    return ExitCode.PARTIAL if lost else ExitCode.OK


async def _measured(
    loaded: Loaded, policies: list[str] | None, options: Options, repeats: int, per_run: Path | None
) -> list[Trial]:
    from fot.online.api import opened
    from fot.online.trials import Question, measure

    questions = [Question(item.problem_id, item.prompt, item.gold) for item in loaded.items]
    async with opened(options) as engine:
        specs = _specs(policies, engine)
        known = await _known(loaded, engine, options, per_run)
        wanted = [
            (spec.text, question.problem_id, repeat)
            for spec in specs
            for question in questions
            for repeat in range(repeats)
        ]
        trials = [known[key] for key in wanted if key in known]
        with progress("running", len(wanted)) as done:
            note = _noting(trials, done, per_run)
            if len(trials) < len(wanted):
                await measure(engine, questions, specs, options, repeats=repeats, told=note, done=known)
    return trials


async def _known(loaded: Loaded, engine: Engine, options: Options, per_run: Path | None) -> dict[Key, Trial]:
    """The runs that are already in the file; `ConfigError` when they were made under other settings."""
    import msgspec

    from fot.engines.base import Sampling
    from fot.online.api import model_name
    from fot.online.sampler import check_settings, settings_of
    from fot.online.trials import Trial

    if per_run is None:
        return {}
    sampling, origin = options.get("sampling", Sampling()), loaded.origin.as_dict()
    settings = settings_of(await model_name(engine), options.get("seed", 42), sampling, origin)
    settings |= {"engine": engine.name} | {key: options.get(key) for key in ("k", "commit", "way")}
    check_settings(per_run, settings, "fot.bench/1")
    if not per_run.exists():
        return {}
    rows = per_run.read_bytes().split(b"\n")
    if rows[-1]:
        with written(per_run) as file:
            file.writelines(row + b"\n" for row in rows[:-1])  # a torn last line is run again
    return {trial.key: trial for trial in (msgspec.json.decode(row, type=Trial) for row in rows[:-1])}


def _noting(trials: list[Trial], done: Callable[[float], None], per_run: Path | None) -> Callable[[Trial], None]:
    import msgspec

    done(len(trials))

    def note(trial: Trial) -> None:
        trials.append(trial)
        done(len(trials))
        if per_run is not None:
            with per_run.open("ab") as file:
                file.write(msgspec.json.encode(trial) + b"\n")

    return note


def _specs(policies: list[str] | None, engine: Engine) -> list[Spec]:
    from fot.methods import parse
    from fot.online.api import default_policy

    specs = [parse(text) for text in policies or ("pass", "sc", default_policy(engine))]
    if all(spec.text != "sc" for spec in specs):
        specs.insert(0, parse("sc"))
    return specs


def summarise(trials: Sequence[Trial], gold: dict[str, str], judge: Grader) -> list[dict[str, Any]]:
    """A row for each method; means are over problems and repeats, and so are intervals."""
    from fot.grading.base import Judgement

    pairs = {(gold[t.problem_id], answer) for t in trials for answer in (t.answer, *t.answers)}
    ordered = sorted(pairs, key=str)
    grades = dict(zip(ordered, judge.grade_all(ordered), strict=True))

    def right(trial: Trial, answer: str | None) -> float:
        return float(grades[gold[trial.problem_id], answer].verdict is Judgement.CORRECT)

    by_policy: dict[str, list[Trial]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: (trial.repeat, trial.problem_id)):
        by_policy[trial.policy].append(trial)
    figures = {policy: _figures(own, right) for policy, own in by_policy.items()}
    if "pass" in figures:  # what one rollout alone is worth: the mean over all those that self-consistency ran
        alone = [sum(right(t, answer) for answer in t.answers) / len(t.answers or " ") for t in by_policy["sc"]]
        figures["pass"]["correct"] = _by_repeat(by_policy["sc"], alone)
    return [_row(policy, figures[policy], figures["sc"]) for policy in dict.fromkeys(trial.policy for trial in trials)]


Figures = dict[str, list[list[float]]]
"""Of one method, by name: a row for each repeat, and in it a number for each problem."""

_COUNTED = ("wall_s", "attention", "tokens", "latency", "kv_peak", "kv_written")


def _figures(trials: Sequence[Trial], right: Callable[[Trial, str | None], float]) -> Figures:
    told = {name: _by_repeat(trials, [getattr(t, name) for t in trials]) for name in (*_COUNTED, "overshoot")}
    return told | {"correct": _by_repeat(trials, [right(t, t.answer) for t in trials])}


def _by_repeat(trials: Sequence[Trial], values: Sequence[float]) -> list[list[float]]:
    rows: dict[int, list[float]] = defaultdict(list)
    for trial, value in zip(trials, values, strict=True):
        rows[trial.repeat].append(value)
    return list(rows.values())


def _row(policy: str, own: Figures, sc: Figures) -> dict[str, Any]:
    from fot.stats.resampling import repeated_ratio_bootstrap

    gained = _gained(own["correct"], sc["correct"])
    low, high = repeated_ratio_bootstrap(gained, [[1.0] * len(row) for row in gained])
    repeats = len(gained)
    walls = [sum(row) for row in own["wall_s"]]
    row: dict[str, Any] = {
        "policy": policy,
        "accuracy": _mean(own["correct"]),
        "delta_pp": 100 * _mean(gained),
        "ci95_pp": [100 * low, 100 * high],
        "savings": {},
        "savings_ci95": {},
        "wall_s_by_repeat": walls,
        "wall_saved_by_repeat": [1 - wall / sum(theirs) for wall, theirs in zip(walls, sc["wall_s"], strict=True)],
    }
    row |= {name: sum(map(sum, own[name])) / repeats for name in ("wall_s", "tokens", "overshoot")}
    for name in _COUNTED:
        left = repeated_ratio_bootstrap(own[name], sc[name])
        row["savings"][name] = 1 - _mean(own[name]) / _mean(sc[name]) if _mean(sc[name]) else math.nan
        row["savings_ci95"][name] = [1 - left.high, 1 - left.low]
    return row


def _gained(ours: list[list[float]], theirs: list[list[float]]) -> list[list[float]]:
    return [[a - b for a, b in zip(*rows, strict=True)] for rows in zip(ours, theirs, strict=True)]


def _mean(rows: list[list[float]]) -> float:
    return sum(map(sum, rows)) / sum(map(len, rows))


def _results(row: dict[str, Any]) -> list[str]:
    low, high = row["ci95_pp"]
    return [
        row["policy"],
        f"{row['accuracy']:.3f}",
        f"{row['delta_pp']:+.1f}",
        f"{low:+.1f} to {high:+.1f}",
        f"{row['wall_s']:.1f}",
        *_saved(row, "wall_s"),
    ]


def _costs(row: dict[str, Any]) -> list[str]:
    saved = row["savings"]
    return [
        row["policy"],
        *_saved(row, "attention"),
        f"{saved['kv_peak']:.1%}",
        f"{row['tokens']:,.0f}",
        f"{saved['tokens']:.1%}",
        f"{row['overshoot']:,.0f}",
    ]


def _saved(row: dict[str, Any], name: str) -> tuple[str, str]:
    low, high = row["savings_ci95"][name]
    return f"{row['savings'][name]:.1%}", f"{low:.1%} to {high:.1%}"
