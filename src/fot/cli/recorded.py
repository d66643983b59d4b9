"""What the funnel comes to on the rollouts that ship with the reasoner; replayed from their texts, without numpy."""

from __future__ import annotations

import gzip
import sys
from itertools import groupby
from typing import TYPE_CHECKING

from fot.cli.output import console, print_table

if TYPE_CHECKING:
    from fot.core.rollout import Rollout
    from fot.replay.simulator import Outcome

__all__ = ["print_recorded"]

_DRAWS = 10


def print_recorded(funnel: str) -> None:
    """One live problem cannot tell how good a method is; recorded ones can. `funnel`: a spec of `fot`."""
    from fot.core.ledger import bill, savings

    problems = _sample()
    screen = console(sys.stderr)
    screen.print(
        f"\nOne problem shows how it works. How well: {len(problems)} problems x {len(problems[0])} recorded rollouts "
        "of the same model, replayed.\n"
    )
    full = [_replay("sc", problem, 0) for problem in problems]
    rows = []
    for name, policy, draws in (
        ("self-consistency", "sc", 1),
        ("funnel", funnel, 1),
        ("funnel that prunes at random", funnel.replace("fot", "random", 1), _DRAWS),
    ):
        outcomes = [_replay(policy, problem, draw) for draw in range(draws) for problem in problems]
        right = sum(o.verdict.answer == p[0].gold for o, p in zip(outcomes, problems * draws, strict=True)) / draws
        saved = savings(
            [bill(outcome.charges) for outcome in outcomes],
            [bill(outcome.charges) for outcome in full * draws],
            [None] * len(outcomes),
        )
        rows.append([name, f"{right:g} of {len(problems)}", f"{saved.attention:.0%}", f"{saved.tokens:.0%}"])
    print_table(("method", "right", "attention saved", "tokens saved"), rows)


def _sample() -> list[list[Rollout]]:
    """The recorded rollouts, problem by problem."""
    import msgspec

    from fot.core.rollout import Rollout
    from fot.reasoner import sample_pool_path

    rows = map(msgspec.json.decode, gzip.decompress(sample_pool_path().read_bytes()).splitlines())
    return [list(group) for _, group in groupby((Rollout(**row) for row in rows), key=lambda rollout: rollout.key)]


def _replay(policy: str, rollouts: list[Rollout], draw: int) -> Outcome:
    """As `fot simulate` does it."""
    from fot.methods.spec import Context, parse
    from fot.replay.recording import TextRecording
    from fot.replay.simulator import simulate

    context = Context(k=len(rollouts), problem="/".join(rollouts[0].key), draw=draw)
    return simulate(parse(policy).build(context), TextRecording(rollouts, "boxed"))
