"""``fot simulate``: methods side by side on recorded rollouts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fot.cli.chosen import choose, note_left_out, note_without_references
from fot.cli.files import written
from fot.cli.output import ExitCode, print_json, print_note, print_table, progress, synthetic_line

if TYPE_CHECKING:
    from fot.replay.evaluate import MethodResult, Study
    from fot.replay.study import Chosen

__all__ = ["simulate"]

_HEADERS = (
    *("method", "correct", "accuracy", "gained", "won/lost", "p", "95% interval (pp)"),
    *("attention", "macro", "tokens", "latency", "full model", "votes"),
)
DEFAULT_POLICIES = ("sc", "pass", "fot", "random", "oracle")


def simulate(  # noqa: PLR0913 - each parameter is a flag
    pools: list[Path],
    /,
    *,
    policy: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    k: Annotated[int | None, Parameter(name=["-k", "--k"])] = None,
    commit: str = "boxed",
    grader: str = "exact",
    keys: str = "exact",
    cost_model: str | None = None,
    ranking: Path | None = None,
    seed: int = 0,
    shard: str | None = None,
    json: bool = False,
    per_problem: Path | None = None,
) -> int:
    """Replay methods on recorded rollouts, side by side.

    Parameters
    ----------
    pools
        Pools, or directly files of rows.
    policy
        A method: NAME or NAME:key=value,key=value; repeat it for more. Default: sc, pass, fot, random, oracle.
    k
        Take the first k rollouts of each problem; problems with fewer are left out. Default: all there are.
    commit
        When a rollout has committed to an answer: boxed, choice, code or paper.
    grader
        What compares an answer with the reference.
    keys
        Which answers are one vote: exact (equal vote keys) or math (equal as mathematics).
    cost_model
        Model shape for whole-model savings: a known model's name or a config.json. Default: each rollout's own model.
    ranking
        How hard the problems are, as `fot rank` wrote it, for dsc:ranking=given; what it cost is charged.
    seed
        Seed of every random draw.
    shard
        RANK/WORLD: leave this share of the outcomes beside the pools and print nothing; see fot spread.
    json
        Print one JSON object in place of a table.
    per_problem
        Write a JSON line for each problem and method.
    """
    from fot.methods import parse
    from fot.pools.shard import Shard
    from fot.replay import study as studies
    from fot.replay.ranking import read_ranking

    specs = [parse(text) for text in policy or DEFAULT_POLICIES]
    shape = studies.cost_model(cost_model)
    order = read_ranking(ranking) if ranking is not None else None
    chosen = choose(pools, k)
    if shard is not None:
        with progress("simulating", len(specs)) as done:
            own = Shard.parse(shard)
            pieces = studies.share_simulations(studies.sheets_of(chosen, commit, keys, order), specs, seed, own, done)
        print_note(f"shard {shard}: {pieces} pieces are there")
        return ExitCode.OK
    study = studies.study_of(chosen, commit=commit, grader=grader, shape=shape, seed=seed, keys=keys, ranking=order)
    _tell(chosen, study, commit)
    changed = {} if keys == "exact" else _merged(chosen, commit, keys)
    results = []
    with progress("simulating", len(specs)) as done:
        for at, spec in enumerate(specs):
            results.append(study.evaluate(spec))
            done(at + 1)
    for note in dict.fromkeys(note for result in results for note in result.notes):
        print_note(note)
    _tell_idle(results)
    if per_problem is not None:
        label = {"synthetic": chosen.synthetic} if chosen.synthetic else {}
        _write_rows(per_problem, (row | label for result in results for row in _rows(study, result)))
    if json:
        about = chosen.describe() | {"commit": commit, "grader": grader, "keys": keys, "seed": seed} | changed
        print_json({"schema": "fot.simulate/1", "pool": about, "methods": [_as_json(result) for result in results]})
    else:
        _print(chosen, results)
    return ExitCode.OK


def _tell(chosen: Chosen, study: Study, commit: str) -> None:
    """Say what a reader of the figures must know, before they come."""
    note_left_out(chosen)
    for pool in chosen.pools:
        if pool.manifest.rejected:
            print_note(f"{pool.manifest.rejected} rows of {pool.name} could not be read and are left out")
    finals = [answer for sheet in study.sheets for answers in sheet.finals for answer in answers]
    silent = sum(answer is None for answer in finals) / max(len(finals), 1)
    if silent > 0.5:
        print_note(f"{silent:.0%} of the rollouts have no answer under --commit {commit}; is it the right detector?")
    note_without_references(study.sheets)


def _tell_idle(results: list[MethodResult]) -> None:
    """Say which methods had checkpoints and nothing to do at them."""
    timed = [result for result in results if any(hasattr(plan, "checkpoints") for _, plan in result.spec.parts)]
    idle = [result.spec.text for result in timed if abs(result.savings.tokens) < 1e-9]
    if idle:
        print_note(f"{', '.join(idle)} stopped nothing; are the checkpoints past the ends? fot pool info tells lengths")


def _merged(chosen: Chosen, commit: str, keys: str) -> dict[str, int]:
    """Say what these keys do to the votes, against exact ones; the part of it that goes into the JSON."""
    from fot.replay.study import winners_merged

    merging = winners_merged(chosen, commit, keys)
    print_note(
        f"{keys} keys make {merging.answers_after} answers out of {merging.answers_before}, "
        f"and change the winner of sc in {merging.winners_changed} of {merging.problems} problems"
    )
    return {"winners_changed": merging.winners_changed}


def _print(chosen: Chosen, results: list[MethodResult]) -> None:
    about = chosen.describe()
    size = f"k={chosen.k}" if chosen.k else "all rollouts"
    title = f"{about['name']}: {chosen.problems} problems, {chosen.rollouts} rollouts ({size}), cuts {chosen.cut}"
    title += synthetic_line(chosen.synthetic)
    print_table(_HEADERS, [cells for result in results for cells in _cells(result)], title=title)
    print_note("columns from 'attention' to 'full model' are shares saved against sc on the same rollouts")


def _cells(result: MethodResult) -> Iterator[list[str]]:
    saved = result.savings
    exact = result.draws == 1
    yield [
        result.spec.text,
        (f"{result.correct:.0f}" if exact else f"{result.correct:.1f}") + _undecided(result),
        f"{100 * result.accuracy:.1f}%",
        f"{result.delta:+.0f}" if exact else f"{result.delta:+.1f}",
        f"{result.wins:.0f}/{result.losses:.0f}" if exact else f"{result.wins:.1f}/{result.losses:.1f}",
        f"{result.p:.2f}",
        f"{result.ci95_pp.low:+.1f} to {result.ci95_pp.high:+.1f}",
        *(_share(value) for value in (saved.attention, saved.attention_macro, saved.tokens, saved.latency)),
        "-" if saved.full_model is None else _share(saved.full_model),
        f"{result.votes_mean:.1f}",
    ]
    ceiling = max(result.pass_at, default=1)
    if ceiling > 1:
        share = result.pass_at[ceiling]
        yield [f"pass@{ceiling} (the ceiling)", "", f"{100 * share:.1f}%", *[""] * 10]


def _undecided(result: MethodResult) -> str:
    """What the grader could not judge is not correct, and not silently wrong either."""
    return f" ({result.undecided:g} undecided)" if result.undecided else ""


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def _as_json(result: MethodResult) -> dict[str, object]:
    entry: dict[str, object] = {
        "policy": result.spec.name,
        "spec": result.spec.text,
        "correct": int(result.correct) if result.draws == 1 else result.correct,
        "accuracy": result.accuracy,
        "delta": result.delta,
        "wins": result.wins,
        "losses": result.losses,
        "mcnemar_p": result.p,
        "ci95_pp": list(result.ci95_pp),
        "savings": result.savings,
        "votes_mean": result.votes_mean,
        "undecided": result.undecided,
        "draws": result.draws,
    }
    if result.pass_at:
        entry["pass_at"] = {str(size): share for size, share in result.pass_at.items()}
    return entry


def _rows(study: Study, result: MethodResult) -> Iterator[dict[str, object]]:
    verdicts = {"correct": True, "wrong": False, "no_answer": False}
    for problem, policy, judgement, outcome in study.rows(result.spec):
        yield {
            "model": problem.model,
            "benchmark": problem.benchmark,
            "problem_id": problem.problem_id,
            "policy": policy,
            "spec": result.spec.text,
            "answer": outcome.verdict.answer,
            "correct": verdicts.get(judgement.value),
            "stops": outcome.stops,
            "fates": [fate.value for fate in outcome.fates],
            "votes": outcome.verdict.votes,
        }


def _write_rows(path: Path, rows: Iterator[dict[str, object]]) -> None:
    import msgspec

    with written(path) as file:
        for row in rows:
            file.write(msgspec.json.encode(row) + b"\n")
