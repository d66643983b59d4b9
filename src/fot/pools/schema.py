"""The columns of a pool, its manifest, and their versions.

A pool is a directory: `manifest.json`, the rows in the Parquet files that the manifest names (its parts, one after the
other), and an `index` folder of derived arrays that may be deleted at any time. Rows are grouped by problem in
first-seen order and, within a problem, sorted by `rollout_id`, from one part into the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from fot.errors import PoolCorrupt, PoolError, PoolSchemaError

__all__ = [
    "COLUMNS",
    "INDEX",
    "MANIFEST",
    "POOL_SCHEMA",
    "REQUIRED",
    "Manifest",
    "RowsFile",
    "is_pool",
    "joint_digest",
    "read_manifest",
    "rows_file",
    "write_manifest",
]

POOL_SCHEMA = "fot.pool/2"
MANIFEST = "manifest.json"
INDEX = "index"

_NAME = pa.dictionary(pa.int32(), pa.string())

COLUMNS = pa.schema(
    [
        pa.field("model", _NAME, nullable=False),
        pa.field("benchmark", _NAME, nullable=False),
        pa.field("problem_id", _NAME, nullable=False),
        pa.field("problem", _NAME),
        pa.field("gold", _NAME),
        pa.field("rollout_id", pa.int64(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("n_tokens", pa.int64()),
        pa.field("finish_reason", _NAME),
        pa.field("token_ends", pa.large_list(pa.field("element", pa.int32(), nullable=False))),
        pa.field("seed", pa.int64()),
        pa.field("prompt_tokens", pa.int64()),
        pa.field("source", _NAME),
        pa.field("unbiased", pa.bool_(), nullable=False),
        pa.field("extra", pa.string()),  # every other field of the row, as one JSON object
        pa.field("n_chars", pa.int64(), nullable=False),  # derived: so that lengths need no text
        pa.field("cut", _NAME, nullable=False),  # derived: exact, interpolated or estimated
    ],
    metadata={"fot.schema": POOL_SCHEMA},
)

REQUIRED = ("model", "benchmark", "problem_id", "rollout_id", "text")


class RowsFile(msgspec.Struct, frozen=True):
    """One Parquet file with rows of a pool."""

    file: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool is. Written last: without it a directory is no pool."""

    schema: str = POOL_SCHEMA
    name: str
    parts: tuple[RowsFile, ...]
    sha256: str
    """Of the rows (of one part's file, or of the parts' digests): on it every derived array depends."""
    rollouts: int
    problems: int
    chars: int
    rejected: int = 0
    """Rows of the imported files that are not in the pool."""
    synthetic: str | None = None
    """Set where the texts were not written by a model: says by what."""
    recipe: str | None = None
    """A digest of all that the rows depend on: what makes the same is not made again."""

    @property
    def rows_bytes(self) -> int:
        """Bytes of all parts."""
        return sum(part.bytes for part in self.parts)


def is_pool(path: Path) -> bool:
    """Whether a directory holds a finished pool."""
    return (path / MANIFEST).is_file()


def read_manifest(path: Path) -> Manifest:
    """The manifest of the pool at `path`; `PoolError` when there is none, or one that cannot be read here."""
    try:
        data = (path / MANIFEST).read_bytes()
    except FileNotFoundError:
        raise PoolError(
            f"{path} is not a pool: it has no {MANIFEST}", "make one with: fot pool import FILE... --out POOL"
        ) from None
    try:
        schema = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("schema", msgspec.Raw(b'"none"'))
        if schema != msgspec.Raw(f'"{POOL_SCHEMA}"'.encode()):
            raise PoolSchemaError(
                f"{path} has the schema {bytes(schema).decode(errors='replace')}; this fot reads {POOL_SCHEMA}",
                "import the original rows again with this version of fot",
            )
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PoolCorrupt(f"{path / MANIFEST} cannot be read: {error}", "import the pool again") from None
    _check_rows(path, manifest)
    return manifest


def _check_rows(path: Path, manifest: Manifest) -> None:
    """A rows file of another size was cut, or is not the one that the manifest speaks of."""
    for part in manifest.parts:
        rows = path / part.file
        if Path(part.file).name != part.file or not rows.is_file():
            raise PoolCorrupt(f"{path} lacks its rows file {part.file}", "import the pool again")
        size = rows.stat().st_size
        if size != part.bytes:
            raise PoolCorrupt(f"{rows} has {size} bytes where its manifest says {part.bytes}", "import the pool again")


def rows_file(path: Path) -> RowsFile:
    """What a manifest says of the rows file at `path`."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return RowsFile(path.name, path.stat().st_size, digest)


def joint_digest(parts: Sequence[RowsFile]) -> str:
    """The identity of the rows of all parts."""
    if len(parts) == 1:
        return parts[0].sha256
    return hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest()


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write the manifest of the pool that is being made in the directory `path`."""
    (path / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
