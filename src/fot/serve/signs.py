"""Does a chat want an answer that can be told from a text? Only on such a one a vote can be taken.

Nobody can be sure before the model has written; these are the signs that hold often enough to be a default. What they
miss is passed through and says so, and `when` or the key `fot` overrule them.
"""

from __future__ import annotations

import re

__all__ = ["asks_for_form", "looks_answerable"]

_FORMS = ("\\boxed", "boxed{", "Answer:")
"""What a prompt that wants an answer in a form says."""

_FORMULA = r"\$[^$]+\$ | \\[(\[] | \\[a-z]+\{ | \d\s*[-+*/^=<>\u00d7\u00f7]\s*[\d(] | [a-z]\s*(?:[=^]|\*\*)\s*[-\d(]"
_FIGURE_IN_A_QUESTION = r"\d .* [?\uff1f]"
_TASK = r"""\b (?:
    how\s(?:many|much|far|long|often|old|fast|tall) | what\s(?:fraction|percentage|number) | find\s(?:the|all|a|an|how)
    | calculate | compute | determine | evaluate | simplify | solve | prove\sthat | probability | remainder
) \b"""
_OPTIONS = r"(?:^|[\s(])A[).:] .* [\s(]B[).:]"
_PROGRAM = r"``` | \b (?: function | program | code | implement | class | script | algorithm | stdin ) \b"

_SIGNS = {
    "boxed": (_FORMULA, _FIGURE_IN_A_QUESTION, _TASK),
    "choice": (_OPTIONS,),
    "code": (_PROGRAM,),
    "paper": (_FORMULA, _FIGURE_IN_A_QUESTION, _TASK, _OPTIONS),
}
"""By detector of commitment, what a question for it has."""
_FLAGS = re.VERBOSE | re.DOTALL | re.IGNORECASE
_FOUND = {commit: [re.compile(sign, _FLAGS) for sign in signs] for commit, signs in _SIGNS.items()}


def asks_for_form(text: str) -> bool:
    """Is a form of answer named?"""
    return any(form in text for form in _FORMS)


def looks_answerable(question: str, commit: str) -> bool:
    """Has the question a sign of a problem? Of a detector that is not known here, always."""
    signs = _FOUND.get(commit)
    return signs is None or any(sign.search(question) for sign in signs)
