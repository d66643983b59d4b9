"""The routes, and the life of one request."""

from __future__ import annotations

import asyncio
import logging
import time
from importlib.resources import files
from urllib.parse import parse_qs

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from fot.errors import EngineError
from fot.serve.admission import Refused
from fot.serve.desk import Desk
from fot.serve.guard import COOKIE, Guard, body_of, refusal
from fot.serve.protocol import Asked, BadRequest, read
from fot.serve.replies import Failure, failure
from fot.serve.settings import Settings
from fot.serve.streams import EventResponse, PassedResponse, VotedResponse, disconnected

__all__ = ["create"]

log = logging.getLogger("fot.serve")
_STATIC = {
    "app.js": "text/javascript",
    "welcome.js": "text/javascript",
    "funnel.js": "text/javascript",
    "app.css": "text/css",
    "login.css": "text/css",
    "icon.svg": "image/svg+xml",
}
_LOGIN_BYTES = 4096


def create(settings: Settings) -> ASGIApp:
    """The application. Its `Desk` is `app.state.desk` of the Starlette application inside."""
    desk = Desk(settings)
    routes = Routes(desk)
    inner = Starlette(routes=routes.table(), lifespan=desk.lifespan, exception_handlers={404: _missing, 405: _missing})
    inner.state.desk = desk
    return Guard(inner, settings, desk.keys)


async def _missing(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    said = "there is nothing at this path" if status == 404 else "this path does not know that method"
    return refusal(Failure(status, said, code="not_found" if status == 404 else "method_not_allowed"))


class Routes:
    """What is answered where."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def table(self) -> list[Route]:
        """All routes."""
        return [
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/completions", self.completions, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/v1/models/{name:path}", self.model),
            Route("/health", self.health),
            Route("/metrics", self.metrics),
            Route("/", self.page),
            Route("/login", self.login, methods=["POST"]),
            Route("/static/{name}", self.static),
            Route("/live/events", self.events),
            Route("/live/runs/{run_id}", self.run),
            Route("/live/runs/{run_id}/lanes/{lane}", self.lane),
        ]

    # --- OpenAI's

    async def chat(self, request: Request) -> Response:
        """A vote, or what the upstream says."""
        desk, client, began = self._desk, request.scope["fot.client"], time.monotonic()
        mode = "refused"
        try:
            asked = read(await body_of(request, desk.settings), desk.settings)
            desk.allow(client)
            mode = "vote" if isinstance(asked, Asked) else "pass"
            if isinstance(asked, Asked):
                response = await self._vote(request, asked, client)
            else:
                response = await PassedResponse.begin(desk, asked, client, request.receive)
        except Exception as error:
            response = self._failed(error)
        desk.gauges.requests.labels(mode, str(response.status_code)).inc()
        run = response.headers.get("x-fot-run", "-")
        log.info(
            "chat %s %s for %s after %.2f s, run %s", mode, response.status_code, client, time.monotonic() - began, run
        )
        return response

    async def _vote(self, request: Request, asked: Asked, client: str) -> Response:
        desk = self._desk
        job = desk.begin(asked, client)
        try:
            if asked.is_stream:
                return await VotedResponse.begin(desk, job, request.receive)
            async with disconnected(request.receive) as leaving:
                await asyncio.wait({job.work, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if not job.work.done():
                    await job.leave()
                    return Response(status_code=499)
            result = job.work.result()
        except Exception as error:
            return self._failed(error, job.headers if job.id in desk.board.runs else None)
        headers = job.headers if result.votes else {**job.headers, "x-fot-reason": "no-answer"}
        return JSONResponse(job.writer.whole(result, asked.commit), headers=headers)

    def _failed(self, error: Exception, headers: dict[str, str] | None = None) -> Response:
        if isinstance(error, Refused):
            code = "rate_limit_exceeded" if error.status == 429 else "unavailable"
            return refusal(Failure(error.status, str(error), code=code, retry_after_s=error.retry_after_s), headers)
        told = failure(error, self._desk.upstreams.hidden)
        if told.code == "internal_error":
            log.error("a bug: %s", type(error).__name__, exc_info=error)
        return refusal(told, headers)

    async def completions(self, request: Request) -> Response:
        """Not here: a completion has no message that an answer could be told from."""
        return refusal(
            Failure(404, "this server votes on chats: POST /v1/chat/completions", code="unsupported_endpoint")
        )

    async def models(self, request: Request) -> Response:
        """All models of all upstreams."""
        try:
            return JSONResponse({"object": "list", "data": await self._models()})
        except Exception as error:
            return self._failed(error)

    async def model(self, request: Request) -> Response:
        """One model."""
        name = request.path_params["name"]
        try:
            found = next((model for model in await self._models() if model.get("id") == name), None)
        except Exception as error:
            return self._failed(error)
        if found is None:
            return refusal(Failure(404, "no upstream has this model", "model", "model_not_found"))
        return JSONResponse(found)

    async def _models(self) -> list[dict[str, object]]:
        found: dict[object, dict[str, object]] = {}
        failed: EngineError | None = None
        for upstream in self._desk.upstreams.all:
            if not upstream.is_up:
                continue
            try:
                told = msgspec.json.decode(await upstream.server.get("/v1/models"), type=dict[str, object])
            except (EngineError, msgspec.DecodeError) as error:
                failed = error if isinstance(error, EngineError) else failed
                continue
            data = told.get("data")
            for model in data if isinstance(data, list) else []:
                if isinstance(model, dict):
                    found.setdefault(model.get("id"), model)
        if not found:
            raise failed or Refused("no upstream answers", 503, 5.0)
        return list(found.values())

    # --- how it is

    async def health(self, request: Request) -> Response:
        """Up while an upstream is; tells no more than that."""
        desk = self._desk
        up, all_ = desk.upstreams.are_up, len(desk.upstreams.all)
        state = "stopping" if desk.admission.is_closed else "ok" if up == all_ else "degraded" if up else "unavailable"
        told = {"status": state, "upstreams": all_, "upstreams_up": up}
        told |= {"running": desk.admission.running, "waiting": desk.admission.waiting}
        return JSONResponse(told, 200 if state in ("ok", "degraded") else 503)

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        for upstream in self._desk.upstreams.all:
            self._desk.gauges.up.labels(upstream.name).set(upstream.is_up)
        return Response(self._desk.gauges.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    # --- the live view

    async def page(self, request: Request) -> Response:
        """The live view, or the door to it."""
        if self._desk.settings.view == "off":
            return refusal(Failure(404, "this server shows no live view", code="not_found"))
        if request.scope.get("fot.login"):
            return Response(_asset("login.html"), 401, {"www-authenticate": "Bearer"}, "text/html")
        keyed = b"<body data-keyed>" if self._desk.keys else b"<body>"
        return Response(_asset("index.html").replace(b"<body>", keyed), media_type="text/html")

    async def static(self, request: Request) -> Response:
        """The page's own files, by name and no other way."""
        name = request.path_params["name"]
        if name not in _STATIC:
            return refusal(Failure(404, "there is no such file", code="not_found"))
        return Response(_asset(name), media_type=_STATIC[name])

    async def login(self, request: Request) -> Response:
        """Give a browser that has the key a cookie for the live view."""
        try:
            body = await body_of(request, self._desk.settings, _LOGIN_BYTES)
        except BadRequest as error:
            return self._failed(error)
        given = parse_qs(body.decode("utf-8", "replace")).get("key", [""])[0]
        client = self._desk.try_key(request.scope["fot.client"], given)
        if client is None:
            return Response(
                _asset("login.html").replace(b"<!--wrong-->", b"<p role=alert>That key is not right.</p>"),
                401,
                media_type="text/html",
            )
        response = RedirectResponse("/", 303)
        response.set_cookie(COOKIE, self._desk.keys.open(client), httponly=True, samesite="strict", path="/")
        return response

    async def events(self, request: Request) -> Response:
        """What happens, for as long as somebody watches."""
        if self._desk.settings.view == "off":
            return refusal(Failure(404, "this server shows no live view", code="not_found"))
        return EventResponse(self._desk.board.watch(), self._desk.settings.send_s)

    async def run(self, request: Request) -> Response:
        """One run, while it is remembered."""
        view = self._desk.board.runs.get(request.path_params["run_id"])
        if view is None or self._desk.settings.view == "off":
            return refusal(Failure(404, "no such run is remembered", code="not_found"))
        return JSONResponse(view.as_json())

    async def lane(self, request: Request) -> Response:
        """The text of one rollout, and the markers that are counted in it."""
        view = self._desk.board.runs.get(request.path_params["run_id"])
        known = range(len(view.lanes) if view is not None and self._desk.settings.view == "full" else 0)
        number = next((number for number in known if str(number) == request.path_params["lane"]), None)
        if view is None or number is None or view.read_text is None:
            return refusal(Failure(404, "this text is not kept", code="not_found"))
        text, decided = view.read_text(number)
        return JSONResponse({"id": number, "text": text, "decided": decided, "markers": view.markers})


def _asset(name: str) -> bytes:
    owner = "fot" if name == "funnel.js" else "fot.serve"  # the report draws with it too
    return files(owner).joinpath("static", name).read_bytes()
