"""``fot plan``: how long problems take under a method on a server of known speed, before anything is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fot.cli.chosen import choose, note_left_out
from fot.cli.files import written
from fot.cli.output import ExitCode, print_json, print_note, print_table, progress, synthetic_line
from fot.errors import ConfigError

if TYPE_CHECKING:
    from fot.core.timing import Timing
    from fot.methods import Spec
    from fot.replay.capacity import Forecast, Load
    from fot.replay.sheet import Sheet
    from fot.replay.station import Room

__all__ = ["plan", "read_timing", "room_of"]

_HEADERS = (
    *("method", "problems at once", "wall s", "against sc", "problems/h", "tokens/s", "s a problem", "95%"),
    *("batch", "KV mean", "KV peak", "overshoot", "preempted"),
)
_BINS = 48
_BARS = "▁▂▃▄▅▆▇█"


def plan(  # noqa: PLR0913 - each parameter is a flag
    pools: list[Path],
    /,
    *,
    timing: Path,
    policy: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    concurrency: Annotated[list[int] | None, Parameter(consume_multiple=False)] = None,
    slots: int | None = None,
    kv_tokens: int | None = None,
    way: Literal["stream", "pause", "barrier"] = "stream",
    k: Annotated[int | None, Parameter(name=["-k", "--k"])] = None,
    commit: str = "boxed",
    prompt_tokens: int | None = None,
    seed: int = 0,
    figure: Path | None = None,
    json: bool = False,
) -> int:
    """Replay recorded rollouts with a clock: predicted wall time, throughput and KV occupancy of each method.

    The timing is a server's, made by `fot doctor --calibrate`. The engine is modelled: slots, a queue, room for KV
    positions, and steps that take longer the more rollouts and positions take part. Policies run as they do live.

    Parameters
    ----------
    pools
        Pools, or directly files of rows.
    timing
        The file that `fot doctor --calibrate` wrote.
    policy
        A method: NAME or NAME:key=value,key=value; repeat it for more. Default: sc and fot.
    concurrency
        Problems at once; repeat it for more. Default: 1.
    slots
        Rollouts that the engine runs at once. Default: as many as it told when it was timed.
    kv_tokens
        Positions that the engine holds at most, prompts counted for each rollout. Default: no limit.
    way
        How checkpoints are met: stream, pause or barrier.
    k
        Take the first k rollouts of each problem; problems with fewer are left out. Default: all there are.
    commit
        When a rollout has committed to an answer: boxed, choice, code or paper.
    prompt_tokens
        Length of prompts, for rows that do not tell it.
    seed
        Seed of every random draw. Of methods with several draws, the first is planned.
    figure
        Write batch and KV positions over time as an SVG picture.
    json
        Print one JSON object in place of a table.
    """
    from fot.methods import parse
    from fot.replay.capacity import Load

    speed, about = read_timing(timing)
    specs = [parse(text) for text in policy or ("sc", "fot")]
    chosen = choose(pools, k)
    room = room_of(speed, slots, kv_tokens)
    loads = [Load(concurrency=number, way=way) for number in concurrency or [1]]
    sheets = _sheets(chosen.pools, chosen.selections, commit)
    rows = list(_foretold(sheets, specs, loads, speed, room, seed, prompt_tokens))
    note_left_out(chosen)
    for note in _notes(speed, room, rows):
        print_note(note)
    if figure is not None:
        from fot.cli.picture import picture

        drawn = [(_name(spec, load), found.trace.bins(240)) for spec, load, found in rows]
        with written(figure) as file:
            file.write(picture(drawn, "synthetic texts" if chosen.synthetic else "").encode())
    if json:
        print_json(
            {
                "schema": "fot.plan/1",
                "pool": chosen.describe() | {"commit": commit, "seed": seed},
                "timing": {name: about.get(name) for name in ("engine", "model", "made", "error")},
                "room": room,
                "plans": [_as_json(*row) for row in rows],
            }
        )
    else:
        _print(chosen.describe(), room, rows)
    return ExitCode.OK


def read_timing(path: Path) -> tuple[Timing, dict[str, Any]]:
    """A timing, and all that its file tells."""
    import msgspec

    from fot.core.timing import Timing

    try:
        told = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"there is no {path}", "Make it with `fot doctor --calibrate --base-url URL`.") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is no JSON: {error}", "Make it anew with `fot doctor --calibrate`.") from None
    return Timing.from_json(told), told


def room_of(timing: Timing, slots: int | None, kv_tokens: int | None) -> Room:
    """The room of a timed server: its own slots, unless others are given."""
    from fot.replay.station import Room

    known = slots if slots is not None else timing.slots
    if known is None:
        raise ConfigError("the server did not tell how many rollouts it runs at once", "Say it with --slots.")
    return Room(slots=known, kv_tokens=kv_tokens)


def _sheets(pools: Sequence[Any], selections: Sequence[Any], commit: str) -> list[Sheet]:
    from fot.replay.sheet import Sheet

    return [Sheet(pool, chosen.parts, commit) for pool, chosen in zip(pools, selections, strict=True) if chosen.parts]


def _foretold(  # noqa: PLR0917
    sheets: Sequence[Sheet],
    specs: Sequence[Spec],
    loads: Sequence[Load],
    timing: Timing,
    room: Room,
    seed: int,
    prompt_tokens: int | None,
) -> Iterator[tuple[Spec, Load, Forecast]]:
    from fot.replay.capacity import foretell, stages_of

    problems = sum(len(sheet.parts) for sheet in sheets)
    with progress("planning", len(specs) * len(loads) * problems) as done:
        for at, (load, spec) in enumerate(product(loads, specs)):
            stages = (
                stage for sheet in sheets for stage in stages_of(sheet, spec, seed=seed, prompt_tokens=prompt_tokens)
            )
            before = at * problems
            yield spec, load, foretell(stages, timing, room, load, lambda n, before=before: done(before + n))  # type: ignore[misc]


def _notes(timing: Timing, room: Room, rows: Sequence[tuple[Spec, Load, Forecast]]) -> Iterator[str]:
    widest, most = timing.knots[-1].batch, max(found.books.batch_peak for _, _, found in rows)
    if most > widest:
        yield f"up to {most} rollouts run at once, and {widest} at most were timed: steps beyond are extrapolated"
    if room.kv_tokens is None:
        needed = max(found.books.kv_peak for _, _, found in rows)
        yield f"no limit of KV positions was given (--kv-tokens); {needed:,} are needed"


def _name(spec: Spec, load: Load) -> str:
    return f"{spec.text}, {load.concurrency} at once"


def _ninth(values: Sequence[float]) -> float:
    """The 95th percentile, by nearest rank."""
    ordered = sorted(values)
    return ordered[min(-(-95 * len(ordered) // 100), len(ordered)) - 1]


def _print(about: dict[str, Any], room: Room, rows: Sequence[tuple[Spec, Load, Forecast]]) -> None:
    marks = {load: found.wall_s for spec, load, found in rows if spec.text == "sc"}
    title = f"{about['name']}: {about['problems']} problems, {about['rollouts']} rollouts, {room.slots} slots"
    title += synthetic_line(about["synthetic"])
    print_table(_HEADERS, [_cells(*row, marks) for row in rows], text_columns=2, title=title)
    for name, index in (("rollouts running", 1), ("KV positions", 2)):
        tops = [max((each[index] for each in found.trace.bins(_BINS)), default=0.0) for _, _, found in rows]
        wall = max(found.wall_s for _, _, found in rows)
        drawn = [
            [
                _name(spec, load),
                _sparks([each[index] for each in found.trace.bins(_width(found.wall_s, wall))], max(tops)),
            ]
            for spec, load, found in rows
        ]
        print_table((name, f"over {wall:,.1f} s, up to {max(tops):,.0f}"), drawn, text_columns=2)


def _width(wall_s: float, longest_s: float) -> int:
    return max(1, round(_BINS * wall_s / longest_s)) if longest_s else 1


def _sparks(values: Sequence[float], top: float) -> str:
    return "".join(_BARS[min(int(len(_BARS) * value / top), len(_BARS) - 1)] for value in values) if top else ""


def _cells(spec: Spec, load: Load, found: Forecast, marks: dict[Load, float]) -> list[str]:
    mark = marks.get(load)
    return [
        spec.text,
        str(load.concurrency),
        f"{found.wall_s:,.1f}",
        f"{found.wall_s / mark - 1:+.1%}" if mark and spec.text != "sc" else "",
        f"{found.problems_per_h:,.0f}",
        f"{found.tokens_per_s:,.0f}",
        f"{sum(found.latencies_s) / len(found.latencies_s):,.2f}",
        f"{_ninth(found.latencies_s):,.2f}",
        f"{found.batch_mean:,.1f}",
        f"{found.kv_mean:,.0f}",
        f"{found.books.kv_peak:,}",
        f"{found.overshoot:,}",
        f"{found.books.preemptions:,}",
    ]


def _as_json(spec: Spec, load: Load, found: Forecast) -> dict[str, object]:
    books = found.books
    return {
        "policy": spec.name,
        "spec": spec.text,
        "concurrency": load.concurrency,
        "way": load.way,
        "wall_s": found.wall_s,
        "problems_per_h": found.problems_per_h,
        "tokens_per_s": found.tokens_per_s,
        "tokens": found.tokens,
        "overshoot_tokens": found.overshoot,
        "computed_prompt_tokens": books.prompt_tokens,
        "latency_s": {"mean": sum(found.latencies_s) / len(found.latencies_s), "p95": _ninth(found.latencies_s)},
        "batch": {"mean": found.batch_mean, "peak": books.batch_peak},
        "kv": {"mean": found.kv_mean, "peak": books.kv_peak, "token_steps": books.token_steps},
        "queue_s": books.waits,
        "preemptions": books.preemptions,
    }
