"""``fot serve``: an OpenAI-compatible server whose answers are voted on."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fot.cli.output import ExitCode, print_note
from fot.errors import EngineUnavailable, FotError, MissingExtra

if TYPE_CHECKING:
    from fot.serve.settings import Settings

__all__ = ["serve"]


def serve(  # noqa: PLR0913 - each parameter is a flag
    *,
    upstream: list[str] | None = None,
    host: str | None = None,
    port: int | None = None,
    api_key: Annotated[list[str] | None, Parameter(env_var="FOT_SERVE_API_KEY")] = None,
    config: Path | None = None,
    k: Annotated[int | None, Parameter(name=["-k", "--k"])] = None,
    policy: str | None = None,
    commit: str | None = None,
    when: Literal["auto", "always", "asked"] | None = None,
    instruct: bool | None = None,
    progress: Literal["comment", "reasoning", "none"] | None = None,
    max_k: int | None = None,
    max_tokens: int | None = None,
    deadline_s: float | None = None,
    slots: int | None = None,
    queue: int | None = None,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    upstream_key: Annotated[str | None, Parameter(env_var="FOT_SERVE_UPSTREAM_KEY")] = None,
    view: Literal["full", "figures", "off"] | None = None,
    log_texts: bool | None = None,
) -> int:
    """Answer OpenAI's protocol with a vote of many rollouts, and show the funnels at the same address.

    Further settings stand in the configuration file; see docs/reference/http.md.

    Parameters
    ----------
    upstream
        URL of the server that generates; several times for several. Its key: --upstream-key or OPENAI_API_KEY.
    host
        Where to listen. Any other than 127.0.0.1 needs an API key.
    port
        Where to listen; 0 takes a free port, and tells it.
    api_key
        Whoever gives this key may use the server; several times for several.
    config
        A TOML file with a table [serve] of settings; what is given here wins.
    k
        Rollouts for a problem.
    policy
        The method, as `fot solve` takes it; none passes everything through.
    commit
        How an answer is found: boxed, choice, code or paper.
    when
        Vote where a chat looks as if it had an answer (auto), always, or only where it is asked for.
    instruct
        Add the wanted form of answer to the last message.
    progress
        How streams tell of the funnel: comment, reasoning or none.
    max_k
        Most rollouts that a request may ask for.
    max_tokens
        Most tokens of one rollout.
    deadline_s
        A run ends after so many seconds, with the vote as it stands.
    slots
        Rollouts at once on one upstream. Default: as many as it says.
    queue
        Problems that may wait for room.
    requests_per_minute
        Of one client; 0 is no limit.
    tokens_per_minute
        Generated for one client; 0 is no limit.
    upstream_key
        The key that upstreams want.
    view
        The live view at /: full, figures (no texts) or off.
    log_texts
        Write questions and answers to the log.
    """
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in locals().items()}
    file = given.pop("config")
    try:
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("serve") from None
    from fot.serve.settings import load

    return _serve(load(file if isinstance(file, Path) else None, dict(given)))


def _serve(settings: Settings) -> int:
    from fot.serve.server import Server, listen, raise_file_limit

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    raise_file_limit()
    try:
        socket = listen(settings)
    except OSError as error:
        raise FotError(
            f"cannot listen at {settings.host}:{settings.port}: {error.strerror}", "Choose another --port."
        ) from None
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    port = socket.getsockname()[1]
    server = Server(settings)
    with socket:
        print_note(f"http://{host}:{port}/v1 is OpenAI's protocol, http://{host}:{port}/ the live view")
        if settings.log_texts:
            print_note("questions and answers are written to the log")
        server.run(sockets=[socket])
    if not server.started:
        raise EngineUnavailable("the server could not be started", "See the log above.")
    desk = server.desk
    if desk.finished or desk.cancelled:
        print_note(f"when stopped: {len(desk.finished)} finished, {len(desk.cancelled)} cut short")
    return ExitCode.OK
