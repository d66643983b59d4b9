"""Engines: where the text of a live run comes from.

`connect("http://host:8000/v1")` asks the server what it is; `connect("vllm+http://host:8000")` takes your word for it;
`connect("embedded")` runs a model in this process.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from fot.core.registry import unknown_name
from fot.errors import ConfigError

if TYPE_CHECKING:
    from fot.engines.base import Engine

__all__ = ["ENGINES", "LOCAL", "SERVERS", "connect", "engine_names"]

ENGINES = {
    "asyncllm": "fot.engines.asyncllm:AsyncLlm",
    "embedded": "fot.engines.embedded:Embedded",
    "llamacpp": "fot.engines.llamacpp:LlamaCpp",
    "openai": "fot.engines.openai:OpenAICompatible",
    "scripted": "fot.engines.scripted:Scripted",
    "sglang": "fot.engines.sglang:Sglang",
    "transformers": "fot.engines.transformers:Transformers",
    "vllm": "fot.engines.vllm:Vllm",
}
"""Name to "module:class"; further ones come from the entry points `fot.engines`."""

SERVERS = ("llamacpp", "openai", "sglang", "vllm")
"""Those that are reached by a URL."""

LOCAL = ("asyncllm", "embedded", "transformers")
"""Those that run a model here; each takes `model` and `parallel`."""


def engine_names() -> list[str]:
    """All engines that there are."""
    return sorted({*ENGINES, *(found.name for found in entry_points(group="fot.engines"))})


async def connect(engine: str | None = None, **options: object) -> Engine:
    """The engine of that name or at that URL; None: the server that OPENAI_BASE_URL names.

    `options` go to the engine. A URL without a name before it is asked which server it is, which raises
    `EngineUnavailable` when nobody answers. Nothing else is asked before the engine is used.
    """
    if engine is None:
        return await _recognise(None, options)
    name, plus, url = engine.partition("+")
    if plus and url.startswith(("http://", "https://")):
        if name not in SERVERS:
            raise unknown_name("server", name, SERVERS)
        return _make(name, {"base_url": url, **options})
    if "://" in engine:
        if not engine.startswith(("http://", "https://")):
            raise ConfigError(f"'{engine}' is no URL of a server", "It should begin with http:// or https://.")
        return await _recognise(engine, options)
    return _make(engine, options)


async def _recognise(url: str | None, options: dict[str, object]) -> Engine:
    from fot.engines.recognise import recognise

    name = await recognise(url, options)
    return _make(name, {"base_url": url, **options})


def _make(name: str, options: dict[str, object]) -> Engine:
    if name in ENGINES:
        module, _, attribute = ENGINES[name].partition(":")
        kind = getattr(import_module(module), attribute)
    else:
        found = next(iter(entry_points(group="fot.engines", name=name)), None)
        if found is None:
            raise unknown_name("engine", name, engine_names())
        kind = found.load()
    try:
        engine: Engine = kind(**options)
    except TypeError as error:
        lacks = re.search(r"missing .* argument: '(\w+)'", str(error))
        said = f"needs {lacks.group(1)}" if lacks else f"cannot be made so: {error}"
        raise ConfigError(f"engine '{name}' {said}", "See docs/reference/engines.md.") from None
    return engine
