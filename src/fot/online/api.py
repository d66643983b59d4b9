r"""One problem from Python.

    result = fot.solve_sync("What is 6 times 7?", engine="http://localhost:8000/v1", k=8)
    result.answer, result.votes, result.usage.completion_tokens

    async for event in fot.stream("What is 6 times 7?"):      # the last one is the `Result`
        ...

`engine` is a URL, a name (`embedded`: a model in this process) or an engine of your own, which then stays open.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TypedDict, Unpack

from fot.core.policy import Need
from fot.core.signals import mix
from fot.engines import LOCAL, connect
from fot.engines.base import Engine, Sampling
from fot.errors import FotError
from fot.methods import Context, Spec, parse
from fot.online.controller import Controller, Plan
from fot.online.events import Event
from fot.online.journal import Journal, row_of
from fot.online.lane import Lane, Limits, Prompt, Way
from fot.online.result import Result, result_of

__all__ = [
    "INSTRUCTIONS",
    "Options",
    "Session",
    "default_policy",
    "is_reasoner",
    "model_name",
    "opened",
    "solve",
    "solve_sync",
    "stream",
]

Messages = Sequence[Mapping[str, object]]

INSTRUCTIONS = {
    "boxed": "Reason step by step, and put your final answer in \\boxed{}.",
    "paper": "Reason step by step, and put your final answer in \\boxed{}.",
    "choice": "Reason step by step, and end with `Answer: X`, where X is the letter of your choice.",
    "code": "Reason step by step, and end with the whole program in one fenced code block.",
}
"""What a model is asked for, so that its answer can be found; added to a problem that is given as text."""

LOGPROBS = 20


class Options(TypedDict, total=False):
    """What `solve` takes. Everything has a default."""

    engine: str | Engine
    """A URL, a name, or an engine. Default: `embedded`."""
    policy: str | Spec
    """The method. Default: `fot`, whose checkpoints are the paper's unless the model is the one in the box."""
    k: int
    commit: str
    """How an answer is found: boxed, choice, code or paper."""
    way: Way
    """How checkpoints are met: stream, pause or barrier."""
    seed: int
    """Of the first rollout; the next ones count up."""
    sampling: Sampling
    instruction: str | None
    """Added below the problem; None: what `commit` needs, but nothing for the model in the box."""
    model: str
    api_key: str
    limits: Limits
    plan: Plan
    """The finer settings; what is given here beside it wins."""
    record: str | Path | Journal
    """A file to which every rollout is added as a row, for replay."""
    about: Mapping[str, object]
    """Names for the rows of `record`: model, benchmark, problem_id, gold."""


class Session:
    """One problem on one engine. Iterate over it for its events; `result` is there when they are over."""

    def __init__(self, engine: Engine, problem: str | Messages, options: Options) -> None:
        self.engine = engine
        self.problem = problem
        self.spec = _spec(engine, options)
        self.plan = _plan(self.spec, options)
        self.record = options.get("record")
        self.result: Result | None = None
        self._about = options.get("about", {})
        self._prompt = _prompt(engine, problem, self.plan.commit, self.spec, options)
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        key = str(self._about.get("problem_id", problem))
        policy = self.spec.build(Context(k=self.plan.k, problem=key, seed=mix(self.plan.seed, 0)))
        self._controller = Controller(engine, policy, self._prompt, self.plan, self._events.put_nowait)

    @property
    def lanes(self) -> Sequence[Lane]:
        """Every rollout that was launched, as it stands."""
        return self._controller.lanes

    def interrupt(self) -> None:
        """End here, with the vote so far."""
        self._controller.interrupt()

    async def events(self) -> AsyncIterator[Event]:
        """Run; whoever stops listening stops the run."""
        task = asyncio.ensure_future(self._run())
        task.add_done_callback(lambda _: self._events.put_nowait(None))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await task
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def run(self, on_event: Callable[[Event], None] | None = None) -> Result:
        """Run to the result."""
        async for event in self.events():
            if on_event is not None:
                on_event(event)
        if self.result is None:
            raise FotError("the run ended without a result", "This is a bug; please report it.")
        return self.result

    async def _run(self) -> None:
        run = await self._controller.run()
        self.result = result_of(run, self.spec.text, self.plan.way)
        if isinstance(self.record, Journal):
            await self._write(self.record)
        elif self.record is not None:
            with Journal(Path(self.record)) as journal:
                await self._write(journal)

    async def _write(self, journal: Journal) -> None:
        question = self.problem if isinstance(self.problem, str) else str(self.problem[-1].get("content", ""))
        about = {
            "model": await model_name(self.engine),
            "benchmark": "solve",
            "problem_id": sha256(question.encode()).hexdigest()[:12],
            "problem": question,
        } | dict(self._about)
        for lane in self._controller.lanes:
            journal.add(row_of(lane, about))


@asynccontextmanager
async def opened(options: Options) -> AsyncIterator[Engine]:
    """The engine that the options name; closed afterwards unless it was given as an object."""
    given = options.get("engine", "embedded")
    if not isinstance(given, str):
        yield given
        return
    wanted: dict[str, object] = {"model": options.get("model"), "api_key": options.get("api_key")}
    wanted = {key: value for key, value in wanted.items() if value}
    if given in LOCAL:
        wanted["parallel"] = max(1, options.get("k", 32))  # a k that cannot be is told by the plan
    engine = await connect(given, **wanted)
    try:
        yield engine
    finally:
        await engine.close()


async def solve(
    problem: str | Messages, *, on_event: Callable[[Event], None] | None = None, **options: Unpack[Options]
) -> Result:
    """Let rollouts work on a problem, and vote.

    Raises `EngineError` when not a single rollout came through; rollouts that were lost on the way are told in
    `Result.failures`, and the vote is of the others.
    """
    async with opened(options) as engine:
        return await Session(engine, problem, options).run(on_event)


def solve_sync(problem: str | Messages, **options: Unpack[Options]) -> Result:
    """`solve`, for those who do not await."""
    return asyncio.run(solve(problem, **options))


async def stream(problem: str | Messages, **options: Unpack[Options]) -> AsyncIterator[Event | Result]:
    """What happens, as it happens; the last item is the `Result`. Leaving the loop stops the run."""
    async with opened(options) as engine:
        session = Session(engine, problem, options)
        async for event in session.events():
            yield event
        if session.result is not None:
            yield session.result


def is_reasoner(engine: Engine) -> bool:
    """Is it the model in the box?"""
    return bool(getattr(engine, "is_reasoner", False))


async def model_name(engine: Engine) -> str:
    """What records call the engine's model."""
    model = getattr(engine, "model", None)
    return str(await model()) if callable(model) else engine.name


def default_policy(engine: Engine) -> str:
    """The funnel; for the model in the box with checkpoints that fit its lengths, the paper's being far too late."""
    if not is_reasoner(engine):
        return "fot"
    from fot.reasoner import CHECKPOINTS

    return f"fot:checkpoints={'/'.join(map(str, CHECKPOINTS))}"


def _spec(engine: Engine, options: Options) -> Spec:
    given = options.get("policy")
    if isinstance(given, Spec):
        return given
    if given is not None:
        return parse(given)
    return parse(default_policy(engine))


def _plan(spec: Spec, options: Options) -> Plan:
    plan = options.get("plan", Plan())
    return replace(
        plan,
        kernel=spec.kernel,
        needs=spec.needs,
        k=options.get("k", plan.k),
        commit=options.get("commit", plan.commit),
        way=options.get("way", plan.way),
        seed=options.get("seed", plan.seed),
        limits=options.get("limits", plan.limits),
    )


def _prompt(engine: Engine, problem: str | Messages, commit: str, spec: Spec, options: Options) -> Prompt:
    sampling = options.get("sampling", Sampling())
    logprobs = LOGPROBS if Need.LOGPROBS in spec.needs else 0
    if not isinstance(problem, str):
        return Prompt(messages=tuple(problem), sampling=sampling, logprobs=logprobs)
    instruction = options.get("instruction")
    if instruction is None:
        instruction = "" if is_reasoner(engine) else INSTRUCTIONS.get(commit, "")
    content = f"{problem}\n\n{instruction}" if instruction else problem
    return Prompt(messages=({"role": "user", "content": content},), sampling=sampling, logprobs=logprobs)
