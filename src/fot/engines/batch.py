"""A batch of rollouts that take their steps together, on torch and transformers.

Every row's keys and values cover all of its tokens but the last, which the next step feeds in. So a row can leave the
batch, wait outside and come back wherever the others have got to meanwhile; rows are padded on the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from fot.engines.base import Sampling

__all__ = ["Batch", "Detokeniser", "Row"]

_CONTEXT_IDS = 6  # what a tokenizer needs to see before a token in order to spell it
_HALF = "\ufffd"


class Detokeniser:
    """Spells tokens one by one; a character that is not complete yet is held back."""

    def __init__(self, tokenizer: Any, prompt: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._ids = list(prompt[-_CONTEXT_IDS:])
        self._begin = 0
        self._spelt = len(self._ids)

    def push(self, token: int) -> str:
        """The text that this token completes."""
        self._ids.append(token)
        return self._take(allow_halves=False)

    def rest(self) -> str:
        """What is held, as far as it can be spelt."""
        return self._take(allow_halves=True)

    def _take(self, *, allow_halves: bool) -> str:
        known = self._decode(self._ids[self._begin : self._spelt])
        text = self._decode(self._ids[self._begin :])
        if len(text) <= len(known) or (text.endswith(_HALF) and not allow_halves):
            return ""
        self._begin, self._spelt = self._spelt, len(self._ids)
        return text[len(known) :]

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text


@dataclass(eq=False)
class Row:
    """One rollout: its tokens, and its keys and values while it stands outside the batch."""

    ids: list[int]
    prompt_tokens: int
    sampling: Sampling
    generator: Any
    alternatives: int = 0
    kept: list[tuple[Any, Any]] = field(default_factory=list)
    confidence: float | None = None

    @property
    def new_tokens(self) -> int:
        """Tokens that it has generated."""
        return len(self.ids) - self.prompt_tokens

    @property
    def cached(self) -> int:
        """Tokens that its keys and values cover."""
        return len(self.ids) - 1


class Batch:
    """The rows that are stepping. `rows` and the tensors agree at all times: who leaves takes its memory along."""

    def __init__(self, model: Any) -> None:
        self._model = model
        # Imported by name so that nothing on the live path depends on torch until a model is wanted.
        self._torch = import_module("torch")
        self._caches = import_module("transformers.cache_utils")
        self._layers: list[tuple[Any, Any]] = []
        self._prompt: tuple[list[int], list[tuple[Any, Any]]] = ([], [])
        self.rows: list[Row] = []

    @property
    def kv_tokens(self) -> int:
        """Tokens that the batch's keys and values have room for."""
        return int(self._layers[0][0].shape[0] * self._layers[0][0].shape[2]) if self._layers else 0

    def prefill(self, row: Row) -> int:
        """Compute a new row's keys and values; returns how many of its prompt's tokens were not computed again."""
        torch = self._torch
        known, layers = self._prompt
        shared = _common(known, row.ids)
        if shared < len(row.ids) - 1:
            cache = self._caches.DynamicCache()
            for number, (keys, values) in enumerate(layers if shared else []):
                cache.update(keys[:, :, :shared], values[:, :, :shared], number)
            rest = torch.tensor([row.ids[shared:]], device=self._model.device)
            with torch.inference_mode():
                self._model(input_ids=rest, past_key_values=cache, use_cache=True)
            layers = _layers_of(cache)
            if not known or shared < len(known):  # another prompt, not this one gone on with
                self._prompt = (list(row.ids), layers)
        row.kept = [(keys[:, :, : row.cached], values[:, :, : row.cached]) for keys, values in layers]
        return shared

    def join(self, row: Row) -> None:
        """Take a row in."""
        width = max(self._width, row.cached)
        if not self._layers:
            self._layers = row.kept
        else:
            self._layers = [
                (self._cat(keys, more_keys, width), self._cat(values, more_values, width))
                for (keys, values), (more_keys, more_values) in zip(self._layers, row.kept, strict=True)
            ]
        row.kept = []
        self.rows.append(row)

    def leave(self, leaving: Sequence[Row], *, keep: bool) -> None:
        """Let rows go, and their keys and values with them; with `keep` each takes its own along."""
        if not leaving:
            return
        for row in leaving if keep else ():
            at = self.rows.index(row)
            row.kept = [
                (keys[at : at + 1, :, -row.cached :].clone(), values[at : at + 1, :, -row.cached :].clone())
                for keys, values in self._layers
            ]
        stay = [at for at, row in enumerate(self.rows) if row not in leaving]
        self.rows = [self.rows[at] for at in stay]
        width = max((row.cached for row in self.rows), default=0)
        index = self._torch.tensor(stay, dtype=self._torch.long, device=self._model.device)
        self._layers = [
            (keys.index_select(0, index)[:, :, -width:], values.index_select(0, index)[:, :, -width:])
            for keys, values in self._layers
            if stay
        ]

    def step(self) -> None:
        """One token more for every row."""
        torch, device = self._torch, self._model.device
        width = self._width
        lengths = torch.tensor([[row.cached] for row in self.rows], device=device)
        mask = (torch.arange(width + 1, device=device)[None, :] >= width - lengths).long()
        last = torch.tensor([[row.ids[-1]] for row in self.rows], device=device)
        cache = self._caches.DynamicCache()
        for number, (keys, values) in enumerate(self._layers):
            cache.update(keys, values, number)
        with torch.inference_mode():
            out = self._model(
                input_ids=last, attention_mask=mask, position_ids=lengths, past_key_values=cache, use_cache=True
            )
            self._layers = _layers_of(cache)
            for row, token in zip(self.rows, self._draw(out.logits[:, -1].float()), strict=True):
                row.ids.append(token)

    @property
    def _width(self) -> int:
        return int(self._layers[0][0].shape[2]) if self._layers else 0

    def _cat(self, many: Any, one: Any, width: int) -> Any:
        padded = [self._torch.nn.functional.pad(t, (0, 0, width - t.shape[2], 0)) for t in (many, one)]
        return self._torch.cat(padded, dim=0)

    def _draw(self, logits: Any) -> list[int]:
        """The next token of every row: whoever samples alike is drawn together, where the model is."""
        torch = self._torch
        tokens = torch.empty(len(self.rows), dtype=torch.long, device=logits.device)
        for way in dict.fromkeys(_way(row) for row in self.rows):
            at = [number for number, row in enumerate(self.rows) if _way(row) == way]
            rows, own = [self.rows[number] for number in at], logits[at]
            if alternatives := rows[0].alternatives:
                told = -torch.log_softmax(own, -1).topk(alternatives).values.mean(-1)
                for row, confidence in zip(rows, told.tolist(), strict=True):
                    row.confidence = confidence
            tokens[at] = self._sampled(own, rows)
        drawn: list[int] = tokens.tolist()
        return drawn

    def _sampled(self, logits: Any, rows: Sequence[Row]) -> Any:
        """One token a row. Each row brings a number of its own chance, so who stands beside it changes nothing."""
        torch, sampling = self._torch, rows[0].sampling
        temperature = 1.0 if sampling.temperature is None else sampling.temperature
        if temperature <= 0.0:
            return logits.argmax(-1)
        likeliest = min(sampling.top_k or logits.shape[-1], logits.shape[-1])
        best, order = logits.topk(likeliest)
        probabilities = torch.softmax(best / temperature, -1)
        if sampling.top_p is not None and sampling.top_p < 1.0:
            before = probabilities.cumsum(-1) - probabilities
            probabilities[before >= sampling.top_p] = 0.0
        if sampling.min_p:
            probabilities[probabilities < sampling.min_p * probabilities[:, :1]] = 0.0
        sums = probabilities.cumsum(-1)
        chance = torch.cat([torch.rand(1, 1, generator=row.generator) for row in rows]).to(logits.device)
        place = torch.searchsorted(sums, chance * sums[:, -1:], right=True)
        last = (probabilities > 0).sum(-1, keepdim=True) - 1  # rounding must not lead behind the tokens that are left
        return order.gather(-1, place.minimum(last)).squeeze(-1)


def _way(row: Row) -> tuple[object, ...]:
    """What two rows have in common that may be drawn together."""
    sampling = row.sampling
    return (row.alternatives, sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p)


def _layers_of(cache: Any) -> list[tuple[Any, Any]]:
    return [(layer.keys, layer.values) for layer in cache.layers]


def _common(known: Sequence[int], ids: Sequence[int]) -> int:
    """How many tokens two prompts begin alike with."""
    pairs = zip(known, ids, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(known), len(ids)))
