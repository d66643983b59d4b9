"""What all requests share: upstreams, queue, board, allowances; and each one's job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator

from starlette.applications import Starlette

from fot.online.result import Result
from fot.serve.admission import Admission, Buckets, Refused
from fot.serve.gauges import Gauges
from fot.serve.guard import Keys
from fot.serve.live import Board, LaneText, RunView
from fot.serve.problems import Interrupted, Problem
from fot.serve.protocol import Asked, BadRequest
from fot.serve.replies import Writer, summary
from fot.serve.settings import Settings
from fot.serve.upstreams import Upstream, Upstreams

__all__ = ["Desk", "Job"]

log = logging.getLogger("fot.serve")
_LEAVE_S = 20.0


class Desk:
    """Begins with `lifespan`; `drain` ends it in good order."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keys = Keys(settings.api_key)
        self.upstreams = Upstreams(settings.upstream, settings.upstream_key, settings.slots)
        self.admission = Admission(self.upstreams, settings.queue)
        self.board = Board(settings.keep_runs, settings.keep_text_bytes)
        self.gauges = Gauges(lambda: self.admission.running, lambda: self.admission.waiting)
        self.jobs: set[Job] = set()
        self.finished: list[str] = []
        """Runs that came to their own end after the server was told to stop."""
        self.cancelled: list[str] = []
        self._requests = Buckets(settings.requests_per_minute)
        self._tokens = Buckets(settings.tokens_per_minute)
        self._wrong = Buckets(30.0)
        self._draining: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Look after the upstreams and the board while the server runs."""
        await self.upstreams.check()
        tasks = [
            asyncio.ensure_future(self.upstreams.watch(self.settings.health_s, self.admission.dispatch)),
            asyncio.ensure_future(self.board.tick()),
        ]
        try:
            yield
        finally:
            self.drain()
            for job in list(self.jobs):
                await job.leave("shutdown")
            for task in (*tasks, *filter(None, [self._draining])):
                task.cancel()
                await asyncio.wait({task})
            await self.upstreams.close()
            if self.finished or self.cancelled:
                log.info("stopped; finished: %s; cut short: %s", _names(self.finished), _names(self.cancelled))

    def drain(self) -> None:
        """Take nothing new; let what runs go on for a while, then end it with the vote as it stands."""
        if self._draining is not None:
            return
        log.info("stopping: %d running, %d waiting", self.admission.running, self.admission.waiting)
        self.admission.close()
        self.board.close()
        self._draining = asyncio.ensure_future(self._end_all())

    @property
    def is_draining(self) -> bool:
        """Has the server been told to stop?"""
        return self._draining is not None

    async def _end_all(self) -> None:
        await asyncio.sleep(self.settings.drain_s)
        for job in list(self.jobs):
            job.interrupt("shutdown")

    def allow(self, client: str) -> None:
        """Count one request of a client; raises `Refused` when it has asked for too much."""
        spent, asked = self._tokens.of(client), self._requests.of(client)
        for bucket, amount, what in ((spent, 0.0, "tokens"), (asked, 1.0, "requests")):
            if bucket is not None and (wait_s := bucket.wait_s(amount)):
                raise Refused(f"the allowance of {what} is used up", 429, wait_s)
        if asked is not None:
            asked.spend(1.0)

    def spend(self, client: str, tokens: int) -> None:
        """Tokens that were generated for a client."""
        bucket = self._tokens.of(client)
        if bucket is not None:
            bucket.spend(tokens)

    def try_key(self, address: str, given: str) -> str | None:
        """Who a key stands for, asked from a login form; None when it is wrong, or too many were."""
        bucket = self._wrong.of(address)
        if bucket is None or bucket.wait_s(1.0):
            return None
        client = self.keys.client_of(given)
        if client is None:
            bucket.spend(1.0)
        return client

    def begin(self, asked: Asked, client: str) -> Job:
        """Begin to work on a problem; raises `BadRequest` for what this server cannot run at all."""
        if self.settings.slots is not None and asked.k > self.settings.slots:
            raise BadRequest(f"fot.k is {asked.k}, but this server runs {self.settings.slots} rollouts at once", "fot")
        return Job(self, asked, client)


class Job:
    """One problem of one client, from the queue to the result: `work` is the task that gives it."""

    def __init__(self, desk: Desk, asked: Asked, client: str) -> None:
        self.id = secrets.token_hex(8)
        self.asked = asked
        self.view = RunView(self.id, asked, has_texts=desk.settings.view == "full")
        self._desk = desk
        self._client = client
        self.problem = self._new_problem()
        self.writer = Writer(self.id, asked.model or "", int(time.time()), "", desk.settings.reasoning_field)
        self.headers = {"x-fot-mode": "vote", "x-fot-run": self.id}
        self.work: asyncio.Task[Result] = asyncio.ensure_future(self._run())
        desk.board.add(self.view)
        desk.jobs.add(self)
        self.work.add_done_callback(self._done)

    def interrupt(self, why: str) -> None:
        """End it with the vote as it stands."""
        self.view.why = why
        self.problem.interrupt(why)

    async def leave(self, why: str = "client") -> None:
        """Nobody waits for the result any more; returns when nothing of it runs upstream."""
        if self.view.state == "queued":
            self.problem.why = why
            self.view.why = why
            self.work.cancel()
        else:
            self.interrupt(why)
        await asyncio.wait({self.work}, timeout=_LEAVE_S)
        if not self.work.done():
            self.work.cancel()
            await asyncio.wait({self.work})

    def _new_problem(self) -> Problem:
        return Problem(self.asked, self.view, self._desk.settings.retries)

    async def _run(self) -> Result:
        """Run on one upstream; on another one when that is lost before it has generated anything."""
        due = asyncio.get_running_loop().time() + self.asked.deadline_s
        for _ in self._desk.upstreams.all[1:]:
            try:
                return await self._run_on_one(due)
            except Interrupted as end:
                if end.why != "lost" or self.view.why or self.view.state != "running":
                    raise
            log.info("run %s begins anew on another upstream", self.id)
            self.view.wait_again()
            self.problem = self._new_problem()
        return await self._run_on_one(due)

    def _doubt(self, upstream: Upstream) -> None:
        """A rollout had trouble: see whether the upstream is gone, and whether the run can begin anew elsewhere."""
        problem, serving = self.problem, self._desk.upstreams.serving(self.asked.model)

        def see(looked: asyncio.Task[None]) -> None:
            is_gone = not (looked.cancelled() or upstream.is_up)
            if is_gone and any(other.is_up for other in serving) and not problem.generated:
                problem.interrupt("lost")

        upstream.doubt().add_done_callback(see)

    async def _run_on_one(self, due: float) -> Result:
        asked, desk = self.asked, self._desk
        try:
            async with contextlib.AsyncExitStack() as held:
                async with asyncio.timeout_at(due):
                    upstream = await held.enter_async_context(
                        desk.admission.admitted(self._client, asked.k, asked.model)
                    )
                engine = upstream.engine
                if engine is None:
                    raise Refused("no upstream answers", 503, 5.0)
                self.writer.engine = engine.name
                timer = asyncio.get_running_loop().call_at(due, self.interrupt, "deadline")
                try:
                    result = await self.problem.run(engine, lambda: self._doubt(upstream))
                finally:
                    timer.cancel()
        except TimeoutError:
            raise Interrupted("deadline") from None
        if self.problem.why == "lost" and not self.problem.generated:
            raise Interrupted("lost")
        if result.is_interrupted and not result.votes:
            self._count(result)
            raise Interrupted(self.problem.why or "deadline")
        self._count(result)
        return result

    def _count(self, result: Result) -> None:
        desk = self._desk
        desk.gauges.ran(result)
        desk.spend(self._client, result.usage.completion_tokens)
        self.view.end(
            "interrupted" if result.is_interrupted else "done",
            result,
            summary(self.id, result),
        )
        if desk.settings.view == "full":
            desk.board.keep_texts(
                self.view, [LaneText(rollout.text, rollout.decided_chars) for rollout in result.rollouts]
            )
        else:
            self.view.read_text = None
        if desk.settings.log_texts:
            log.info("run %s: %r -> %r", self.id, self.asked.question, result.text)

    def _done(self, work: asyncio.Task[Result]) -> None:
        desk = self._desk
        desk.jobs.discard(self)
        self.view.generated = self.problem.generated
        error = None if work.cancelled() else work.exception()
        if isinstance(error, Refused):
            desk.board.remove(self.view)  # it never began: the board is for what did
        elif self.view.state in ("queued", "running"):
            desk.spend(self._client, self.problem.generated)
            self.view.end("failed" if self.problem.why is None else "interrupted")
            self.view.read_text = None
        if desk.is_draining:
            is_cut = work.cancelled() or error is not None or self.problem.why
            (desk.cancelled if is_cut else desk.finished).append(self.id)
        state = "refused" if isinstance(error, Refused) else self.view.state
        why = f" ({self.problem.why})" if self.problem.why else ""
        log.info("run %s: %s%s, %d rollouts, %d tokens", self.id, state, why, self.asked.k, self.view.generated)


def _names(runs: list[str]) -> str:
    return ", ".join(runs) or "none"
