"""What a run comes to: the verdict, what every rollout did, and what was truly generated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from fot.core.ledger import Charge, Savings, bill, savings
from fot.core.policy import Fate
from fot.core.vote import Verdict
from fot.online.controller import Run
from fot.online.lane import Lane, Way

__all__ = ["SCHEMA", "Result", "RolloutResult", "Usage", "likely_lengths", "result_of"]

SCHEMA = "fot.solve/1"
_ENDED = ("stop", "length")  # the rollout came to its own end: its length is known


@dataclass(frozen=True, slots=True)
class RolloutResult:
    """One rollout. `tokens` are those up to its decision, `generated` all that the engine made."""

    id: int
    tokens: int
    fate: Fate
    answer: str | None
    finish_reason: str | None
    generated: int
    failure: str | None
    text: str
    """Everything that came, what came after its decision included."""
    decided_chars: int
    """Characters of the text up to its decision."""
    said: str
    """The text that goes with its answer: all, or up to its decision where it came to another answer after that."""

    def as_json(self) -> dict[str, object]:
        """Everything but the text."""
        told: dict[str, object] = {
            "id": self.id,
            "tokens": self.tokens,
            "fate": self.fate.value,
            "answer": self.answer,
            "finish_reason": self.finish_reason,
            "generated": self.generated,
        }
        return told | {"failure": self.failure} if self.failure else told


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the engine counted them, over all requests of the run."""

    prompt_tokens: int
    cached_tokens: int
    """Of the prompt tokens, those that the engine had in its cache."""
    completion_tokens: int
    """Everything generated: overshoot, probes and warm-up included."""
    overshoot_tokens: int
    """Generated after a rollout's decision, until the engine had stopped."""
    probe_tokens: int
    warm_up_tokens: int

    def as_json(self) -> dict[str, int]:
        """The figures by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one problem, `fot.solve/1` in `as_json`."""

    verdict: Verdict
    rollouts: tuple[RolloutResult, ...]
    usage: Usage
    policy: str
    way: Way
    counts: Literal["exact", "estimated"]
    wall_s: float
    is_interrupted: bool
    starts: tuple[int, ...] = ()

    @property
    def answer(self) -> str | None:
        """What won the vote."""
        return self.verdict.answer

    @property
    def votes(self) -> dict[str, float]:
        """The count of every answer, in the order in which they came in."""
        return dict(self.verdict.votes)

    @property
    def failures(self) -> dict[int, str]:
        """Why rollouts were lost, by rollout."""
        return {rollout.id: rollout.failure for rollout in self.rollouts if rollout.failure is not None}

    @property
    def is_partial(self) -> bool:
        """Is this less than was asked for?"""
        return self.is_interrupted or bool(self.failures)

    @property
    def text(self) -> str | None:
        """What the speaker said; None when there is no winner."""
        return None if self.speaker is None else self.speaker.said

    @property
    def speaker(self) -> RolloutResult | None:
        """The rollout with the shortest text that commits to the winner; None when there is no winner."""
        winners = [rollout for rollout in self.rollouts if rollout.answer is not None and rollout.answer == self.answer]
        return min(winners, key=lambda rollout: (len(rollout.said), rollout.id), default=None)

    def savings_against(self, lengths: Sequence[int]) -> Savings:
        """What was saved, of tokens truly generated, against rollouts that ran to these lengths."""
        spent = bill(Charge(r.generated, start) for r, start in zip(self.rollouts, self.starts, strict=True))
        return savings([spent], [bill(Charge(tokens) for tokens in lengths)], [None])

    def full_lengths(self) -> tuple[list[int], bool]:
        """How long each rollout would have become by itself, and whether all of that is known.

        `likely_lengths` tells it of those that were stopped. What the engine lost is no saving.
        """
        generated = [r.generated for r in self.rollouts]
        likely = likely_lengths(generated, [r.finish_reason in _ENDED for r in self.rollouts])
        stopped = [r.failure is None and r.finish_reason not in _ENDED for r in self.rollouts]
        lengths = [
            length if is_stopped else tokens
            for length, tokens, is_stopped in zip(likely, generated, stopped, strict=True)
        ]
        return lengths, not any(stopped)

    def as_json(self) -> dict[str, object]:
        """The contract's object, and a little more."""
        saved, basis = self.savings()
        return {
            "schema": SCHEMA,
            "answer": self.answer,
            "votes": {answer: _number(votes) for answer, votes in self.verdict.votes.items()},
            "rollouts": [rollout.as_json() for rollout in self.rollouts],
            "savings": (dict.fromkeys(Savings.__slots__) if saved is None else asdict(saved)) | {"basis": basis},
            "usage": self.usage.as_json(),
            "counts": self.counts,
            "wall_s": round(self.wall_s, 4),
            "policy": self.policy,
            "way": self.way,
            "interrupted": self.is_interrupted,
        }

    def savings(self) -> tuple[Savings | None, str]:
        """Savings against `full_lengths`, and what they rest on; None where an interruption ended the run."""
        if self.is_interrupted:
            return None, "unknown: the run was interrupted"
        lengths, is_known = self.full_lengths()
        basis = "known lengths" if is_known else "estimated: how long stopped rollouts would have become is not known"
        return self.savings_against(lengths), basis


def likely_lengths(generated: Sequence[int], has_ended: Sequence[bool]) -> list[int]:
    """How long rollouts become that have so many tokens, some of which came to their own end.

    One that has not is taken to become as long as the others are on average, and never shorter than it is; where none
    has, as long as the longest. The short ones end first, so this rather errs downwards.
    """
    ended = [tokens for tokens, is_whole in zip(generated, has_ended, strict=True) if is_whole]
    typical = round(sum(ended) / len(ended)) if ended else max(generated, default=0)
    return [tokens if is_whole else max(typical, tokens) for tokens, is_whole in zip(generated, has_ended, strict=True)]


def _number(votes: float) -> float | int:
    return int(votes) if votes == int(votes) else votes


def result_of(run: Run, policy: str, way: Way) -> Result:
    """Sum a run up."""
    lanes: list[Lane | None] = [*run.lanes, *[None] * (len(run.charges) - len(run.lanes))]
    rollouts = tuple(
        _rollout(at, charge.tokens, fate, answer, lane)
        for at, (charge, fate, answer, lane) in enumerate(zip(run.charges, run.fates, run.answers, lanes, strict=True))
    )
    generated = sum(rollout.generated for rollout in rollouts)
    is_exact = run.can.exact_counts and not any(lane.is_estimated for lane in run.lanes)
    usage = Usage(
        prompt_tokens=sum(lane.prompt_tokens for lane in run.lanes) + run.extra_prompt_tokens,
        cached_tokens=sum(lane.cached_tokens for lane in run.lanes),
        completion_tokens=generated + run.probe_tokens + run.warm_up_tokens,
        overshoot_tokens=generated - sum(rollout.tokens for rollout in rollouts),
        probe_tokens=run.probe_tokens,
        warm_up_tokens=run.warm_up_tokens,
    )
    return Result(
        verdict=run.verdict,
        rollouts=rollouts,
        usage=usage,
        policy=policy,
        way=way,
        counts="exact" if is_exact else "estimated",
        wall_s=run.wall_s,
        is_interrupted=run.is_interrupted,
        starts=tuple(charge.start for charge in run.charges),
    )


def _rollout(at: int, tokens: int, fate: Fate, answer: str | None, lane: Lane | None) -> RolloutResult:
    if lane is None:
        return RolloutResult(at, 0, fate, None, None, 0, None, "", 0, "")
    failure = None if lane.failure is None else str(lane.failure)
    reason = "abort" if lane.finish_reason is None and failure is None else lane.finish_reason
    # Where the engine's own counts are not used, both sums are of our estimates.
    generated = max(lane.generated, tokens) if lane.text.cut == "estimated" else lane.generated
    whole, decided = lane.text.prefix(at, lane.text.tokens), lane.text.prefix(at, tokens)
    said = lane.text.text if whole.answer == answer else decided.text
    return RolloutResult(at, tokens, fate, answer, reason, generated, failure, lane.text.text, decided.chars, said)
