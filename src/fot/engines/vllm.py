"""vLLM over HTTP.

Every request goes to `/v1/completions`, a chat after the server has rendered it: so the text comes whole, whatever
reasoning parser the server runs, and a rollout can be resumed from its prefix through the prefix cache.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fot.engines.base import Capabilities, Counters, Request
from fot.engines.metrics import metric
from fot.engines.openai import OpenAICompatible
from fot.engines.wire import decode_json
from fot.errors import EngineError, EngineRefused

__all__ = ["Vllm"]


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Prompt(msgspec.Struct):
    prompt: str


class Vllm(OpenAICompatible):
    """A vLLM server; stops by closing the connection, or by name where the server runs in development mode."""

    name = "vllm"
    _has_abort = False
    _renders = True

    async def _find_out(self) -> Capabilities:
        await self.model()
        self._has_abort = await self._answers("/abort_requests", {"request_ids": ["fot-nobody"]})
        self._renders = await self._answers("/detokenize", {"model": await self.model(), "tokens": [0]})
        return Capabilities(
            exact_counts=True,
            token_ends=False,
            seeds=True,
            abort="explicit" if self._has_abort else "disconnect",
            resume=self._renders,
            logprobs=True,
        )

    async def _answers(self, path: str, body: Mapping[str, object]) -> bool:
        try:
            await self.server.post(path, body)
        except EngineRefused as error:
            return not error.is_missing
        return True

    async def counters(self) -> Counters | None:
        try:
            text = (await self.server.get("/metrics")).decode()
        except EngineError:
            return None
        return Counters(
            generated_tokens=metric(text, "vllm:generation_tokens_total", "vllm:generation_tokens"),
            running=metric(text, "vllm:num_requests_running"),
            waiting=metric(text, "vllm:num_requests_waiting"),
        )

    async def _ask(self, request: Request) -> tuple[str, dict[str, object], dict[str, str]]:
        await self.capabilities()
        headers = {"x-request-id": request.id}
        if request.prompt is None and not self._renders:
            path, body, _ = await super()._ask(request)
            return path, body, headers
        body = await self._body(request)
        if request.prompt is not None:
            return "/v1/completions", body | {"prompt": self._continued(request.prompt, request)}, headers
        if request.logprobs:
            body["logprobs"] = request.logprobs
            body.pop("top_logprobs", None)
        prompt = self._continued(await self.render(request), request)
        return "/v1/completions", body | {"prompt": prompt, "add_special_tokens": False}, headers

    async def _apply_template(self, chat: Mapping[str, object]) -> str:
        model = await self.model()
        asked = {"model": model, "add_generation_prompt": True, **chat}
        ids = decode_json(await self.server.post("/tokenize", asked), _Tokens).tokens
        text = await self.server.post("/detokenize", {"model": model, "tokens": ids})
        return decode_json(text, _Prompt).prompt

    def _more(self) -> dict[str, object]:
        return super()._more() | {"return_token_ids": True}

    async def _tell_abort(self, request_id: str) -> bool:
        if not self._has_abort:
            return False
        # The server names a completion's request so; an empty list would stop everything, ours or not.
        await self.server.post("/abort_requests", {"request_ids": [f"cmpl-{request_id}-0", f"chatcmpl-{request_id}"]})
        return True
