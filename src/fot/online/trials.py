"""Methods side by side on a running engine: the same problems, the same seeds, one run after the other."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

from fot.core.ledger import Charge, bill, kv_positions
from fot.core.policy import Fate
from fot.engines.base import Engine
from fot.methods import Spec
from fot.online.api import Options, Session
from fot.online.result import Result

__all__ = ["Question", "Trial", "measure"]


@dataclass(frozen=True, slots=True)
class Question:
    """One problem as it is asked."""

    problem_id: str
    prompt: str
    gold: str | None


@dataclass(frozen=True, slots=True)
class Trial:
    """One method on one problem, once. Costs are of what was truly generated, overshoot included."""

    policy: str
    problem_id: str
    repeat: int
    answer: str | None
    answers: tuple[str | None, ...]
    """Of each rollout that ended by itself: what a single one would have answered."""
    wall_s: float
    attention: float
    """Σ tokens² over rollouts."""
    tokens: int
    overshoot: int
    latency: int
    """Tokens of the longest rollout."""
    kv_peak: int
    kv_written: int
    fates: dict[str, int]
    failures: int

    @property
    def key(self) -> Key:
        """What tells it from all others."""
        return (self.policy, self.problem_id, self.repeat)


Key = tuple[str, str, int]


def trial_of(result: Result, question: Question, repeat: int) -> Trial:
    """What a result says about the cost."""
    charges = [Charge(r.generated, start) for r, start in zip(result.rollouts, result.starts, strict=True)]
    cost, kv = bill(charges), kv_positions(charges)
    fates = [rollout.fate.value for rollout in result.rollouts]
    return Trial(
        policy=result.policy,
        problem_id=question.problem_id,
        repeat=repeat,
        answer=result.answer,
        answers=tuple(rollout.answer for rollout in result.rollouts if rollout.fate is Fate.FINISHED),
        wall_s=result.wall_s,
        attention=cost.attention,
        tokens=result.usage.completion_tokens,
        overshoot=result.usage.overshoot_tokens,
        latency=int(cost.latency),
        kv_peak=kv.peak,
        kv_written=kv.cumulative,
        fates={fate: fates.count(fate) for fate in dict.fromkeys(fates)},
        failures=len(result.failures),
    )


def _order(specs: Sequence[Spec], turn: int) -> Iterator[Spec]:
    """Another method goes first each time, so that none gains from a warm cache or a quiet hour."""
    for at in range(len(specs)):
        yield specs[(at + turn) % len(specs)]


async def measure(
    engine: Engine,
    questions: Sequence[Question],
    specs: Sequence[Spec],
    options: Options,
    *,
    repeats: int,
    told: Callable[[Trial], None],
    done: Container[Key] = (),
) -> None:
    """Run every method on every problem, `repeats` times, each time with other seeds; tells each trial as it ends.

    What is in `done` is left out.
    """
    k, seed = options.get("k", 32), options.get("seed", 42)
    # Nobody pays for loading the model.
    await _run(engine, questions[0], specs[0], options | {"k": 1})
    for repeat in range(repeats):
        for turn, question in enumerate(questions):
            for spec in _order(specs, turn + repeat):
                if (spec.text, question.problem_id, repeat) in done:
                    continue
                result = await _run(engine, question, spec, options | {"seed": seed + repeat * k})
                told(trial_of(result, question, repeat))


async def _run(engine: Engine, question: Question, spec: Spec, options: Options) -> Result:
    about = {"problem_id": question.problem_id}
    messages = ({"role": "user", "content": question.prompt},)
    return await Session(engine, messages, options | {"policy": spec, "about": about}).run()
