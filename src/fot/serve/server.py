"""The sockets: patience with slow clients is bounded, and a stop is told before it happens."""

from __future__ import annotations

import asyncio
import resource
import socket
from types import FrameType

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from fot.serve.app import create
from fot.serve.desk import Desk
from fot.serve.settings import Settings

__all__ = ["Server", "listen", "raise_file_limit"]

_EXTRA_S = 10.0
"""After the drain, the time that answers have to be read."""
_FILES = 65536


class Server(uvicorn.Server):
    """Serves until it is told to stop; then what runs is finished, or cut short, before the sockets close."""

    def __init__(self, settings: Settings) -> None:
        app = create(settings)
        self.desk: Desk = app._app.state.desk  # type: ignore[attr-defined]
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            http=protocol(settings.header_s, settings.max_connections),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,  # its lines hold whatever a client writes into a path
            server_header=False,
            date_header=True,
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=int(settings.drain_s + _EXTRA_S),
            h11_max_incomplete_event_size=64 << 10,
            backlog=2048,
        )
        super().__init__(config)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; at a second signal, at once. Being stopped so is no failure."""
        self.force_exit = self.should_exit
        self.stop()

    def stop(self) -> None:
        """Stop in good order."""
        self.desk.drain()
        self.should_exit = True


def protocol(header_s: float, most: int) -> type[H11Protocol]:
    """The protocol of uvicorn, with these bounds."""
    return type("Bounded", (Bounded,), {"header_s": header_s, "most": most, "idle": {}})


class Bounded(H11Protocol):
    """Bounds how many connections there are, and how long one may take to ask for something.

    When there are too many, whoever has been idle for longest makes room: no crowd of idlers keeps others out.
    """

    header_s = 10.0
    most = 2048
    idle: dict[Bounded, None]
    """Connections of one server that ask for nothing, the longest idle one first."""
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            oldest = next(iter(self.idle), self)
            self.idle.pop(oldest, None)
            oldest.transport.abort()
            if oldest is self:
                return
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_busy:
            self._stop_waiting()
        elif self._patience is None:
            self._await_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not (self.transport.is_closing() or self._is_busy):
            self.idle[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _is_busy(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _await_request(self) -> None:
        self.idle[self] = None
        self._patience = self.loop.call_later(self.header_s, self._give_up)

    def _stop_waiting(self) -> None:
        self.idle.pop(self, None)
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        if not self._is_busy:
            self.transport.close()


def raise_file_limit() -> None:
    """Every connection is an open file, and what systems allow at first is less than a few problems need."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if most == resource.RLIM_INFINITY else min(_FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def listen(settings: Settings) -> socket.socket:
    """A socket at the settings' host and port; raises `OSError`."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((settings.host, settings.port))
    except OSError:
        made.close()
        raise
    made.set_inheritable(True)
    return made
