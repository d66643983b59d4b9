"""The words of made-up texts: short phrases without a marker in them, and phrases that hold markers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fot.core.markers import count

__all__ = ["Phrases", "phrases"]

_PHRASES = 300_000
_HALF_PHRASE = 10
_WORDS = """
the of to we a is that so then this and in it let by for with as be which means therefore value sum product term
factor equation root square cube integer prime number even odd digit divisor multiple remainder angle circle radius
triangle side length area volume height line point segment midpoint vertex graph path edge colour count case total
given find compute show check use take write define set both each every first second third next last above below
left right larger smaller equal greater less than between from into over under about after before when where while
only also just still again more most many few some any all one two three four five six seven eight nine ten zero
half twice double triple positive negative real complex constant variable function linear quadratic cubic polynomial
coefficient exponent power logarithm sequence series limit derivative integral matrix vector determinant probability
event expected outcome random choose arrange order pair subset element union intersection mean median maximum minimum
bound parity modulo congruent symmetric similar congruence ratio fraction decimal percent proportion rate speed
distance time work cost price share split add subtract multiply divide simplify expand collect cancel substitute
solve verify deduce assume suppose consider notice observe recall obtain get yields gives leads implies follows holds
""".split()  # noqa: SIM905 - to be read as words
_SIGNS = ("x = 3", "n + 1", "2k", "a^2 + b^2", "(m - 1)", "Δ > 0", "≈ 0.5", "π r", "f(x)", "17", "240", "p/q")
_MARKED = {
    "Wait, ": 22,
    "Wait ": 8,
    "But wait, ": 6,
    "Alternatively, ": 9,
    "perhaps ": 9,
    "Maybe ": 9,
    "actually ": 7,
    "no, ": 7,
    "Let me think ": 5,
    "Let me try ": 5,
    "However, ": 3,
    "instead ": 4,
    "Or ": 2,
    "wrong ": 3,
    "incorrect ": 1,
}
"""Phrases with markers, and how often each is drawn, about as the paper's prevalences have it."""
_CLOSING_WORDS = 40


@dataclass(frozen=True, slots=True)
class Phrases:
    """A long stretch of plain text, and the phrases that are put between cuttings of it."""

    stretch: str
    bounds: NDArray[np.int64]
    """Where phrases begin in the stretch."""
    marked: tuple[str, ...]
    marks: NDArray[np.int64]
    """Markers in each marked phrase."""
    weights: NDArray[np.float64]
    closing: str

    def string(self, chance: np.random.Generator, chars: int, markers: int) -> list[str]:
        """Pieces of about `chars` characters together, with exactly this many markers, wherever they fall."""
        marked = self._marked(chance, markers)
        plain = max(chars - sum(map(len, marked)), 0)
        places = np.sort(chance.random(len(marked))) * plain
        gaps = np.diff(places.astype(np.int64), prepend=0, append=plain)
        starts = chance.integers(0, len(self.bounds) // 2, len(gaps))
        room = self.bounds[-1] - self.bounds[starts]
        ends = np.searchsorted(self.bounds, self.bounds[starts] + np.minimum(gaps, room) - _HALF_PHRASE)
        cuttings = zip(self.bounds[starts].tolist(), self.bounds[ends].tolist(), [*marked, ""], strict=True)
        return [piece for start, end, mark in cuttings for piece in (self.stretch[start:end], mark)]

    def _marked(self, chance: np.random.Generator, markers: int) -> list[str]:
        """Phrases that hold `markers` markers in all."""
        kinds = np.searchsorted(self.weights, chance.random(markers))
        kept = kinds[: int(np.searchsorted(np.cumsum(self.marks[kinds]), markers, side="right"))]
        single = self.marked[int(np.flatnonzero(self.marks == 1)[0])]
        phrases = [self.marked[kind] for kind in kept.tolist()]
        return phrases + [single] * (markers - int(self.marks[kept].sum()))


@cache
def phrases() -> Phrases:
    """The same phrases in every process."""
    chance = np.random.Generator(np.random.PCG64(20_250_101))
    weights = 1 / (np.arange(1, len(_WORDS) + 1) + 5)
    words = chance.choice(len(_WORDS), (_PHRASES, 5), p=weights / weights.sum()).tolist()
    sizes = chance.integers(2, 6, _PHRASES).tolist()
    ends = chance.choice([" ", ", ", ". ", ".\n\n", " = "], _PHRASES, p=[0.67, 0.13, 0.11, 0.03, 0.06]).tolist()
    signs = chance.integers(0, 8 * len(_SIGNS), _PHRASES).tolist()
    plain = []
    for own, size, end, sign in zip(words, sizes, ends, signs, strict=True):
        text = " ".join([_WORDS[word] for word in own[:size]])
        plain.append(f"{text} {_SIGNS[sign]}{end}" if sign < len(_SIGNS) else f"{text}{end}")
    stretch = "".join(plain)
    assert not count(stretch)  # noqa: S101 - a marker in here would be counted twice
    likely = np.cumsum(np.array(list(_MARKED.values()), np.float64))
    return Phrases(
        stretch=stretch,
        bounds=np.cumsum([0, *map(len, plain)]),
        marked=tuple(_MARKED),
        marks=np.array([count(text) for text in _MARKED]),
        weights=likely / likely[-1],
        closing=" ".join(_WORDS[:_CLOSING_WORDS]),
    )
