"""Algorithm 1 once more, for the tests, straight from the paper: texts are sliced, markers counted with str.count.

Only what makes two answers one vote is taken from the project: it has tests of its own.
"""

import re

from fot.core.answers import answer_key

MARKERS = [
    "perhaps",
    "Wait,",
    "Wait",
    "actually",
    "wrong",
    "However",
    "Or ",
    "no,",
    "Alternatively",
    "But wait",
    "Actually",
    "Maybe",
    "incorrect",
    "instead",
    "I was wrong",
    "Let me think",
    "Let me reconsider",
    "I think I made",
    "Re-examining",
    "This isn't",
    "Let me try",
]


def boxed(text):
    """The last closed box with something in it, by trying every box from its own start."""
    answer = None
    for opening in re.finditer(r"\\boxed\{", text):
        depth = 1
        for at in range(opening.end(), len(text)):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            if depth == 0:
                body = text[opening.end() : at].strip()
                answer = body or answer
                break
    return answer


def sliced(rollout, tokens):
    text, total, ends = rollout["text"], rollout["n_tokens"], rollout.get("token_ends")
    if total <= tokens:
        return text
    return text[: ends[tokens - 1]] if ends else text[: len(text) * tokens // total]


def density(text):
    return 1000 * sum(text.count(marker) for marker in MARKERS) / len(text) if text else 0


def plurality(answers):
    counts: dict[str, int] = {}
    for answer in map(answer_key, answers):
        counts[answer] = counts.get(answer, 0) + 1
    return max(counts, key=lambda answer: counts[answer], default=None), counts


def funnel(rollouts, checkpoints, keep, minimum=2, early_voting=True):
    active, bank = list(range(len(rollouts))), []
    stops = [rollout["n_tokens"] for rollout in rollouts]
    fates = ["finished"] * len(rollouts)
    for t in checkpoints:
        if len(active) <= minimum:
            break
        for i in list(active) if early_voting else []:
            answer = boxed(sliced(rollouts[i], t))
            if answer is not None:
                bank.append(answer)
                active.remove(i)
                stops[i], fates[i] = min(t, stops[i]), "banked"
        if len(active) <= minimum:
            continue
        densities = {i: density(sliced(rollouts[i], t)) for i in active}
        n = max(minimum, int(len(active) * keep))
        chosen = sorted(active, key=lambda i: (densities[i], i))[:n]
        for i in active:
            if i not in chosen:
                stops[i], fates[i] = min(t, stops[i]), "pruned"
        active = sorted(chosen)
    finals = [boxed(rollouts[i]["text"]) for i in active]
    answer, votes = plurality(bank + [final for final in finals if final is not None])
    return {"answer": answer, "votes": votes, "stops": stops, "fates": fates}
