"""Answers that come bit by bit, to clients that may leave or stop reading at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import cast

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fot.errors import EngineError, FotError
from fot.serve.desk import Desk, Job
from fot.serve.passing import Head, Passage
from fot.serve.problems import Interrupted
from fot.serve.protocol import Pass
from fot.serve.replies import DONE, comment, failure, frame

__all__ = ["EventResponse", "PassedResponse", "VotedResponse", "disconnected"]

PATIENCE_S = 5.0
"""The status of a stream is settled when the first tokens have come, or after this time."""
BEAT_S = 0.4
QUIET_BEATS = 25


class _Gone(Exception):
    """The client has left, or reads too slowly."""


@asynccontextmanager
async def disconnected(receive: Receive) -> AsyncIterator[asyncio.Task[None]]:
    """A task that is done when the client has left."""

    async def listen() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task = asyncio.ensure_future(listen())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


class _Stream(Response):
    """Sends what `pieces` yields, each within the time that a slow client is given."""

    def __init__(self, status: int, headers: Mapping[str, str], media_type: str | None, send_s: float) -> None:
        self.status_code = status
        self.background = None
        self.body = b""
        self.media_type = media_type
        self.init_headers(headers)
        self.raw_headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        self._send_s = send_s

    def pieces(self, leaving: asyncio.Task[None]) -> AsyncIterator[bytes]:
        """What there is to send; `leaving` is done once nobody reads any more."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with disconnected(receive) as leaving:
            try:
                await self._put(
                    send,
                    leaving,
                    {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers},
                )
                async with aclosing(self.pieces(leaving)) as pieces:  # type: ignore[type-var]
                    async for piece in pieces:
                        await self._put(send, leaving, {"type": "http.response.body", "body": piece, "more_body": True})
                await self._put(send, leaving, {"type": "http.response.body", "body": b"", "more_body": False})
            except _Gone:
                pass
            finally:
                await self.end()

    async def _put(self, send: Send, leaving: asyncio.Task[None], message: dict[str, object]) -> None:
        try:
            async with asyncio.timeout(self._send_s):
                await send(message)
        except (TimeoutError, OSError):
            raise _Gone from None
        if leaving.done():
            raise _Gone

    async def end(self) -> None:
        """Let go of everything, whether or not all was sent."""


class EventResponse(_Stream):
    """The board's events."""

    def __init__(self, events: AsyncIterator[bytes], send_s: float) -> None:
        super().__init__(200, {"x-accel-buffering": "no"}, "text/event-stream", send_s)
        self._events = events

    async def pieces(self, leaving: asyncio.Task[None]) -> AsyncIterator[bytes]:
        following = asyncio.ensure_future(anext(self._events, None))
        try:
            while True:
                await asyncio.wait({following, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done() or (piece := following.result()) is None:
                    return
                yield piece
                following = asyncio.ensure_future(anext(self._events, None))
        finally:
            following.cancel()
            await asyncio.wait({following})

    async def end(self) -> None:
        await self._events.aclose()  # type: ignore[attr-defined]


class VotedResponse(_Stream):
    """A vote as a stream: how the funnel narrows, then the answer."""

    def __init__(self, desk: Desk, job: Job) -> None:
        headers = {**job.headers, "x-accel-buffering": "no"}
        super().__init__(200, headers, "text/event-stream", desk.settings.send_s)
        self._desk = desk
        self._job = job

    @classmethod
    async def begin(cls, desk: Desk, job: Job, receive: Receive) -> Response:
        """Wait until it is known that there will be something to tell; an error before that has its own status."""
        begun = asyncio.ensure_future(job.view.has_begun.wait())
        try:
            async with disconnected(receive) as leaving:
                tasks = {job.work, begun, leaving}
                await asyncio.wait(tasks, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
                if leaving.done() and not job.work.done():
                    await job.leave()
                    return Response(status_code=499)
        finally:
            begun.cancel()
        if job.work.done():
            job.work.result()
        return cls(desk, job)

    async def pieces(self, leaving: asyncio.Task[None]) -> AsyncIterator[bytes]:
        job = self._job
        yield job.writer.opening()
        async with aclosing(self._progress(leaving)) as progress:  # type: ignore[type-var]
            async for piece in progress:
                yield piece
        if not job.work.done():
            return
        try:
            result = job.work.result()
        except (FotError, asyncio.CancelledError) as error:
            known = error if isinstance(error, FotError) else FotError("the run was cancelled")
            yield frame(failure(known, self._desk.upstreams.hidden).body)
            return
        for piece in job.writer.answer(result, job.asked.commit):
            yield piece
        if job.asked.wants_usage:
            yield job.writer.usage(result)
        yield DONE

    async def _progress(self, leaving: asyncio.Task[None]) -> AsyncIterator[bytes]:
        job, last, quiet = self._job, None, 0
        while not job.work.done() and not leaving.done():
            standing = job.view.standing()
            if job.asked.progress != "none" and standing != last:
                last, quiet = standing, 0
                yield comment(standing) if job.asked.progress == "comment" else job.writer.aside(_words(standing))
            elif (quiet := quiet + 1) % QUIET_BEATS == 0:
                yield b": still at it\n\n"
            await asyncio.wait({job.work, leaving}, timeout=BEAT_S, return_when=asyncio.FIRST_COMPLETED)
        if job.asked.progress == "comment" and job.work.done():
            yield comment(job.view.standing())

    async def end(self) -> None:
        if not self._job.work.done():
            await self._job.leave()


class PassedResponse(_Stream):
    """A stream of the upstream's, passed through."""

    def __init__(self, desk: Desk, passage: Passage, held: AsyncExitStack, due: float, head: Head) -> None:
        super().__init__(*head, None, desk.settings.send_s)
        self._desk = desk
        self._passage = passage
        self._held = held
        self._due = due

    @classmethod
    async def begin(cls, desk: Desk, asked: Pass, client: str, receive: Receive) -> Response:
        """Wait for the upstream's status; for its whole answer, when that is no stream, so that none breaks off."""
        held = AsyncExitStack()
        due = asyncio.get_running_loop().time() + desk.settings.deadline_s
        work = asyncio.ensure_future(cls._ask(desk, asked, client, held, due))
        try:
            async with disconnected(receive) as leaving:
                await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
            if work.cancelled():
                await held.aclose()
                return Response(status_code=499)
            passage, (status, headers), body = work.result()
        except BaseException:
            work.cancel()
            await asyncio.wait({work})
            await held.aclose()
            raise
        headers |= {"x-fot-mode": "pass", "x-fot-reason": asked.reason}
        if body is None:
            return cls(desk, passage, held, due, (status, headers))
        await held.aclose()
        return Response(body, status, headers)

    @staticmethod
    async def _ask(
        desk: Desk, asked: Pass, client: str, held: AsyncExitStack, due: float
    ) -> tuple[Passage, Head, bytes | None]:
        try:
            async with asyncio.timeout_at(due):
                upstream = await held.enter_async_context(desk.admission.admitted(client, 1, asked.model))
                passage = Passage(upstream, asked)
                held.push_async_callback(passage.close)
                held.callback(lambda: desk.spend(client, passage.tokens))
                head = await passage.begin()
                return passage, head, None if asked.is_stream else await passage.whole()
        except TimeoutError:
            raise Interrupted("deadline") from None

    async def pieces(self, leaving: asyncio.Task[None]) -> AsyncIterator[bytes]:
        source = self._passage.body()
        following = asyncio.ensure_future(anext(source, None))
        clock = asyncio.get_running_loop().time
        try:
            while True:
                left_s = max(self._due - clock(), 0.0)
                await asyncio.wait({following, leaving}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                if not following.done() and not leaving.done():
                    raise Interrupted("deadline")
                if not following.done() or (piece := following.result()) is None:
                    return
                yield piece
                following = asyncio.ensure_future(anext(source, None))
        except (EngineError, Interrupted) as error:
            yield frame(failure(error, self._desk.upstreams.hidden).body)
        finally:
            following.cancel()
            await asyncio.wait({following})

    async def end(self) -> None:
        await self._held.aclose()


def _words(standing: dict[str, object]) -> str:
    """How things stand, in a line."""
    rollouts = cast(dict[str, int], standing["rollouts"])
    votes = cast(dict[str, float], standing["votes"])
    told = ", ".join(f"{count} {state}" for state, count in rollouts.items())
    leader = max(votes, key=votes.__getitem__, default=None)
    lead = "" if leader is None else f"; {leader} leads with {votes[leader]:g}"
    return f"[{told}{lead}]\n"
