"""Server-sent events out of bytes that are cut anywhere."""

from __future__ import annotations

from fot.errors import EngineProtocolError

__all__ = ["EventParser"]

_LARGEST = 1 << 26  # a cumulative stream repeats its whole text; nothing honest is larger


class EventParser:
    """Collects the `data` of events. Comments and other fields are skipped; all three line endings are known."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._is_first = True

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes in; returns the data of each event that they complete."""
        window = self._rest + data
        if len(window) > _LARGEST:
            raise EngineProtocolError("an event of the stream does not end", "Is this an event stream at all?")
        if self._is_first and window:
            window = window.removeprefix(b"\xef\xbb\xbf")
            self._is_first = False
        held = b""
        if b"\r" in window:
            if window.endswith(b"\r"):  # its line feed may still be on the way
                window, held = window[:-1], b"\r"
            window = window.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = window.split(b"\n")
        self._rest = rest + held
        events = []
        for line in lines:
            if line:
                self._field(line)
            elif self._data:
                events.append(self._event())
        return events

    def finish(self) -> bytes | None:
        """The stream has ended: the data of an event whose blank line never came, if any; it may be torn."""
        last = self._rest.rstrip(b"\r")
        self._rest = b""
        if last:
            self._field(last)
        return self._event() if self._data else None

    def _field(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])

    def _event(self) -> bytes:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data = []
        return data
