"""The scripted engine: replays recorded rollouts as a live engine would stream them, faults included.

Nothing is computed, so every token, delay and fault is known beforehand: what is drawn comes from the seed, the
problem, the rollout and the attempt alone. A request is given rollout number `request.seed - base_seed` of the problem
whose text its prompt holds.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace

from fot.core.rollout import Rollout, estimated_tokens
from fot.engines.base import Capabilities, Chunk, Counters, FinishReason, Request, refuse_taken
from fot.engines.faults import Fault, RolloutKey, error_of
from fot.engines.tape import Tape
from fot.errors import EngineProtocolError, EngineRefused

__all__ = ["Pace", "Scripted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How tokens come, all of it drawn. The default takes no time at all, and comes in any order."""

    seed: int = 0
    chunk_tokens: int = 16
    """At most so many tokens in a chunk."""
    turns: int = 3
    """At most so many turns of the event loop between two chunks."""
    token_s: float = 0.0
    """Seconds for a token, on average over rollouts."""
    spread: float = 0.0
    """A rollout's own speed differs from the average by at most this fraction."""
    abort_tokens: int = 2
    """At most so many tokens are still generated after a stop."""
    stall_s: float = 0.0
    """How long a silence lasts until the engine gives the connection up."""


class _Run:
    """One request at work."""

    def __init__(self, request: Request, tape: Tape, start: int, fault: Fault | None, rng: Random) -> None:
        self.request = request
        self.tape = tape
        self.start = self.position = self.generated = start
        caps = [tape.tokens]
        if request.max_tokens is not None:
            caps.append(start + request.max_tokens)
        if request.sampling.max_tokens is not None:
            caps.append(request.sampling.max_tokens)
        self.limit = max(start, min(caps))
        self.fault = fault
        self.strikes_at = start + fault.after if fault is not None else None
        self.hold = request.hold_at
        self.rng = rng
        self.speed = 1.0
        self.burst = 1
        self.chars = 0
        self.is_admitted = self.is_aborted = self.is_lost = self.is_over = False
        self.wake = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Is there nothing to do until somebody says so?"""
        if self.is_aborted or self.is_lost:
            return False
        is_held = self.hold is not None and self.position >= self.start + self.hold and self.position < self.limit
        return is_held or not self.is_admitted

    @property
    def is_due(self) -> bool:
        """Does the planned fault strike now?"""
        return self.strikes_at is not None and self.generated >= self.strikes_at

    def reach(self, tokens: int) -> int:
        """Where the next `tokens` tokens lead."""
        ends = [self.position + tokens, self.limit]
        if self.hold is not None:
            ends.append(self.start + self.hold)
        if self.strikes_at is not None:
            ends.append(self.strikes_at)
        return max(self.position, min(ends))


class Scripted:
    """Replays `rollouts`. It is a `BarrierEngine`.

    `faults` lists for a rollout what its attempts meet, one after the other; attempts beyond the list go well.
    `is_split` tells reasoning and content apart; without `tells_ends` or `tells_counts` the engine keeps token ends or
    counts to itself, like servers that do. `generated` holds every token truly generated, by rollout, and survives
    restarts; `counters()` is what the engine itself would say.
    """

    name = "scripted"

    def __init__(
        self,
        rollouts: Iterable[Rollout],
        *,
        pace: Pace | None = None,
        faults: Mapping[RolloutKey, Sequence[Fault]] | None = None,
        base_seed: int = 42,
        is_split: bool = False,
        tells_ends: bool = True,
        tells_counts: bool = True,
        max_parallel: int | None = None,
    ) -> None:
        self._pace = pace or Pace()
        self._base_seed = base_seed
        self._tells_ends, self._tells_counts = tells_ends, tells_counts
        self._max_parallel = max_parallel
        self._tapes: dict[str, list[Tape]] = defaultdict(list)
        for rollout in sorted(rollouts, key=lambda r: r.rollout_id):
            tape = Tape(rollout, is_split=is_split, tells_ends=tells_ends)
            self._tapes[rollout.problem_id].append(tape)
        self._faults = {key: list(planned) for key, planned in (faults or {}).items()}
        self._attempts: Counter[RolloutKey] = Counter()
        self._runs: dict[str, _Run] = {}
        self._queue: list[_Run] = []
        self._primed: set[str] = set()
        self._refusals = 0
        self._total = 0
        self.generated: Counter[RolloutKey] = Counter()

    # --- the protocol

    async def capabilities(self) -> Capabilities:
        tapes = [tape for some in self._tapes.values() for tape in some]
        return Capabilities(
            exact_counts=self._tells_counts,
            token_ends=self._tells_ends,
            seeds=True,
            abort="explicit",
            resume=True,
            barrier=True,
            logprobs=bool(tapes) and all(tape.confidences for tape in tapes),
            max_parallel=self._max_parallel,
        )

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        run = self._admit(request)
        prompt_tokens, cached_tokens = self._usage(run)
        try:
            while not run.is_over:
                await self._wait(run)
                chunks = self._take(run)
                if prompt_tokens is not None:
                    chunks[0] = replace(chunks[0], prompt_tokens=prompt_tokens, cached_tokens=cached_tokens)
                    prompt_tokens = None
                for chunk in chunks:
                    yield chunk
        finally:
            self._leave(run)

    async def abort(self, request_id: str) -> None:
        run = self._runs.get(request_id)
        if run is not None:
            self._stop(run)
        await asyncio.sleep(0)

    def advance(self, request_id: str, hold_at: int | None) -> None:
        run = self._runs.get(request_id)
        if run is not None:
            run.hold = hold_at
            run.wake.set()

    async def counters(self) -> Counters:
        running = sum(run.is_admitted for run in self._runs.values())
        return Counters(generated_tokens=self._total, running=running, waiting=len(self._runs) - running)

    async def close(self) -> None:
        for run in list(self._runs.values()):
            self._stop(run)

    @property
    def running(self) -> list[str]:
        """The ids of what is underway or waits."""
        return list(self._runs)

    def prefix_in(self, prompt: str, seed: int | None) -> str:
        """What of a prompt, behind the problem, is a rollout's own beginning; empty when nothing is."""
        tape = self._tape(Request(id="", prompt=prompt, seed=seed))
        problem = tape.rollout.problem or ""
        rest = prompt[prompt.find(problem) + len(problem) :]
        return rest if tape.rollout.text.startswith(rest) else ""

    # --- how a request begins

    def _admit(self, request: Request) -> _Run:
        refuse_taken(request, self._runs)
        tape = self._tape(request)
        key = _key(tape)
        self._attempts[key] += 1
        fault = self._next_fault(key)
        if self._refusals > 0:
            self._refusals -= 1
            raise error_of(Fault("refused"), request)
        if fault is not None and fault.kind in ("refused", "busy", "broken"):
            raise error_of(fault, request)
        rng = Random(f"{self._pace.seed}/{key}/{self._attempts[key]}")  # noqa: S311  (chance, not secrecy)
        run = _Run(request, tape, self._position(request, tape), fault, rng)
        run.speed = 1.0 + self._pace.spread * rng.uniform(-1.0, 1.0)
        run.is_admitted = self._max_parallel is None or self._working() < self._max_parallel
        self._runs[request.id] = run
        if not run.is_admitted:
            self._queue.append(run)
        return run

    def _tape(self, request: Request) -> Tape:
        prompt = (
            request.prompt if request.prompt is not None else "\n".join(str(m["content"]) for m in request.messages)
        )
        tapes = self._problem(prompt, request)
        number = request.seed - self._base_seed if request.seed is not None else 0
        if not 0 <= number < len(tapes):
            raise EngineRefused(
                f"no rollout was recorded for seed {request.seed}",
                f"Seeds go from {self._base_seed} to {self._base_seed + len(tapes) - 1}.",
                status=400,
                request_id=request.id,
            )
        return tapes[number]

    def _problem(self, prompt: str, request: Request) -> list[Tape]:
        if len(self._tapes) == 1:
            return next(iter(self._tapes.values()))
        # Of problems that contain one another the longest is meant.
        matching = [(len(p), i) for i, t in self._tapes.items() if (p := t[0].rollout.problem or "") and p in prompt]
        if not matching:
            raise EngineRefused("the prompt holds no recorded problem", status=404, request_id=request.id)
        return self._tapes[max(matching)[1]]

    def _position(self, request: Request, tape: Tape) -> int:
        if not request.prefix and not request.prefix_tokens:
            return 0
        if not tape.rollout.text.startswith(request.prefix):
            raise EngineProtocolError(
                "the prefix is not what this rollout generated",
                "Resume with exactly the text that came, the closing tag of the reasoning included.",
                request_id=request.id,
            )
        if not self._tells_counts or not request.prefix_tokens:
            return tape.tokens_within(len(request.prefix))
        if tape.chars(request.prefix_tokens) != len(request.prefix):
            raise EngineProtocolError("prefix and prefix_tokens do not agree", request_id=request.id)
        return request.prefix_tokens

    def _usage(self, run: _Run) -> tuple[int | None, int]:
        """Prompt tokens, and how many of them were in the cache."""
        rollout = run.tape.rollout
        prompt = rollout.prompt_tokens or estimated_tokens(len(rollout.problem or ""))
        cached = prompt + run.start if rollout.problem_id in self._primed else 0
        self._primed.add(rollout.problem_id)
        return prompt + run.start, cached

    # --- how it goes on

    async def _wait(self, run: _Run) -> None:
        for _ in range(run.rng.randint(0, self._pace.turns)):
            await asyncio.sleep(0)
        while run.is_idle:
            run.wake.clear()
            await run.wake.wait()
        if run.is_due and run.fault is not None and run.fault.kind == "stalled":
            await self._stall(run)
        run.burst = run.rng.randint(1, self._pace.chunk_tokens)
        if self._pace.token_s and not run.is_aborted:
            await asyncio.sleep(run.burst * self._pace.token_s * run.speed)

    async def _stall(self, run: _Run) -> None:
        try:
            async with asyncio.timeout(self._pace.stall_s):
                while not run.is_aborted:
                    run.wake.clear()
                    await run.wake.wait()
        except TimeoutError:
            raise error_of(Fault("stalled"), run.request) from None

    def _take(self, run: _Run) -> list[Chunk]:
        """The chunks of the next few tokens; raises when a fault is due."""
        if run.is_lost:
            raise error_of(Fault("dropped"), run.request)
        if run.is_due and not run.is_aborted:
            self._strike(run)
        if not run.is_aborted:
            self._generate(run, run.reach(run.burst))
        finish: FinishReason | None = None
        if run.generated == run.limit and not run.is_due:
            finish = run.tape.finish_reason if run.limit == run.tape.tokens else "length"
        elif run.is_aborted:
            finish = "abort"
        chunks = list(run.tape.chunks(run.position, run.generated, finish, run.start))
        run.position = run.generated
        run.is_over = finish is not None
        return chunks if self._tells_counts else [self._uncounted(run, chunk) for chunk in chunks]

    def _uncounted(self, run: _Run, chunk: Chunk) -> Chunk:
        run.chars += len(chunk.text)
        return replace(chunk, tokens=estimated_tokens(run.chars), ends=(), is_estimated=True)

    def _generate(self, run: _Run, to: int) -> None:
        new = to - run.generated
        run.generated = to
        self._total += new
        self.generated[_key(run.tape)] += new

    def _stop(self, run: _Run) -> None:
        if run.is_aborted or run.is_over or run.is_lost:
            return
        run.is_aborted = True
        if run.is_admitted:
            self._generate(run, min(run.limit, run.generated + run.rng.randint(0, self._pace.abort_tokens)))
        run.wake.set()

    def _leave(self, run: _Run) -> None:
        if not run.is_over:
            self._stop(run)  # whoever leaves without a word still gets tokens generated for nothing
        self._runs.pop(run.request.id, None)
        if run in self._queue:
            self._queue.remove(run)
        while self._queue and self._max_parallel is not None and self._working() < self._max_parallel:
            following = self._queue.pop(0)
            following.is_admitted = True
            following.wake.set()

    def _working(self) -> int:
        return sum(run.is_admitted for run in self._runs.values())

    # --- how it goes wrong

    def _next_fault(self, key: RolloutKey) -> Fault | None:
        planned = self._faults.get(key)
        if not planned:
            return None
        return planned[0] if planned[0].kind == "fatal" else planned.pop(0)

    def _strike(self, run: _Run) -> None:
        fault = run.fault
        if fault is None:
            return
        if fault.kind in ("restart", "fatal"):
            run.is_lost = True
        elif run.strikes_at is not None and run.strikes_at < run.limit:
            # What was lost on the way had been generated all the same.
            self._generate(run, min(run.limit, run.generated + run.rng.randint(0, self._pace.chunk_tokens)))
        if fault.kind == "restart":
            self._restart(run)
        raise error_of(fault, run.request)

    def _restart(self, cause: _Run) -> None:
        for run in self._runs.values():
            run.is_lost, run.is_admitted = True, False
            run.wake.set()
        self._queue.clear()
        self._primed.clear()
        self._total = 0
        self._refusals = cause.rng.randint(0, 3)


def _key(tape: Tape) -> RolloutKey:
    return (tape.rollout.problem_id, tape.rollout.rollout_id)
