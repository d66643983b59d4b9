"""``fot bench``: the online table, measured on a running engine."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fot.cli.engines import DrawFlags, EngineFlags
from fot.cli.output import ExitCode, print_json, print_note, print_table, progress

if TYPE_CHECKING:
    from fot.engines.base import Engine
    from fot.methods import Spec
    from fot.online.api import Options
    from fot.online.trials import Key, Trial
    from fot.tasks.load import Loaded

__all__ = ["bench"]

_ENGINE, _DRAW = EngineFlags(), DrawFlags()
_HEADERS = (
    *("method", "accuracy", "vs sc (pp)", "95%", "wall s", "wall saved", "95%"),
    *("attention saved", "tokens", "tokens saved", "overshoot", "KV peak saved"),
)


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
    from fot.cli.problems import load_benchmark

    loaded = load_benchmark(benchmark, limit=limit, seed=0)
    options = from_engine.options()
    options |= {"k": k, "commit": commit or loaded.benchmark.detector, "way": way, "seed": draws.seed}
    options["sampling"] = draws.sampling()
    trials = asyncio.run(_measured(loaded, policy, options, repeats, per_run))
    gold = {item.problem_id: item.gold for item in loaded.items}
    rows = summarise(trials, gold, grader or loaded.benchmark.grader)
    lost = sum(trial.failures for trial in trials)
    if json:
        about = {"benchmark": loaded.benchmark.name, "problems": len(gold), "k": k, "repeats": repeats, "way": way}
        print_json({"schema": "fot.bench/1", **about, "lost_rollouts": lost, "methods": rows})
    else:
        print_table(_HEADERS, [_shown(row) for row in rows])
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
    per_run.write_bytes(b"".join(row + b"\n" for row in rows[:-1]))  # a torn last line is run again
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


def summarise(trials: Sequence[Trial], gold: dict[str, str], grader_name: str) -> list[dict[str, Any]]:
    """A row for each method; repeats of a problem are averaged first, and intervals are over problems."""
    from fot.grading.base import Judgement, grader

    pairs = {(gold[t.problem_id], answer) for t in trials for answer in (t.answer, *t.answers)}
    with grader(grader_name) as judge:
        ordered = sorted(pairs, key=str)
        grades = dict(zip(ordered, judge.grade_all(ordered), strict=True))

    def right(problem: str, answer: str | None) -> float:
        return float(grades[gold[problem], answer].verdict is Judgement.CORRECT)

    baseline = _by_problem([trial for trial in trials if trial.policy == "sc"], right)
    alone = _alone([trial for trial in trials if trial.policy == "sc"], right)
    paces = _wall_by_repeat([trial for trial in trials if trial.policy == "sc"])
    rows = []
    for policy in dict.fromkeys(trial.policy for trial in trials):
        own = [trial for trial in trials if trial.policy == policy]
        figures = _by_problem(own, right)
        if policy == "pass":
            for problem, share in alone.items():
                figures[problem]["correct"] = share
        walls = _wall_by_repeat(own)
        by_repeat = [1 - wall / pace for wall, pace in zip(walls, paces, strict=False) if pace]
        rows.append(_row(policy, figures, baseline) | {"wall_s_by_repeat": walls, "wall_saved_by_repeat": by_repeat})
    return rows


_FIGURES = ("wall_s", "attention", "tokens", "overshoot", "latency", "kv_peak", "kv_written")


def _by_problem(trials: Sequence[Trial], right: Callable[[str, str | None], float]) -> dict[str, dict[str, float]]:
    """Means over repeats."""
    groups: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[trial.problem_id].append(trial)
    found = {}
    for problem, group in groups.items():
        figures = {name: sum(getattr(t, name) for t in group) / len(group) for name in _FIGURES}
        figures["correct"] = sum(right(problem, t.answer) for t in group) / len(group)
        found[problem] = figures
    return found


def _alone(trials: Sequence[Trial], right: Callable[[str, str | None], float]) -> dict[str, float]:
    """What one rollout alone is worth: the mean over all those that self-consistency ran."""
    shares: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        shares[trial.problem_id] += [right(trial.problem_id, answer) for answer in trial.answers]
    return {problem: sum(share) / len(share) for problem, share in shares.items() if share}


def _row(policy: str, own: dict[str, dict[str, float]], sc: dict[str, dict[str, float]]) -> dict[str, Any]:
    from fot.stats.paired import paired_bootstrap
    from fot.stats.resampling import ratio_bootstrap

    problems = list(own)
    gained = [own[p]["correct"] - sc[p]["correct"] for p in problems]
    low, high = paired_bootstrap(gained)
    row: dict[str, Any] = {
        "policy": policy,
        "accuracy": _mean(own[p]["correct"] for p in problems),
        "delta_pp": 100 * _mean(gained),
        "ci95_pp": [100 * low, 100 * high],
        "wall_s": sum(own[p]["wall_s"] for p in problems),
        "tokens": sum(own[p]["tokens"] for p in problems),
        "overshoot": sum(own[p]["overshoot"] for p in problems),
        "savings": {},
        "savings_ci95": {},
    }
    for name in ("wall_s", "attention", "tokens", "latency", "kv_peak", "kv_written"):
        ours, theirs = [own[p][name] for p in problems], [sc[p][name] for p in problems]
        left = ratio_bootstrap(ours, theirs)
        row["savings"][name] = 1 - sum(ours) / sum(theirs) if sum(theirs) else math.nan
        row["savings_ci95"][name] = [1 - left.high, 1 - left.low]
    return row


def _wall_by_repeat(trials: Sequence[Trial]) -> list[float]:
    totals: dict[int, float] = defaultdict(float)
    for trial in trials:
        totals[trial.repeat] += trial.wall_s
    return [totals[repeat] for repeat in sorted(totals)]


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _shown(row: dict[str, Any]) -> list[str]:
    saved, sure = row["savings"], row["savings_ci95"]
    low, high = row["ci95_pp"]
    return [
        row["policy"],
        f"{row['accuracy']:.3f}",
        f"{row['delta_pp']:+.1f}",
        f"{low:+.1f} to {high:+.1f}",
        f"{row['wall_s']:.1f}",
        f"{saved['wall_s']:.1%}",
        f"{sure['wall_s'][0]:.1%} to {sure['wall_s'][1]:.1%}",
        f"{saved['attention']:.1%}",
        f"{row['tokens']:,.0f}",
        f"{saved['tokens']:.1%}",
        f"{row['overshoot']:,.0f}",
        f"{saved['kv_peak']:.1%}",
    ]
