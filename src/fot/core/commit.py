r"""When has a rollout committed to an answer, and to which?

A detector is a function of a prefix alone. Its tracker reads a text once, in pieces of any size and in linear time, and
reports that function as steps: for a prefix of c characters the committed answer is that of the last `Commitment` with
`end <= c` (none before the first; `answer is None` withdraws). The same tracker serves the index, which sees whole
texts, and a live run, which sees chunks.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import NamedTuple, Protocol

from fot.core.registry import unknown_name

__all__ = ["DETECTORS", "Commitment", "Tracker", "commitments", "committed_answer", "track"]

_REASONING_END = "</think>"


class Commitment(NamedTuple):
    """From `end` characters on, the rollout stands by `answer` (None: by nothing)."""

    end: int
    answer: str | None


class Tracker(Protocol):
    """Follows one rollout's text."""

    def feed(self, chunk: str) -> list[Commitment]:
        """Take the next piece in; returns the changes that it brings, by rising `end`."""
        ...


class _Boxed:
    r"""The last closed `\boxed{…}` with balanced braces and a body that is not blank.

    A box that stands word for word in the prompt is an echo of it, not an answer, until the reasoning has closed.
    """

    _TOKEN = re.compile(r"\\boxed\{|[{}]|</think>")
    _LONGEST = len(_REASONING_END)

    def __init__(self, prompt: str | None = None) -> None:
        self._text = io.StringIO()  # random access to what came, without joining it again at every piece
        self._tail = ""
        self._length = 0
        self._depth = 0
        self._open: list[tuple[int, int]] = []  # (depth, where the box starts)
        self._last_start = -1
        self._echoes = _boxes(prompt) if prompt else frozenset()

    def feed(self, chunk: str) -> list[Commitment]:
        self._text.seek(0, io.SEEK_END)
        self._text.write(chunk)
        window = self._tail + chunk
        base = self._length - len(self._tail)
        self._length += len(chunk)
        found: list[Commitment] = []
        scanned = 0
        for token in self._TOKEN.finditer(window):
            scanned = token.end()
            closed = self._step(token.group(), base + token.start(), base + token.end())
            if closed is not None:
                found.append(closed)
        self._tail = window[max(scanned, len(window) - self._LONGEST + 1) :]
        return found

    def _step(self, token: str, start: int, end: int) -> Commitment | None:
        if token == _REASONING_END:
            self._echoes = frozenset()
            return None
        if token == "}":
            return self._close(end)
        if token != "{":
            self._open.append((self._depth, start))
        self._depth += 1
        return None

    def _close(self, end: int) -> Commitment | None:
        if self._depth == 0:
            return None
        self._depth -= 1
        if not self._open or self._open[-1][0] != self._depth:
            return None
        _, start = self._open.pop()
        # An outer box that closes after an inner one started earlier: the inner one is still the last.
        if start <= self._last_start:
            return None
        self._text.seek(start)
        box = self._text.read(end - start)
        body = box[len("\\boxed{") : -1].strip()
        if not body or box in self._echoes:
            return None
        self._last_start = start
        return Commitment(end, body)


def _boxes(text: str) -> frozenset[str]:
    """Every closed box of a prompt, word for word."""
    found = set()
    opened: list[int] = []
    for token in re.finditer(r"\\boxed\{|[{}]", text):
        if token.group() == "}":
            start = opened.pop() if opened else -1
            if start >= 0:
                found.add(text[start : token.end()])
        else:
            opened.append(token.start() if token.group() != "{" else -1)
    return frozenset(found)


_STYLE = r"\\(?:text|textbf|mathrm|mathbf)\{"
_STATED = r"(?i:answer)[\s*_}]{0,6}(?:(?i:is)\b|[:=])[\s*_:]{0,8}"
_OPENING = r"[\s*_(\[$]{0,6}"
# One search finds where a statement may begin; only there are the patterns tried. Twice as fast as four searches.
_BEGINNING = re.compile(r"[aA\\](?:(?ai:nswer)|boxed\{)")
_LETTER_ENDS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_STATED}{_OPENING}(?:{_STYLE})?[\s(]{{0,3}}(?P<a>[A-J])",
        rf"{_STATED}(?i:(?:option|choice)\s){_OPENING}(?P<a>[A-J])",
        r"\\boxed\{[\s(]{0,3}(?P<a>[A-J])[\s).]{0,3}\}",
        rf"\\boxed\{{\s{{0,3}}{_STYLE}[\s(]{{0,3}}(?P<a>[A-J])[\s).]{{0,3}}\}}\s{{0,3}}\}}",
    )
)
_LONGEST_STATEMENT = 60
_WORD_GOES_ON = re.compile(r"[\w']")


class _Letters:
    """The last stated option letter, wherever it stands."""

    def __init__(self) -> None:
        self._tail = ""
        self._length = 0
        self._seen = 0
        self._standing: str | None = None
        self._fresh: tuple[int, str | None] | None = None  # a letter that ends the text so far, and what it replaced

    def feed(self, chunk: str) -> list[Commitment]:
        if not chunk:
            return []
        found = self._withdraw(chunk[0])
        window = self._tail + chunk
        base = self._length - len(self._tail)
        self._length += len(chunk)
        for end, letter in self._statements(window, base):
            self._fresh = (end, self._standing)
            found.append(Commitment(end, letter))
            self._standing = letter
            if end < self._length:
                found += self._withdraw(window[end - base])
        self._seen = self._length
        self._tail = window[-_LONGEST_STATEMENT:]
        return found

    def _statements(self, window: str, base: int) -> list[tuple[int, str]]:
        ends: dict[int, str] = {}
        for beginning in _BEGINNING.finditer(window):
            for pattern in _LETTER_ENDS:
                match = pattern.match(window, beginning.start())
                if match and base + match.end() > self._seen:
                    ends[base + match.end()] = match.group("a")
        return sorted(ends.items())

    def _withdraw(self, following: str) -> list[Commitment]:
        """A letter that turns out to begin a word was no statement."""
        fresh, self._fresh = self._fresh, None
        if fresh is None or not _WORD_GOES_ON.match(following):
            return []
        self._standing = fresh[1]
        return [Commitment(fresh[0] + 1, self._standing)]


class _AfterReasoning:
    """Runs a tracker on what follows the last `</think>`; each further one begins anew."""

    def __init__(self, make: Callable[[], Tracker]) -> None:
        self._make = make
        self._inner: Tracker | None = None
        self._tail = ""
        self._length = 0
        self._start = 0
        self._answer: str | None = None

    def feed(self, chunk: str) -> list[Commitment]:
        window = self._tail + chunk
        base = self._length - len(self._tail)
        self._length += len(chunk)
        found: list[Commitment] = []
        done, tag = len(self._tail), 0
        while (at := window.find(_REASONING_END, tag)) >= 0:
            tag = at + len(_REASONING_END)
            found += self._forward(window[done:tag])
            found += self._restart(base + tag)
            done = tag
        found += self._forward(window[done:])
        self._tail = window[max(tag, len(window) - len(_REASONING_END) + 1) :]
        return found

    def _forward(self, piece: str) -> list[Commitment]:
        if self._inner is None:
            return []
        found = [Commitment(self._start + end, answer) for end, answer in self._inner.feed(piece)]
        if found:
            self._answer = found[-1].answer
        return found

    def _restart(self, start: int) -> list[Commitment]:
        self._inner, self._start = self._make(), start
        withdrawn, self._answer = self._answer is not None, None
        return [Commitment(start, None)] if withdrawn else []


class _Fences:
    """The body of the last fenced code block that has closed."""

    _FENCE = re.compile(r" {0,8}```")
    _HEAD = 64  # how much of a line is looked at to tell a fence

    def __init__(self) -> None:
        self._head = ""
        self._body: list[str] | None = None  # pieces since the opening fence
        self._line_at = 0  # how many of them lie before this line
        self._reported = 0  # of this line's steps
        self._before: str | None = None
        self._standing: str | None = None
        self._length = 0

    def feed(self, chunk: str) -> list[Commitment]:
        found: list[Commitment] = []
        for piece in re.findall(r"[^\n]*\n|[^\n]+", chunk):
            found += self._take(piece)
        return found

    def _take(self, piece: str) -> list[Commitment]:
        line_start = self._length - len(self._head)
        known = len(self._head)
        self._head = (self._head + piece)[: self._HEAD] if known < self._HEAD else self._head
        self._length += len(piece)
        found: list[Commitment] = []
        if self._body is not None:
            self._body.append(piece)
            steps = self._steps()[self._reported :] if known < self._HEAD else []
            for end, closed in steps:
                found.append(Commitment(line_start + end, self._turn(closed)))
                self._reported += 1
        if piece.endswith("\n"):
            self._end_line()
        return found

    def _steps(self) -> list[tuple[int, bool]]:
        """Where the current line comes to close the block, and where it turns out not to."""
        fence = self._FENCE.match(self._head)
        if fence is None:
            return []
        stray = re.compile(r"\S").search(self._head, fence.end())
        return [(fence.end(), True)] + ([(stray.end(), False)] if stray else [])

    def _turn(self, closed: bool) -> str | None:
        if closed:
            body = "".join((self._body or [])[: self._line_at])
            self._before, self._standing = self._standing, body if body.strip() else self._standing
        else:
            self._standing = self._before
        return self._standing

    def _end_line(self) -> None:
        if self._body is None:
            self._body = [] if self._FENCE.match(self._head) else None
        elif self._reported == 1:
            self._body = None
        self._head, self._reported = "", 0
        self._line_at = len(self._body or ())


class _FinalAnswer:
    """What the rest of the line says after the last `Final Answer:`."""

    _STATED = re.compile(r"[fF](?=(?i:inal answer)[*_]{0,2}:[ \t*_]{0,8}(?P<value>[^\s*_][^\n]{0,79}))")
    _LONGEST = 120

    def __init__(self) -> None:
        self._tail = ""
        self._length = 0

    def feed(self, chunk: str) -> list[Commitment]:
        window = self._tail + chunk
        base = self._length - len(self._tail)
        found: list[Commitment] = []
        until = len(window)
        statements = []
        for match in reversed(list(self._STATED.finditer(window))):
            start = match.start("value")
            statements.append((start, match.group("value")[: until - start]))
            until = start
        for start, value in reversed(statements):
            for size in range(max(1, self._length - base - start + 1), len(value) + 1):
                found.append(Commitment(base + start + size, value[:size].rstrip(" \t*_.") or None))
        self._length += len(chunk)
        self._tail = window[-self._LONGEST :]
        return found


class _Paper:
    """`boxed`; without one the last stated letter, then `Final Answer:` (the paper's extraction)."""

    def __init__(self, prompt: str | None = None) -> None:
        self._ranks: list[Tracker] = [_Boxed(prompt), _Letters(), _FinalAnswer()]
        self._answers: list[str | None] = [None, None, None]

    def feed(self, chunk: str) -> list[Commitment]:
        steps = [(c.end, rank, c.answer) for rank, part in enumerate(self._ranks) for c in part.feed(chunk)]
        found: list[Commitment] = []
        for end, rank, answer in sorted(steps, key=lambda step: step[:2]):
            before = self._standing()
            self._answers[rank] = answer
            if self._standing() != before or rank == 0:
                found.append(Commitment(end, self._standing()))
        return found

    def _standing(self) -> str | None:
        return next((answer for answer in self._answers if answer is not None), None)


DETECTORS: dict[str, Callable[[str | None], Tracker]] = {
    "boxed": _Boxed,
    "choice": lambda prompt: _AfterReasoning(_Letters),
    "code": lambda prompt: _AfterReasoning(_Fences),
    "paper": _Paper,
}


def track(detector: str, prompt: str | None = None) -> Tracker:
    """A fresh tracker of the named detector; `prompt` lets it tell echoes of the question from answers."""
    if detector not in DETECTORS:
        raise unknown_name("commitment detector", detector, DETECTORS)
    return DETECTORS[detector](prompt)


def commitments(text: str, detector: str, prompt: str | None = None) -> list[Commitment]:
    """Every change of the committed answer over the prefixes of a whole text."""
    return track(detector, prompt).feed(text)


def committed_answer(prefix: str, detector: str, prompt: str | None = None) -> str | None:
    """What a prefix commits to: the definition."""
    steps = commitments(prefix, detector, prompt)
    return steps[-1].answer if steps else None
