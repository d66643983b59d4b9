"""The board: what all running and recent runs look like, and those who watch it.

A watcher gets the whole board once, then a few times a second what has changed. One that reads too slowly is let go; it
comes back by itself and gets the whole board again.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple, cast

import msgspec

from fot.core.policy import Fate
from fot.online.events import Banked, Cancelled, Event, Failed, Finished, Progress, Pruned, Retried, Started, Voted
from fot.online.result import Result, likely_lengths
from fot.serve.protocol import Asked

__all__ = ["STOPPED", "Board", "LaneText", "LaneView", "RunView"]

TICK_S = 0.25
HISTORY = 48
"""Points of a lane's density that are kept."""
_BACKLOG = 16
_QUESTION = 2000
_NAME = 200
"""Characters of what a client wrote that are shown."""
STOPPED = ("banked", "pruned", "cancelled")


class LaneText(NamedTuple):
    """The text of one rollout, and how many of its characters came before it was stopped."""

    text: str
    decided: int


class LaneView:
    """One rollout as it is drawn."""

    __slots__ = ("answer", "density", "has_ended", "history", "state", "tokens")

    def __init__(self) -> None:
        self.tokens = 0
        self.density = 0.0
        self.state = "waiting"
        self.has_ended = False
        """By itself; it may be banked afterwards."""
        self.answer: str | None = None
        self.history: list[tuple[int, float]] = []

    def reach(self, tokens: int, density: float | None = None) -> None:
        """It has so many tokens, or was stopped at so many."""
        self.tokens = tokens
        if density is None:
            return
        self.density = round(density, 2)
        if self.history and self.history[-1][0] >= tokens:
            return
        self.history.append((tokens, self.density))
        if len(self.history) > HISTORY:
            self.history = self.history[::-2][::-1]

    def as_json(self, *, is_whole: bool) -> list[object]:
        """`[tokens, density, state, answer]`, and for the whole board the density on the way."""
        told: list[object] = [self.tokens, self.density, self.state, self.answer]
        return [*told, self.history] if is_whole else told


class RunView:
    """One run as it is drawn; `note` takes its events."""

    def __init__(self, run_id: str, asked: Asked, *, has_texts: bool) -> None:
        self.id = run_id
        self.state = "queued"
        self.why = ""
        self.lanes = [LaneView() for _ in range(asked.k)]
        self.votes: Mapping[str, float] = {}
        self.answer: str | None = None
        self.result: Mapping[str, object] | None = None
        self.dirty: set[int] = set()
        self.is_dirty = True
        self.has_begun = asyncio.Event()
        """The first tokens have come."""
        self.generated = 0
        """Tokens that were generated in all, once it is over."""
        self.markers = asked.spec.kernel.markers
        """What counts as hesitation."""
        self.read_text: Callable[[int], LaneText] | None = None
        self.text_bytes = 0
        self._began = time.time()
        self._ended: float | None = None
        self._about = {
            "model": (asked.model or "")[:_NAME],
            "policy": asked.spec.text,
            "k": asked.k,
            "commit": asked.commit,
            "checkpoints": list(asked.checkpoints),
            "question": asked.question[:_QUESTION] if has_texts else "",
            "has_texts": has_texts,
        }

    def note(self, event: Event) -> None:
        """Take what happened in."""
        self.is_dirty = True
        if isinstance(event, Voted):
            self.votes, self.answer = dict(event.votes), event.answer
            return
        lane = self.lanes[event.rollout]
        self.dirty.add(event.rollout)
        match event:
            case Started() | Retried():
                lane.state = "running"
            case Progress(_, tokens, density, answer):
                lane.reach(tokens, density)
                lane.answer = answer
            case Finished(_, tokens, answer, _):
                lane.reach(tokens)
                lane.state, lane.answer, lane.has_ended = "finished", answer, True
            case Banked(_, tokens, density, answer):
                lane.reach(tokens, density)
                lane.state, lane.answer = "banked", answer
            case Pruned(_, tokens, density):
                lane.reach(tokens, density)
                lane.state = "pruned"
            case Cancelled(_, tokens):
                lane.reach(tokens)
                lane.state = "cancelled"
            case Failed(_, tokens, _):
                lane.reach(tokens)
                lane.state = "failed"
        if lane.tokens:
            self.has_begun.set()

    def begin(self) -> None:
        """It has left the queue."""
        self.state, self.is_dirty = "running", True

    def wait_again(self) -> None:
        """It begins anew, elsewhere."""
        self.state, self.is_dirty = "queued", True
        for number, lane in enumerate(self.lanes):
            lane.state = "waiting"
            self.dirty.add(number)

    def end(self, state: str, result: Result | None = None, told: Mapping[str, object] | None = None) -> None:
        """It is over: `done`, `interrupted` or `failed`."""
        self.state, self.is_dirty, self._ended = state, True, time.time()
        self.result = told
        if result is None:
            return
        self.answer, self.votes = result.answer, result.votes
        for rollout in result.rollouts:
            lane = self.lanes[rollout.id]
            lane.tokens, lane.answer = rollout.tokens, rollout.answer or lane.answer
            lane.state = "waiting" if rollout.fate is Fate.UNUSED else rollout.fate.value
            self.dirty.add(rollout.id)

    @property
    def tokens(self) -> int:
        """Tokens of all lanes."""
        return sum(lane.tokens for lane in self.lanes)

    @property
    def tally(self) -> dict[str, int]:
        """How many lanes are in which state."""
        counts: dict[str, int] = {}
        for lane in self.lanes:
            counts[lane.state] = counts.get(lane.state, 0) + 1
        return counts

    def standing(self) -> dict[str, object]:
        """A few words on how far it is, for a client that waits."""
        votes = {answer: int(n) if n == int(n) else n for answer, n in self.votes.items()}
        return {"id": self.id, "state": self.state, "rollouts": self.tally, "tokens": self.tokens, "votes": votes}

    def changes(self) -> dict[str, object]:
        """What has changed since this was last asked."""
        lanes = {number: self.lanes[number].as_json(is_whole=False) for number in sorted(self.dirty)}
        self.dirty.clear()
        self.is_dirty = False
        return self._now() | {"lanes": lanes} | ({} if self.result is None else {"result": self.result})

    def as_json(self) -> dict[str, object]:
        """All of it."""
        lanes = [lane.as_json(is_whole=True) for lane in self.lanes]
        return self._about | self._now() | {"lanes": lanes, "result": self.result}

    @property
    def _saved(self) -> float | None:
        """Tokens saved, as a fraction: what the result tells, or would tell of the lanes that were stopped so far."""
        if self.result is not None:
            return cast(dict[str, float | None], self.result["savings"])["tokens"]
        tokens = [lane.tokens for lane in self.lanes]
        lengths = likely_lengths(tokens, [lane.has_ended for lane in self.lanes])
        stopped = [number for number, lane in enumerate(self.lanes) if lane.state in STOPPED]
        return sum(lengths[n] - tokens[n] for n in stopped) / max(sum(lengths), 1) if stopped else None

    def _now(self) -> dict[str, object]:
        return {
            "id": self.id,
            "state": self.state,
            "why": self.why,
            "answer": self.answer,
            "votes": dict(self.votes),
            "saved": self._saved,
            "began": self._began,
            "seconds": round((self._ended or time.time()) - self._began, 1),
        }


class Board:
    """All runs, the newest last; at most `keep` of those that are over, and so many bytes of their texts."""

    def __init__(self, keep: int, text_bytes: int) -> None:
        self.runs: OrderedDict[str, RunView] = OrderedDict()
        self._keep = keep
        self._text_bytes = text_bytes
        self._watchers: set[asyncio.Queue[bytes | None]] = set()
        self._dropped: list[str] = []
        self.is_closed = False

    def add(self, view: RunView) -> None:
        """A run begins."""
        self.runs[view.id] = view
        over = [run_id for run_id, run in self.runs.items() if run.state not in ("queued", "running")]
        for run_id in over[: max(len(self.runs) - self._keep, 0)]:
            del self.runs[run_id]
            self._dropped.append(run_id)
        if not self._watchers:
            self._dropped.clear()

    def remove(self, view: RunView) -> None:
        """As if it had never been."""
        if self.runs.pop(view.id, None) is not None:
            self._dropped.append(view.id)

    def keep_texts(self, view: RunView, texts: list[LaneText]) -> None:
        """Keep the texts of a run that is over, and let the oldest ones go."""
        view.read_text = texts.__getitem__
        view.text_bytes = sum(4 * len(text) if not text.isascii() else len(text) for text, _ in texts)
        total = sum(run.text_bytes for run in self.runs.values())
        for run in self.runs.values():
            if total <= self._text_bytes:
                return
            total -= run.text_bytes
            if run.text_bytes:
                run.read_text, run.text_bytes = None, 0

    async def watch(self) -> AsyncIterator[bytes]:
        """Events for one watcher, in the form of an event stream."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_BACKLOG)
        yield b"retry: 1000\n\n" + _event("snapshot", {"runs": [run.as_json() for run in self.runs.values()]})
        self._watchers.add(queue)
        try:
            while not self.is_closed and (told := await queue.get()) is not None:
                yield told
        finally:
            self._watchers.discard(queue)

    async def tick(self) -> None:
        """Tell the watchers what is new, again and again."""
        quiet = 0
        while not self.is_closed:
            await asyncio.sleep(TICK_S)
            changed = [run.changes() for run in list(self.runs.values()) if run.is_dirty]
            gone, self._dropped = self._dropped, []
            quiet = 0 if changed or gone else quiet + 1
            if not self._watchers or (quiet and quiet % 40):
                continue
            self._tell(_event("delta", {"runs": changed, "gone": gone}))

    def _tell(self, told: bytes) -> None:
        for queue in list(self._watchers):
            if queue.full():  # too slow: it starts afresh
                self._watchers.discard(queue)
                queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(told)

    def close(self) -> None:
        """Send the watchers away."""
        self.is_closed = True
        for queue in list(self._watchers):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)


def _event(name: str, value: object) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(value) + b"\n\n"
