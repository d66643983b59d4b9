r"""Multiple choice: which option an answer names.

A letter from A to J counts in the ways in which models write one: `C`, `(C)`, `C.`, `\text{C}`, `\textbf{(C)}`,
`Option C`, `C) and its text`. A reference may be a letter, or a letter with its option's text (`C) 5 m`); with the text
an answer that is that text is right as well. Text is never guessed at: what names no option is undecided.
"""

from __future__ import annotations

import re

from fot.core.answers import answer_key
from fot.grading.base import Grade, Judgement, StringGrader

__all__ = ["ChoiceGrader", "read_choice"]

_STYLE = re.compile(r"\\(?:boxed|text|textbf|textit|textrm|mathrm|mathbf|mathsf|mbox|boldsymbol)\s*\{([^{}]*)\}")
_LEAD = re.compile(
    r"(?:(?:the\s+)?(?:correct\s+)?(?:final\s+)?(?:answer|option|choice)\s*(?:is\b|:)?\s*)+", re.IGNORECASE
)
_ALONE = re.compile(r"[(\[]?\s*([A-Ja-j])\s*[)\]]?[.:]?\Z")
_WITH_TEXT = re.compile(r"(?:[(\[]\s*([A-J])\s*[)\]][.:]?|([A-J])\s*[).:\]])\s*(\S.*)\Z", re.DOTALL)
_SEVERAL = re.compile(r"[(\[]?[A-J][).\]]?(?:\s*(?:,|and|or|&|/)\s*[(\[]?[A-J][).\]]?)+\Z")
_ANOTHER = re.compile(r"\s*(?:,|and\b|or\b|&|/)\s*(?:[(\[]\s*[A-J]\s*[)\]]|[A-J]\s*[).\]]|[A-J]\Z)")
_LONGEST = 4096


def read_choice(answer: str) -> tuple[str | None, str]:
    """The letter that an answer names (None: none, or several), and the text beside it."""
    if len(answer) > _LONGEST:
        return None, answer
    plain = _STYLE.sub(r" \1 ", _STYLE.sub(r" \1 ", answer.strip().strip("$")))
    text = " ".join(plain.replace("*", " ").split()).strip("{} ")
    text = re.sub(r"\\[,;:! ]", " ", text).strip()
    lead = _LEAD.match(text)
    bare = text[lead.end() :] if lead else text
    alone = _ALONE.match(bare)
    if alone:
        return alone.group(1).upper(), ""
    with_text = _WITH_TEXT.match(bare)
    if with_text and not _ANOTHER.match(with_text.group(3)):
        return with_text.group(1) or with_text.group(2), with_text.group(3)
    return None, text


class ChoiceGrader(StringGrader):
    """Correct when the answer names the reference's option."""

    name = "choice"
    version = "choice/2"

    def judge(self, gold: str, answer: str) -> Grade:
        wanted, wanted_text = read_choice(gold)
        if wanted is None:
            return Grade(Judgement.UNDECIDED, "the reference names no option")
        letter, text = read_choice(answer)
        if letter is not None:
            return Grade(*(_RIGHT if letter == wanted else _OTHER))
        if wanted_text and _folded(text) == _folded(wanted_text):
            return Grade(Judgement.CORRECT, "the option's text")
        if _SEVERAL.match(text):
            return Grade(Judgement.WRONG, "several options")
        return Grade(Judgement.UNDECIDED, "names no option by its letter")


_RIGHT = (Judgement.CORRECT, "the same letter")
_OTHER = (Judgement.WRONG, "another letter")


def _folded(text: str) -> str:
    return answer_key(text).casefold().replace(" ", "")
