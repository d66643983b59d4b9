"""The engines behind the server, fixed at its start, and whether they answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Sequence

import httpx2

from fot.engines import connect
from fot.engines.base import Engine
from fot.engines.http import HttpServer
from fot.engines.wire import ModelList, decode_json
from fot.errors import EngineError, EngineProtocolError, EngineRefused, EngineTimeout, EngineUnavailable

__all__ = ["Upstream", "Upstreams"]

log = logging.getLogger("fot.serve")
DEFAULT_SLOTS = 256
_CHECK_S = 10.0
_SILENT = 3


class Upstream:
    """One engine, with room for so many rollouts at once."""

    def __init__(self, name: str, url: str, key: str | None, slots: int | None) -> None:
        self.name = name
        self.url = url
        self.engine: Engine | None = None
        self.is_up = False
        self.models: frozenset[str] = frozenset()
        """Names that it lists; it may answer to others too."""
        self.slots = slots or DEFAULT_SLOTS
        self.used = 0
        self._key = key
        self._is_fixed = slots is not None
        self._silent = 0
        self._looking: asyncio.Task[None] | None = None

    @property
    def server(self) -> HttpServer:
        """Its HTTP side, for what is passed through."""
        found = getattr(self.engine, "server", None)
        if not isinstance(found, HttpServer):
            raise EngineUnavailable(f"{self.name} cannot be asked directly", retryable=False)
        return found

    def has_room(self, rollouts: int) -> bool:
        """Could a problem of so many rollouts begin now? One that is larger than all the room runs alone."""
        return self.is_up and (self.used + rollouts <= self.slots or self.used == 0)

    async def check(self) -> None:
        """See whether it answers; the first time it does, find out what it is.

        A server that works hard may be late with an answer: what is silent is down only after a while, and not at all
        while rollouts run on it, which have time-outs of their own.
        """
        try:
            async with asyncio.timeout(_CHECK_S):
                if self.engine is None:
                    await self._connect()
                await self._look()
        except (EngineError, TimeoutError) as error:
            self._silent += 1
            is_late = isinstance(error, EngineTimeout | TimeoutError)
            if self.is_up and is_late and (self.used or self._silent < _SILENT):
                return
            if self.is_up or self._silent == 1:  # told once, also of one that never was up
                log.warning("%s is down: %s", self.name, error)
            self.is_up = False
            return
        if not self.is_up:
            log.info("%s is up", self.name)
        self.is_up, self._silent = True, 0

    def doubt(self) -> asyncio.Task[None]:
        """A rollout had trouble with it: look now, so that problems go elsewhere if it is gone."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self.check())
        return self._looking

    async def _look(self) -> None:
        try:
            listed = decode_json(await self.server.get("/v1/models", within_s=_CHECK_S / 2), ModelList)
        except EngineProtocolError:  # an odd list is no list, but somebody answers
            return
        except EngineRefused as error:
            if not error.is_missing:
                raise
            return
        self.models = frozenset(model.id for model in listed.data)

    async def _connect(self) -> None:
        engine = await connect(self.url, **({"api_key": self._key} if self._key else {}))
        can = await engine.capabilities()
        if not self._is_fixed and can.max_parallel:
            self.slots = can.max_parallel
        for note in can.notes:
            log.info("%s: %s", self.name, note)
        self.engine = engine

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})
        if self.engine is not None:
            with contextlib.suppress(EngineError, httpx2.HTTPError):
                await self.engine.close()


class Upstreams:
    """All of them, looked after by `watch`."""

    def __init__(self, urls: Sequence[str], key: str | None, slots: int | None) -> None:
        self.all = [Upstream(f"upstream {number}", url, key, slots) for number, url in enumerate(urls, 1)]

    @property
    def hidden(self) -> dict[str, str]:
        """Addresses, and what clients are told in their place; the longest come first."""
        shown: dict[str, str] = {}
        for upstream in self.all:
            url = upstream.url.partition("+")[2] if "+http" in upstream.url else upstream.url
            for form in (url, url.rstrip("/"), url.rstrip("/").removesuffix("/v1")):
                shown[form] = upstream.name
        return dict(sorted(shown.items(), key=lambda pair: -len(pair[0])))

    @property
    def are_up(self) -> int:
        """How many answer."""
        return sum(upstream.is_up for upstream in self.all)

    def serving(self, model: str | None) -> list[Upstream]:
        """Those that list the model; where none does, all of them: servers answer to more names than they list."""
        return [upstream for upstream in self.all if model in upstream.models] or self.all

    def with_room(self, rollouts: int, model: str | None, beside: Collection[Upstream] = ()) -> Upstream | None:
        """The one with the most room for a problem, if any that serves its model, beside these, has enough."""
        fit = [each for each in self.serving(model) if each not in beside and each.has_room(rollouts)]
        return max(fit, key=lambda upstream: upstream.slots - upstream.used, default=None)

    async def check(self) -> None:
        """Look at all of them once."""
        await asyncio.gather(*(upstream.check() for upstream in self.all))

    async def watch(self, every_s: float, on_change: Callable[[], None]) -> None:
        """Look at all of them again and again."""
        while True:
            await asyncio.sleep(every_s)
            await self.check()
            on_change()

    async def close(self) -> None:
        """Let go of all of them."""
        await asyncio.gather(*(upstream.close() for upstream in self.all))
