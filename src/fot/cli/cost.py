"""``fot cost``: what it takes to generate the rollouts of a pool, or so many times as many, under a method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from fot.cli.chosen import choose, note_left_out
from fot.cli.output import ExitCode, print_json, print_note, print_table, synthetic_line
from fot.core.registry import unknown_name
from fot.errors import ConfigError

if TYPE_CHECKING:
    from fot.core.cost import Accelerator, Decoding, Work
    from fot.core.shapes import Shape
    from fot.core.timing import Timing
    from fot.pools.read import Pool

__all__ = ["cost"]

_HEADERS = (
    *("method", "times", "rollouts", "tokens", "FLOPs", "accelerator hours", "accelerator years", "server hours"),
    *("text", "pool", "index"),
)
_FIELDS = 3  # of an accelerator that is given in figures
_UNITS = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")


class _Item(NamedTuple):
    """What one model takes; None where its shape, or a server, is not known."""

    model: str
    work: Work
    flops: float | None
    decoding: Decoding | None
    served_s: float | None

    @property
    def hours(self) -> float | None:
        return self.decoding.hours(self.work.tokens) if self.decoding else None


class _Bill(NamedTuple):
    """What a method takes."""

    policy: str
    times: float
    items: list[_Item]

    def total(self, name: str) -> float | None:
        """A figure over all models; None where one of them does not know it."""
        figures = [getattr(item, name) for item in self.items]
        return None if None in figures else sum(figures)

    def sum(self, name: str) -> float:
        """A figure of the work."""
        return float(sum(getattr(item.work, name) for item in self.items))


def cost(  # noqa: PLR0913 - each parameter is a flag
    pools: list[Path],
    /,
    *,
    times: Annotated[list[float] | None, Parameter(consume_multiple=False)] = None,
    policy: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    accelerator: str = "h100",
    use: float = 1.0,
    timing: Path | None = None,
    slots: int | None = None,
    k: Annotated[int | None, Parameter(name=["-k", "--k"])] = None,
    commit: str = "boxed",
    cost_model: str | None = None,
    seed: int = 0,
    json: bool = False,
) -> int:
    """Tell what it takes to generate the rollouts of a pool: tokens, FLOPs, accelerator hours, bytes.

    Hours are those of full accelerators, by their data sheet: a bound that nothing beats, until --use says what share
    of the speed is reached. With a timing they are those of a real server, besides. Bytes are, for each token, those
    of this pool.

    Parameters
    ----------
    pools
        Pools, or directly files of rows.
    times
        So many times as many problems of the same kind; repeat it for more. Default: 1.
    policy
        A method: NAME or NAME:key=value,key=value; repeat it for more. Default: sc and fot.
    accelerator
        a100, h100, h200, or FLOPS/BANDWIDTH/MEMORY, such as 989e12/3.35e12/80e9 (per second, bytes a second, bytes).
    use
        Share of the data sheet's speed that is reached.
    timing
        The file that `fot doctor --calibrate` wrote: hours of that server, all its slots taken.
    slots
        Rollouts that the server runs at once. Default: as many as it told when it was timed.
    k
        Take the first k rollouts of each problem; problems with fewer are left out. Default: all there are.
    commit
        When a rollout has committed to an answer: boxed, choice, code or paper.
    cost_model
        Model shape: a known model's name or a config.json. Default: each rollout's own model.
    seed
        Seed of every random draw. Of methods with several draws, the first is taken.
    json
        Print one JSON object in place of a table.
    """
    from fot.methods import parse
    from fot.replay import study as studies
    from fot.replay.work import work_by_model

    device, shape = _accelerator(accelerator), studies.cost_model(cost_model)
    specs = [parse(text) for text in policy or ("sc", "fot")]
    factors = times or [1.0]
    for factor in factors:
        if not 0 < factor < math.inf:
            raise ConfigError(f"--times is {factor}", "It should be above 0.")
    server = _server(timing, slots)
    chosen = choose(pools, k)
    note_left_out(chosen)
    sheets = studies.sheets_of(chosen, commit)
    works = {spec.text: work_by_model(sheets, spec, seed) for spec in specs}
    models = sorted({model for work in works.values() for model in work})
    unknown = [model for model in models if shape(model) is None]
    if unknown:
        print_note(f"the shape of {', '.join(unknown)} is not known: no FLOPs; name one with --cost-model")
    bills = [
        _Bill(
            name,
            factor,
            [_item(model, one.times(factor), shape(model), device, use, server) for model, one in work.items()],
        )
        for factor in factors
        for name, work in works.items()
    ]
    size = _bytes(chosen.pools, commit)
    if json:
        print_json(
            {
                "schema": "fot.cost/1",
                "pool": chosen.describe() | {"commit": commit, "seed": seed},
                "accelerator": {"name": accelerator, "use": use, "figures": device},
                "costs": [_as_json(bill, size) for bill in bills],
            }
        )
        return ExitCode.OK
    title = f"{chosen.describe()['name']}: {chosen.problems:,} problems, {chosen.rollouts:,} rollouts; "
    title += f"{accelerator} at {use:.0%} of its data sheet{synthetic_line(chosen.synthetic)}"
    print_table(_HEADERS, [_cells(bill, size) for bill in bills], text_columns=2, title=title)
    return ExitCode.OK


def _accelerator(name: str) -> Accelerator:
    from fot.core.cost import ACCELERATORS, Accelerator

    if name in ACCELERATORS:
        return ACCELERATORS[name]
    figures = name.split("/")
    if len(figures) != _FIELDS:
        raise unknown_name("accelerator", name, ACCELERATORS)
    try:
        flops, bandwidth, memory = map(float, figures)
    except ValueError:
        raise ConfigError(
            f"'{name}' holds what is no number", "Give FLOPS/BANDWIDTH/MEMORY: 989e12/3.35e12/80e9."
        ) from None
    return Accelerator(flops=flops, bandwidth=bandwidth, memory=memory)


def _server(path: Path | None, slots: int | None) -> tuple[Timing, int] | None:
    """A timed server and its slots."""
    from fot.cli.plan import read_timing, room_of

    if path is None:
        return None
    timing, _ = read_timing(path)
    return timing, room_of(timing, slots, None).slots


def _item(
    model: str,
    work: Work,
    shape: Shape | None,
    device: Accelerator,
    use: float,
    server: tuple[Timing, int] | None,
) -> _Item:
    from fot.core.cost import decode_flops, decoding, served_s

    return _Item(
        model,
        work,
        decode_flops(work, shape) if shape else None,
        decoding(work, shape, device, use=use) if shape else None,
        served_s(work, *server) if server else None,
    )


def _bytes(pools: Sequence[Pool], commit: str) -> dict[str, float]:
    """For each token: of the text, of the files of rows, and of the arrays that were derived from them."""
    from fot.core.markers import PAPER_KERNEL
    from fot.pools.derived import places
    from fot.pools.index import index_of

    tokens = max(1, sum(int(index_of(pool, PAPER_KERNEL, commit).n_tokens.sum()) for pool in pools))
    arrays = {  # once, also where one stands both beside its pool and in the cache
        (pool.path, path.relative_to(place)): path.stat().st_size
        for pool in pools
        for place in places(pool)
        for path in place.glob("*/*.npy")
    }
    return {
        "text": sum(pool.manifest.chars for pool in pools) / tokens,
        "pool": sum(pool.manifest.rows_bytes for pool in pools) / tokens,
        "index": sum(arrays.values()) / tokens,
    }


def _cells(bill: _Bill, size: Mapping[str, float]) -> list[str]:
    hours, served_s = bill.total("hours"), bill.total("served_s")
    flops = bill.total("flops")
    return [
        bill.policy,
        f"{bill.times:,g}",
        f"{bill.sum('rollouts'):,.0f}",
        _short(bill.sum("tokens")),
        "" if flops is None else _short(flops),
        "" if hours is None else f"{hours:,.3g}" if hours < 100 else f"{hours:,.0f}",
        "" if hours is None else f"{hours / 24 / 365:,.2g}",
        "" if served_s is None else f"{served_s / 3600:,.3g}",
        *(f"{_short(bill.sum('tokens') * each)}B" for each in size.values()),
    ]


def _short(value: float) -> str:
    """Three figures and the prefix of a thousand."""
    power = 0
    while value >= 999.5 and power < len(_UNITS) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {_UNITS[power]}"


def _as_json(bill: _Bill, size: Mapping[str, float]) -> dict[str, object]:
    return {
        "policy": bill.policy,
        "times": bill.times,
        "rollouts": bill.sum("rollouts"),
        "tokens": bill.sum("tokens"),
        "flops": bill.total("flops"),
        "accelerator_hours": bill.total("hours"),
        "server_s": bill.total("served_s"),
        "bytes": {name: bill.sum("tokens") * each for name, each in size.items()},
        "models": [
            {
                "model": item.model,
                "tokens": item.work.tokens,
                "held": item.work.held,
                "flops": item.flops,
                "accelerator_hours": item.hours,
                "decoding": item.decoding._asdict() if item.decoding else None,
            }
            for item in bill.items
        ],
    }
