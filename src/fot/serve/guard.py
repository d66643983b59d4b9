"""Who may ask, from where, and how much. Everything passes through here before it is read.

The key comes as `Authorization: Bearer …`; a browser, which cannot send that by itself, is given a cookie for the live
view by `/login`. The cookie opens the live view and what it asks for: no page of somebody else's can spend tokens with
it.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fot.serve.admission import Buckets
from fot.serve.protocol import BadRequest
from fot.serve.replies import Failure
from fot.serve.settings import LOOPBACK, Settings

__all__ = ["COOKIE", "Guard", "Keys", "body_of", "refusal"]

COOKIE = "fot_view"
_SESSIONS = 256
_WRONG_KEYS_PER_MINUTE = 60.0
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_OPEN = ("/health", "/login", "/static/app.css", "/static/login.css", "/static/icon.svg")
"""Needs no key: nothing here tells anything of what the server does."""
_VIEW = ("/", "/static/app.js", "/static/welcome.js", "/static/funnel.js", "/v1/models")
"""What the cookie opens, beside all below /live/."""


def refusal(failure: Failure, headers: dict[str, str] | None = None) -> Response:
    """An error as an answer."""
    return JSONResponse(failure.body, failure.status, {**failure.headers, **(headers or {})})


class Keys:
    """The API keys, of which only digests are kept, and the sessions of browsers that gave one."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._digests = [sha256(key.encode()).digest() for key in keys]
        self._sessions: OrderedDict[bytes, str] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._digests)

    def client_of(self, given: str) -> str | None:
        """Who this key stands for; takes the same time whatever is given."""
        digest = sha256(given.encode()).digest()
        found = None
        for number, known in enumerate(self._digests):
            if hmac.compare_digest(digest, known):
                found = f"key {number + 1}"
        return found

    def open(self, client: str) -> str:
        """A new session, as the value of a cookie."""
        value = secrets.token_urlsafe(32)
        self._sessions[sha256(value.encode()).digest()] = client
        while len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return value

    def client_of_session(self, value: str) -> str | None:
        """Who opened the session."""
        return self._sessions.get(sha256(value.encode()).digest())


class Guard:
    """Lets through what may pass, and puts strict headers on every answer."""

    def __init__(self, app: ASGIApp, settings: Settings, keys: Keys) -> None:
        self._app = app
        self._settings = settings
        self._keys = keys
        self._wrong = Buckets(_WRONG_KEYS_PER_MINUTE)
        # Without a key only this machine may ask, and no page that got hold of its address by another name.
        allowed = (host.strip("[]").lower() for host in settings.allowed_hosts)
        self._hosts = None if keys else {*LOOPBACK, *allowed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message.get("headers", [])))
                for name, value in _HEADERS.items():
                    headers[name] = value
                message = {**message, "headers": headers.raw}
            await send(message)

        failure = self._judge(scope)
        if failure is None:
            await self._app(scope, receive, hardened)
        elif failure.status == 401 and scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            scope["fot.login"] = True
            await self._app(scope, receive, hardened)
        else:
            headers = {"www-authenticate": "Bearer"} if failure.status == 401 else None
            await refusal(failure, headers)(scope, receive, hardened)

    def _judge(self, scope: Scope) -> Failure | None:
        headers = Headers(scope=scope)
        foreign = self._foreign(headers)
        if foreign is not None:
            return foreign
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            return Failure(400, "the header Content-Length is no number")
        if len(length) > 18 or int(length) > self._settings.max_body_bytes:
            return Failure(413, f"a request may have {self._settings.max_body_bytes} bytes")
        return self._authenticate(scope, headers)

    def _foreign(self, headers: Headers) -> Failure | None:
        host = headers.get("host", "")
        if self._hosts is not None and _parts(f"//{host}").hostname not in self._hosts:
            return Failure(403, "this server is not known by that host name", code="wrong_host")
        origin = headers.get("origin")
        if origin is not None and _parts(origin).netloc != host:
            return Failure(403, "pages of other origins may not ask this server", code="wrong_origin")
        return None

    def _authenticate(self, scope: Scope, headers: Headers) -> Failure | None:
        """Find out who asks; `scope["fot.client"]` is it."""
        address = scope["client"][0] if scope.get("client") else "local"
        scope["fot.client"] = f"address {address}"
        path = scope["path"]
        if not self._keys or path in _OPEN:
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        client = self._keys.client_of(given.strip()) if scheme.lower() == "bearer" else None
        if client is None and (path in _VIEW or path.startswith("/live/")):
            client = self._keys.client_of_session(Request(scope).cookies.get(COOKIE, ""))
        if client is not None:
            scope["fot.client"] = client
            return None
        wrong = self._wrong.of(address)
        if given and wrong is not None:
            if wait_s := wrong.wait_s(1):
                return Failure(429, "too many wrong keys", code="rate_limit_exceeded", retry_after_s=wait_s)
            wrong.spend(1)
        return Failure(401, "a valid API key is needed", code="invalid_api_key")


def _parts(url: str) -> SplitResult:
    """The parts of a URL; of what is none, the parts of an empty one."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


async def body_of(request: Request, settings: Settings, most: int | None = None) -> bytes:
    """The whole body, within the limits of size and time. Raises `BadRequest`."""
    most = most or settings.max_body_bytes
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.body_s):
            async for piece in request.stream():
                size += len(piece)
                if size > most:
                    raise BadRequest(f"a request may have {most} bytes", status=413)
                pieces.append(piece)
    except TimeoutError:
        raise BadRequest(f"the body did not come within {settings.body_s:g} s", status=408) from None
    except ClientDisconnect:
        raise BadRequest("the client left", status=400) from None
    return b"".join(pieces)
