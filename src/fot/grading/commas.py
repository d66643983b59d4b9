r"""Commas: between the parts of a list, or within a number that is written in thousands.

    separate("1,234")            ->  "1234"
    separate("(100,200)")        ->  "(100, 200)"
    separate("1,000, 2,000")     ->  "1000, 2000"

Inside of a list's brackets a comma is between parts, unless the same list has commas with a blank beside them.
"""

from __future__ import annotations

import re

__all__ = ["is_in_thousands", "separate", "split_list"]

_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!,?\d)", re.ASCII)


def is_in_thousands(text: str) -> bool:
    """Is the text one number in thousands, and nothing else?"""
    return bool(_THOUSANDS.fullmatch(text))


def split_list(text: str) -> list[str]:
    """The parts between the commas and semicolons that stand in no bracket, after `separate`."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "{([") - (character in "})]")
        if character in ",;" and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def separate(text: str) -> str:
    """The text with a blank after every comma between parts, and none within numbers."""
    lists = _lists(text)
    loose = {lists[place] for place, character in enumerate(text) if character == "," and text[place + 1 :][:1] == " "}

    def written(match: re.Match[str]) -> str:
        holder = lists[match.start()]
        is_number = not holder or holder in loose
        return match.group().replace(",", "" if is_number else ", ")

    return _THOUSANDS.sub(written, text)


def _lists(text: str) -> list[int]:
    r"""For every place the number of the list's bracket that it stands in; 0 for none. `{` of LaTeX is no bracket."""
    holders, open_brackets = [], [0]
    for place, character in enumerate(text):
        if character in "([" or (character == "{" and text[place - 1 : place] == "\\"):
            open_brackets.append(place + 1)
        elif character == "{":
            open_brackets.append(open_brackets[-1])
        elif character in ")]}" and len(open_brackets) > 1:
            open_brackets.pop()
        holders.append(open_brackets[-1])
    return holders
