"""One problem at work: a session on an upstream, seen on the board, ended early when there is a reason."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from fot.engines.base import Engine
from fot.errors import FotError
from fot.online.api import Options, Session
from fot.online.controller import Plan
from fot.online.events import Failed, Retried
from fot.online.lane import Limits
from fot.online.result import Result
from fot.serve.live import STOPPED, LaneText, RunView
from fot.serve.protocol import Asked

__all__ = ["Interrupted", "Problem"]

PROGRESS_S = 0.25


class Interrupted(FotError):
    """A request that was ended before there was an answer; `why` is a key of `_WHY`."""

    def __init__(self, why: str) -> None:
        super().__init__(_WHY[why])
        self.why = why
        self.status = _STATUS[why]
        self.code = f"interrupted_by_{why}"


_STATUS = {"deadline": 504, "shutdown": 503, "client": 499, "lost": 503}
_WHY = {
    "deadline": "the deadline passed before there was an answer",
    "shutdown": "the server was shut down before there was an answer",
    "client": "the client left",
    "lost": "the upstream was lost",
}


class Problem:
    """Runs once. Nothing is left running upstream when `run` returns, raises or is cancelled."""

    def __init__(self, asked: Asked, view: RunView, retries: int) -> None:
        self.view = view
        self.why: str | None = None
        self._asked = asked
        self._limits = Limits(retries=retries)
        self._session: Session | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_live = False

    @property
    def generated(self) -> int:
        """Tokens generated so far, as the engine told them."""
        return sum(lane.generated for lane in self._session.lanes) if self._session else 0

    async def run(self, engine: Engine, on_trouble: Callable[[], None] = lambda: None) -> Result:
        """Run to the result, which is partial when it was interrupted; `on_trouble` when a rollout fails."""
        asked = self._asked
        options = Options(
            policy=asked.spec,
            k=asked.k,
            commit=asked.commit,
            way=asked.way,
            seed=asked.seed,
            sampling=asked.sampling,
            plan=Plan(progress_s=PROGRESS_S, limits=self._limits),
            about={"problem_id": asked.question},
        )
        self._session = session = Session(engine, asked.messages, options)
        self.view.begin()
        self.view.read_text = self._read_text
        self._task = asyncio.ensure_future(self._follow(session, on_trouble))
        if self.why is not None:
            self._task.cancel()
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self.why is not None and self._task.cancelled():
                raise Interrupted(self.why) from None
            self._task.cancel()
            await asyncio.wait({self._task})
            raise
        result = session.result
        if result is None:
            raise Interrupted(self.why or "shutdown")
        return result

    def interrupt(self, why: str) -> None:
        """End it here, with the vote as it stands."""
        if self.why is not None or (self._task is not None and self._task.done()):
            return
        self.why = why
        if self._is_live and self._session is not None:
            self._session.interrupt()
        elif self._task is not None:
            self._task.cancel()

    async def _follow(self, session: Session, on_trouble: Callable[[], None]) -> None:
        async with contextlib.aclosing(session.events()) as events:  # type: ignore[type-var]
            async for event in events:
                self._is_live = True
                self.view.note(event)
                if isinstance(event, Retried | Failed):
                    on_trouble()

    def _read_text(self, rollout: int) -> LaneText:
        lanes = self._session.lanes if self._session else ()
        if rollout >= len(lanes):
            return LaneText("", 0)
        seen, text = self.view.lanes[rollout], lanes[rollout].text
        return LaneText(text.text, text.chars_at(seen.tokens) if seen.state in STOPPED else text.chars)
