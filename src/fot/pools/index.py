"""The index: everything a simulation asks of texts, as arrays, so that it never reads a text.

    index = index_of(pool, PAPER_KERNEL, "boxed")          # built once, then loaded from the pool's `index` folder
    rows = pool.select(32).rows                            # rollouts are addressed by their position in the pool
    cuts = index.cuts(rows, 6000)                          # characters of the prefixes at 6,000 tokens
    index.densities(rows, cuts)                            # markers per 1,000 characters of those prefixes
    index.committed(rows, cuts)                            # number of the answer each stands by, -1 for none
    index.answers[index.final[rows[0]]]                    # an answer's vote key by its number (final: whole text)

Ends are stored as if all texts were joined, rollout after rollout: one sorted array in which a single binary search
counts what lies within any prefix.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

import fot.core.answers
import fot.core.commit
import fot.pools.chunks
import fot.pools.matching
import fot.pools.scan
from fot.core.answers import answer_key
from fot.core.commit import track
from fot.core.markers import PAPER_KERNEL, Kernel
from fot.core.rollout import CHARS_PER_TOKEN
from fot.errors import ConfigError, PoolError
from fot.pools.chunks import Search, join, scan_chunks
from fot.pools.derived import alone, load_derived, save_derived, write_array, write_fields
from fot.pools.read import Pool, Rows
from fot.pools.recipe import code_digest
from fot.pools.scan import Commitments, Markers
from fot.pools.shard import Shard

__all__ = ["Index", "index_of", "index_share"]

Ints = NDArray[np.int64]


class Index:
    """Lengths, markers and commitments of all rollouts of a pool. Methods take rows and arrays of equal length."""

    def __init__(self, pool: Pool, kernel: Kernel, markers: Markers, commitments: Commitments | None) -> None:
        """Join arrays that were built or loaded; use `index_of`."""
        self.kernel = kernel
        self.n_chars: Ints = pool.n_chars
        self.n_tokens: Ints = np.where(pool.n_tokens < 0, estimated_tokens(pool.n_chars), pool.n_tokens)
        """Generated tokens; estimated from the characters where the pool does not know."""
        self._exact = pool.cuts == "exact"
        self._starts: Ints = np.concatenate([[0], np.cumsum(pool.n_chars)])
        self._markers = markers
        self._marker_offsets = np.searchsorted(markers.ends, self._starts, side="right")
        self._subsets: dict[bytes, tuple[Ints, Ints]] = {}
        self._commitments = commitments
        self._token_ends = _token_ends(pool) if self._exact.any() else None
        self._token_offsets: Ints = np.concatenate([[0], np.cumsum(np.where(self._exact, self.n_tokens, 0))])

    @property
    def answers(self) -> tuple[str, ...]:
        """The vote keys of all answers; their numbers are positions in here."""
        return self._committing.keys

    @property
    def _committing(self) -> Commitments:
        if self._commitments is None:
            raise ValueError("this index was made without a commitment detector")
        return self._commitments

    @property
    def markers(self) -> int:
        """How many there are in all texts."""
        return len(self._markers.ends)

    @property
    def committing_rows(self) -> Ints:
        """The rollout of each change of answer, rising; parallel to `committing_answers`."""
        return self._committing.rows

    @property
    def committing_answers(self) -> Ints:
        """The number of the answer of each change, -1 where one is withdrawn."""
        return self._committing.answers

    def with_answers(self, answers: Ints) -> Index:
        """The same index with other numbers for `committing_answers`."""
        other = copy(self)
        other._commitments = replace(self._committing, answers=answers)
        for derived in ("final", "commit_tokens"):
            other.__dict__.pop(derived, None)
        return other

    def cuts(self, rows: Rows, tokens: ArrayLike) -> Ints:
        """Characters of each rollout's prefix at `tokens` tokens (one number, or one for each row).

        All of them where the rollout has no more tokens than that. Otherwise the exact end of the last token, or
        without token ends the same share of the characters as of the tokens, rounded down.
        """
        chars, total = self.n_chars[rows], self.n_tokens[rows]
        tokens = np.broadcast_to(np.maximum(np.asarray(tokens, np.int64), 0), chars.shape)
        cuts = chars * tokens // np.maximum(total, 1)
        if self._token_ends is not None:
            exact = np.flatnonzero(self._exact[rows] & (tokens > 0) & (tokens < total))
            cuts[exact] = self._token_ends[self._token_offsets[rows[exact]] + tokens[exact] - 1]
        return np.where(total <= tokens, chars, cuts)

    def tokens_reaching(self, rows: Rows, chars: Ints) -> Ints:
        """The smallest number of tokens whose prefix holds the first `chars` characters: inverse of `cuts`."""
        total = self.n_tokens[rows]
        tokens = np.minimum(-(-chars * total // np.maximum(self.n_chars[rows], 1)), total)
        if self._token_ends is not None:
            for at in np.flatnonzero(self._exact[rows]).tolist():
                first, last = self._token_offsets[rows[at] : rows[at] + 2]
                reached = int(np.searchsorted(self._token_ends[first:last], chars[at])) + 1
                tokens[at] = min(reached, int(total[at]))
        return np.where(chars <= 0, 0, tokens)

    def marker_counts(self, rows: Rows, cuts: Ints, markers: ArrayLike | None = None) -> Ints:
        """How often markers stand wholly inside the first `cuts` characters.

        `markers`: numbers of the kernel's markers to count; all by default.
        """
        ends, offsets = self._subset(markers)
        return np.searchsorted(ends, self._starts[rows] + cuts, side="right") - offsets[rows]

    def densities(self, rows: Rows, cuts: Ints, markers: ArrayLike | None = None) -> NDArray[np.float64]:
        """Markers per 1,000 characters of the prefixes; an empty prefix has density 0."""
        return 1000.0 * self.marker_counts(rows, cuts, markers) / np.maximum(cuts, 1)

    def _subset(self, markers: ArrayLike | None) -> tuple[Ints, Ints]:
        if markers is None:
            return self._markers.ends, self._marker_offsets
        wanted = np.zeros(len(self.kernel.markers), np.bool_)
        wanted[np.asarray(markers, np.int64)] = True
        key = wanted.tobytes()
        if key not in self._subsets:
            ends = self._markers.ends[wanted[self._markers.which]]
            self._subsets[key] = (ends, np.searchsorted(ends, self._starts, side="right"))
        return self._subsets[key]

    def marker_ends(self, row: int, markers: ArrayLike | None = None) -> Ints:
        """Where the markers of one rollout end, in characters, rising."""
        ends, offsets = self._subset(markers)
        own: Ints = ends[offsets[row] : offsets[row + 1]] - self._starts[row]
        return own

    def token_ends(self, row: int) -> NDArray[np.int32] | None:
        """Where the tokens of one rollout end, in characters; None where the pool does not know."""
        if self._token_ends is None or not self._exact[row]:
            return None
        return self._token_ends[self._token_offsets[row] : self._token_offsets[row + 1]]

    def committed(self, rows: Rows, cuts: Ints) -> Ints:
        """Number of the answer to which each prefix of `cuts` characters commits; -1 for none."""
        found = self._committing
        last = np.searchsorted(found.ends, self._starts[rows] + cuts, side="right") - 1
        standing = last >= self._commitment_offsets[rows]
        numbers = np.full(len(rows), -1, np.int64)
        numbers[standing] = found.answers[last[standing]]
        return numbers

    @cached_property
    def _commitment_offsets(self) -> Ints:
        return np.searchsorted(self._committing.rows, np.arange(len(self.n_chars) + 1))

    @cached_property
    def final(self) -> Ints:
        """Number of each rollout's final answer, -1 for none; over all rows."""
        return self.committed(np.arange(len(self.n_chars)), self.n_chars)

    def final_texts(self, rows: Rows) -> list[str | None]:
        """The final answers as they were written, for a grader."""
        found, offsets = self._committing, self._commitment_offsets
        return [
            found.texts[found.written[offsets[row + 1] - 1]] if self.final[row] >= 0 else None for row in rows.tolist()
        ]

    @cached_property
    def written(self) -> dict[str, str]:
        """For each vote key one text that has it, as it was written: a key is no program any more."""
        return {answer_key(text): text for text in reversed(self._committing.texts)}

    @cached_property
    def commit_tokens(self) -> Ints:
        """Tokens after which each rollout first stands by an answer, -1 where it never does; over all rows."""
        found = self._committing
        stands = np.flatnonzero(found.answers >= 0)
        rows, first = np.unique(found.rows[stands], return_index=True)
        tokens = np.full(len(self.n_chars), -1, np.int64)
        tokens[rows] = self.tokens_reaching(rows, found.ends[stands[first]] - self._starts[rows])
        return tokens

    def commitments(self, row: int) -> list[tuple[int, int]]:
        """One rollout's changes of answer: (characters from which on, number of the answer or -1)."""
        first, last = self._commitment_offsets[row : row + 2]
        ends = self._committing.ends[first:last] - self._starts[row]
        return list(zip(ends.tolist(), self._committing.answers[first:last].tolist(), strict=True))


def estimated_tokens(chars: Ints) -> Ints:
    """Tokens of texts of which only the lengths are known, as `fot.core.rollout` estimates them."""
    return (-np.floor_divide(-chars, CHARS_PER_TOKEN)).astype(np.int64)


def index_of(
    pool: Pool,
    kernel: Kernel = PAPER_KERNEL,
    detector: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Index:
    """The index of a pool for a kernel and a commitment detector (None: markers and lengths alone).

    What is missing is built in one pass over the texts and kept beside the pool, or under `FOT_HOME` when the pool
    cannot be written. It is built anew when the rows, the kernel or the code that finds it change. `progress` is told
    the characters done.
    """
    search, markers, commitments = _search(pool, kernel, detector)
    if search.is_open:
        with alone(pool):  # of several that need it now, one makes it
            search, markers, commitments = _search(pool, kernel, detector)
            if search.is_open:
                made = join(pool, search, scan_chunks(pool, search, progress=progress))
                markers, commitments = markers or made[0], commitments or made[1]
    assert markers is not None  # noqa: S101 — loaded, or scanned for
    return Index(pool, kernel, markers, commitments)


def index_share(
    pool: Pool, kernel: Kernel, detector: str | None, shard: Shard, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Scan the shard's part of the texts and keep what is found; `index_of` then has it."""
    search, _, _ = _search(pool, kernel, detector)
    if search.is_open:
        scan_chunks(pool, search, shard, progress)


def _search(pool: Pool, kernel: Kernel, detector: str | None) -> tuple[Search, Markers | None, Commitments | None]:
    """What is still to be looked for, and what is there."""
    if any(not _is_text(marker) for marker in kernel.markers):
        raise ConfigError(f"kernel {kernel.name} holds a marker that is no text", "give markers in UTF-8")
    if detector is not None:
        track(detector)  # an unknown name fails here
    scan_code = code_digest(fot.pools.matching, fot.pools.scan, fot.pools.chunks)
    markers_name = f"markers-{kernel.digest}-{scan_code}"
    commit_code = code_digest(fot.core.commit, fot.core.answers)
    commitments_name = f"commitments-{detector}-{commit_code}-{scan_code}"
    markers = load_derived(pool, markers_name, Markers)
    commitments = load_derived(pool, commitments_name, Commitments) if detector else None
    search = Search(
        kernel.markers,
        None if markers else markers_name,
        detector,
        None if commitments or not detector else commitments_name,
    )
    return search, markers, commitments


def _is_text(marker: str) -> bool:
    return marker == marker.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class _TokenEnds:
    """The token ends of all rollouts that have them, one rollout after the other."""

    ends: NDArray[np.int32]


def _token_ends(pool: Pool) -> NDArray[np.int32]:
    saved = load_derived(pool, "token-ends", _TokenEnds)
    if saved is None:
        save_derived(pool, "token-ends", partial(_write_token_ends, pool))
        saved = load_derived(pool, "token-ends", _TokenEnds)
    if saved is None:
        raise PoolError(
            f"the token ends of {pool.path} cannot be kept anywhere",
            "point FOT_HOME at a folder that can be written",
        )
    return saved.ends


def _write_token_ends(pool: Pool, folder: Path) -> None:
    """Stream them into the file: they can be many times what else the index holds."""
    write_fields(_TokenEnds(np.empty(0, np.int32)), folder)
    total = int(pool.n_tokens[pool.cuts == "exact"].sum())
    groups = (pool.group(group, "token_ends").flatten().to_numpy() for group in range(pool.row_groups))
    write_array(folder / "ends.npy", np.int32, total, groups)
