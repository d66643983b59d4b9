"""Which server is it?"""

from __future__ import annotations

from collections.abc import Mapping

from fot.engines.openai import OpenAICompatible
from fot.engines.wire import ModelList, decode_json
from fot.errors import EngineError, EngineProtocolError, EngineRefused

__all__ = ["recognise"]

_OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp"}
_SIGNS = (("sglang", "/server_info"), ("llamacpp", "/props"), ("vllm", "/version"))
_DENIED = (401, 403)


async def recognise(url: str | None, options: Mapping[str, object]) -> str:
    """The name of the engine for the server at this URL: by the owner of its models, else by what only it answers.

    Raises `EngineError` when nobody answers, or the key is refused.
    """
    # Two servers can share a list of models only behind a gateway, and what that passes on is the plain protocol.
    known = {key: options[key] for key in ("api_key", "headers", "connect_s") if key in options}
    asked = OpenAICompatible(url, **known)  # type: ignore[arg-type]
    try:
        owner = await _owner(asked)
        if owner is not None:
            return _OWNERS.get(owner, "openai")
        for name, path in _SIGNS:
            try:
                await asked.server.get(path)
            except EngineError:
                continue
            return name
        return "openai"
    finally:
        await asked.close()


async def _owner(asked: OpenAICompatible) -> str | None:
    """Who owns the first model; None where the server does not say."""
    try:
        listed = decode_json(await asked.server.get("/v1/models"), ModelList)
    except EngineRefused as error:
        if error.status in _DENIED:
            raise
        return None
    except EngineProtocolError:
        return None
    return listed.data[0].owned_by if listed.data else None
