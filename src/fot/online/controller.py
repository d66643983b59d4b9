"""The controller: one policy, one problem, one running engine."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fot.core.clock import Clock
from fot.core.commit import track
from fot.core.ledger import Charge
from fot.core.markers import PAPER_KERNEL, Kernel
from fot.core.policy import Fate, Need, Policy, Prefix
from fot.core.vote import Verdict, plurality
from fot.engines.base import Capabilities, Engine
from fot.errors import ConfigError, EngineError
from fot.online.events import (
    Banked,
    Cancelled,
    Event,
    Failed,
    Finished,
    Progress,
    Pruned,
    Retried,
    Started,
    Voted,
)
from fot.online.lane import Lane, Limits, Prompt, Terms, Way, closing, retry_wait
from fot.online.text import LiveText

__all__ = ["Controller", "Plan", "Run"]

Prime = Literal["first", "warm-up", "none"]

PROBE_SUFFIX = "\n\n**Final Answer**\n\n\\[ \\boxed{"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How rollouts are run; what is decided about them is the policy's."""

    k: int = 32
    """At most so many rollouts."""
    commit: str = "boxed"
    """The commitment detector."""
    kernel: Kernel = PAPER_KERNEL
    needs: frozenset[Need] = frozenset()
    """What the policy needs."""
    way: Way = "stream"
    """How checkpoints are met. `stream`: rollouts run on until the decision; `pause`: each request ends at the next
    checkpoint, and the rollout is resumed from its prefix; `barrier`: the engine holds it there."""
    seed: int = 42
    """Of rollout 0; every further one has the next."""
    prime: Prime = "first"
    """The others start when the first rollout's first chunk has come, after a request of one token, or at once."""
    limits: Limits = field(default_factory=Limits)
    progress_s: float = 0.1
    """Time between two rounds of `Progress`; 0 tells none."""
    probe_suffix: str = PROBE_SUFFIX

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"k is {self.k}", "At least one rollout is needed.")


@dataclass(frozen=True, slots=True)
class Run:
    """What came of it, by rollout; those that were never launched have no lane."""

    verdict: Verdict
    charges: tuple[Charge, ...]
    fates: tuple[Fate, ...]
    answers: tuple[str | None, ...]
    """What each rollout committed to in the tokens that were charged."""
    lanes: tuple[Lane, ...]
    can: Capabilities
    is_interrupted: bool
    wall_s: float
    probe_tokens: int = 0
    extra_prompt_tokens: int = 0
    """Of the warm-up and of probes."""
    warm_up_tokens: int = 0


class Controller:
    """Runs a policy once. `emit` is called with every event, in the task of whoever caused it."""

    def __init__(
        self, engine: Engine, policy: Policy, prompt: Prompt, plan: Plan, emit: Callable[[Event], None]
    ) -> None:
        self._engine = engine
        self._policy = policy
        self._prompt = prompt
        self._plan = plan
        self._emit = emit
        self._name = f"fot-{secrets.token_hex(4)}-"
        self._clock = Clock(policy, plan.k, self, self._make_text)
        self._lanes: list[Lane] = []
        self._running: set[asyncio.Task[None]] = set()
        self._stopping: set[asyncio.Task[None]] = set()
        self._is_primed = plan.prime == "none"
        self._is_interrupted = False
        self._votes: dict[str, float] = {}
        self._answers: dict[int, str | None] = {}
        self._probe_tokens = self._warm_up_tokens = self._extra_prompt_tokens = 0

    async def run(self) -> Run:
        """Run to the verdict. Nothing is left running on the engine when this returns, raises or is cancelled.

        Raises `ConfigError` when the engine cannot give what the policy needs, and what the engine raised when not a
        single rollout came through.
        """
        self._began = time.perf_counter()
        self._can = await self._engine.capabilities()
        _check(self._plan, self._can, self._engine.name)
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._terms = Terms(self._engine, self._can, self._prompt, self._plan.way, self._plan.limits)
        ticker = asyncio.ensure_future(self._tick()) if self._plan.progress_s else None
        try:
            self._clock.begin()
            self._see_whether_it_is_over()
            await self._over
        finally:
            if ticker is not None:
                ticker.cancel()
            await self._close()
        return self._outcome()

    @property
    def lanes(self) -> Sequence[Lane]:
        """Every rollout that was launched."""
        return self._lanes

    def interrupt(self) -> None:
        """End here: the vote is what it is so far."""
        self._is_interrupted = True
        self._clock.interrupt()
        self._see_whether_it_is_over()

    # --- what the clock wants (clock.Driver)

    def launch(self, rollouts: Sequence[int]) -> None:
        fresh = []
        for rollout in rollouts:
            name, seed = f"{self._name}r{rollout:05d}.", self._plan.seed + rollout
            fresh.append(Lane(rollout, name, seed, self._clock.entrants[rollout].text, self._terms, self))
        self._lanes += fresh
        self._spawn(self._start(fresh))

    def stop(self, rollout: int) -> None:
        lane = self._lanes[rollout]
        if not lane.is_stopped:
            lane.is_stopped = True
            task = asyncio.ensure_future(lane.stop())
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    def decide(self, rollout: int, fate: Fate, prefix: Prefix) -> None:
        self._answers[rollout] = prefix.answer
        if fate is Fate.BANKED:
            self._emit(Banked(rollout, prefix.tokens, prefix.density, prefix.answer))
        elif fate is Fate.PRUNED:
            self._emit(Pruned(rollout, prefix.tokens, prefix.density))
        asyncio.get_running_loop().call_soon(self._see_whether_it_is_over)

    def release(self, rollout: int) -> None:
        self._lanes[rollout].release()

    def probe(self, number: int, tokens: int, prefix: Prefix) -> None:
        self._spawn(self._ask_aside(number, tokens, prefix.rollout, prefix.text, prefix.tokens))

    # --- what the lanes tell (lane.Track)

    def grew(self, lane: Lane) -> None:
        self._clock.grew(lane.rollout)
        if self._clock.is_concluded:
            self._see_whether_it_is_over()

    def held(self, lane: Lane) -> None:
        self._clock.held(lane.rollout)
        self._see_whether_it_is_over()

    def ended(self, lane: Lane) -> None:
        text = lane.text
        answer = text.prefix(lane.rollout, text.tokens).answer
        self._emit(Finished(lane.rollout, text.tokens, answer, lane.finish_reason or ""))
        self._clock.ended(lane.rollout)
        self._see_whether_it_is_over()

    def failed(self, lane: Lane) -> None:
        self._emit(Failed(lane.rollout, lane.text.tokens, str(lane.failure)))
        self._clock.failed(lane.rollout)
        self._see_whether_it_is_over()

    def retried(self, lane: Lane, reason: str, wait_s: float) -> None:
        self._emit(Retried(lane.rollout, lane.text.tokens, reason, wait_s))

    def target(self, lane: Lane) -> int | None:
        return self._clock.entrants[lane.rollout].target

    # --- tasks

    def _make_text(self) -> LiveText:
        problem = self._prompt.text or "\n".join(str(message.get("content")) for message in self._prompt.messages)
        return LiveText(
            self._plan.kernel,
            track(self._plan.commit, problem),
            is_counted=self._can.exact_counts,
            is_followed=Need.COMMITMENTS in self._plan.needs,
        )

    def _spawn(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._running.add(task)
        task.add_done_callback(self._reap)

    def _reap(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None and not self._over.done():
            self._over.set_exception(task.exception() or RuntimeError())

    async def _start(self, lanes: Sequence[Lane]) -> None:
        """Start rollouts; of the very first ones, one goes ahead so that the others find its prompt in the cache."""
        waiting = list(lanes)
        if not self._is_primed and len(waiting) > 1:
            self._is_primed = True
            if self._plan.prime == "warm-up":
                await self._warm_up()
            else:
                first = waiting.pop(0)
                self._go(first)
                await first.has_begun.wait()
        for lane in waiting:
            self._go(lane)

    def _go(self, lane: Lane) -> None:
        if not lane.is_stopped:
            self._emit(Started(lane.rollout, lane.seed))
            self._spawn(lane.run())

    async def _warm_up(self) -> None:
        """One token, so that the prompt is in the engine's cache; that it fails is for the rollouts to find out."""
        request = self._prompt.request(f"{self._name}warm-up.", seed=self._plan.seed, max_tokens=1)
        try:
            _, self._warm_up_tokens = await self._read_aside(request)
        except EngineError:
            return

    async def _ask_aside(self, number: int, tokens: int, rollout: int, text: str, prefix_tokens: int) -> None:
        """One probe: the rollout's prefix and a suffix that asks for its answer."""
        answer, tries, limits = "", 0, self._plan.limits
        while tries <= limits.retries and not self._lanes[rollout].is_stopped:
            request = self._prompt.request(
                f"{self._name}p{number:05d}t{tries:03d}.",
                seed=self._plan.seed + rollout,
                max_tokens=tokens,
                prefix=text + self._plan.probe_suffix,
                prefix_tokens=prefix_tokens,
            )
            try:
                answer, used = await self._read_aside(request)
                self._probe_tokens += used
                break
            except EngineError as error:
                tries += 1
                if not error.retryable:
                    break
                await asyncio.sleep(retry_wait(error, tries, limits))
        self._clock.probed(number, answer)
        self._see_whether_it_is_over()

    async def _read_aside(self, request: object) -> tuple[str, int]:
        pieces, tokens, prompt = [], 0, 0
        stream = self._engine.stream(request)  # type: ignore[arg-type]
        try:
            async with asyncio.timeout(self._plan.limits.queue_s):
                async for chunk in stream:
                    pieces.append(chunk.text)
                    tokens, prompt = chunk.tokens, chunk.prompt_tokens or prompt
        finally:
            await closing(stream)
        self._extra_prompt_tokens += prompt
        return "".join(pieces), tokens

    async def _tick(self) -> None:
        told: dict[int, int] = {}
        while True:
            await asyncio.sleep(self._plan.progress_s)
            for lane, entrant in zip(self._lanes, self._clock.entrants, strict=True):
                text = entrant.text
                if told.get(lane.rollout, 0) != text.tokens and not lane.is_stopped:
                    told[lane.rollout] = text.tokens
                    seen = text.prefix(lane.rollout, text.tokens)
                    self._emit(Progress(lane.rollout, text.tokens, seen.density, seen.answer))

    # --- the end

    def _see_whether_it_is_over(self) -> None:
        if self._over.done():
            return
        verdict = plurality(self._policy.ballots())
        if verdict.votes != self._votes:
            self._votes = dict(verdict.votes)
            self._emit(Voted(verdict.answer, verdict.votes, is_final=False))
        if self._clock.is_over:
            self._over.set_result(None)

    async def _close(self) -> None:
        """Stop all that still runs, and wait until the engine has let go of it."""
        for lane in self._lanes:
            self.stop(lane.rollout)
        if self._stopping:
            await asyncio.wait(set(self._stopping))
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(set(self._running))

    def _outcome(self) -> Run:
        before = {rollout for rollout, entrant in enumerate(self._clock.entrants) if entrant.fate is None}
        settled = self._clock.settle()
        for rollout in sorted(before):
            entrant = self._clock.entrants[rollout]
            self._answers[rollout] = entrant.text.prefix(rollout, entrant.tokens).answer
            if entrant.fate is Fate.CANCELLED:
                self._emit(Cancelled(rollout, entrant.tokens))
        failures = [lane.failure for lane in self._lanes if lane.failure is not None]
        if failures and len(failures) == len(self._lanes) and not self._is_interrupted:
            raise failures[0]
        verdict = plurality(self._policy.ballots())
        self._emit(Voted(verdict.answer, verdict.votes, is_final=True))
        return Run(
            verdict=verdict,
            charges=tuple(charge for charge, _ in settled),
            fates=tuple(fate for _, fate in settled),
            answers=tuple(self._answers.get(rollout) for rollout in range(len(settled))),
            lanes=tuple(self._lanes),
            can=self._can,
            is_interrupted=self._is_interrupted,
            wall_s=time.perf_counter() - self._began,
            probe_tokens=self._probe_tokens,
            extra_prompt_tokens=self._extra_prompt_tokens,
            warm_up_tokens=self._warm_up_tokens,
        )


_IMPOSSIBLE = {
    Need.FUTURE: "the final length of rollouts, which only a replay knows",
    Need.DATASET: "all problems at once, which only a replay has",
    Need.EMBEDDINGS: "embeddings, which no engine gives",
}


def _check(plan: Plan, can: Capabilities, name: str) -> None:
    """Refuse what this engine cannot give."""
    for need, what in _IMPOSSIBLE.items():
        if need in plan.needs:
            raise ConfigError(f"this method needs {what}", "Use another method, or `fot simulate` on a pool.")
    lacks = {
        "token log-probabilities": Need.LOGPROBS in plan.needs and not can.logprobs,
        "probes, which continue a given prefix": Need.PROBES in plan.needs and not can.resume,
    }
    for what, is_lacking in lacks.items():
        if is_lacking:
            raise ConfigError(f"this method needs {what}; engine '{name}' cannot give them", "Use another engine.")
    if plan.way == "pause" and not can.resume:
        raise ConfigError(f"engine '{name}' cannot resume from a prefix, as `pause` must", "Use the way `stream`.")
    if plan.way == "barrier" and can.max_parallel is not None and can.max_parallel < plan.k:
        raise ConfigError(
            f"engine '{name}' runs {can.max_parallel} rollouts at once: {plan.k} would wait for each other for ever",
            "Use the way `pause` or `stream`, or give the engine more room.",
        )
    if plan.way == "barrier" and not can.barrier:
        raise ConfigError(f"engine '{name}' cannot hold rollouts", "Use the way `pause` or `stream`.")
