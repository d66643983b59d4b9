"""Rollouts as a script: what each would have said, and when. A recording without texts."""

from bisect import bisect_right
from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from fot.methods import Context, parse
from fot.replay.simulator import simulate


@dataclass(frozen=True)
class Line:
    """One rollout. `steps` are (tokens, answer): from then on it commits to that answer."""

    tokens: int
    steps: tuple = ()
    density: float = 0.0
    text: str = ""
    confidences: tuple = ()
    probes: dict = field(default_factory=dict)


def line(tokens, answer, density=0.0):
    """A rollout that commits with its last token (None: to nothing)."""
    return Line(tokens, ((tokens, answer),) if answer else (), density)


class Prefix:
    def __init__(self, rollout, line, tokens):
        self.rollout = rollout
        self.tokens = min(tokens, line.tokens)
        self.density = line.density
        self.final_tokens = line.tokens
        self.text = line.text[: len(line.text) * self.tokens // line.tokens]
        self.chars = len(self.text)
        self.confidences = line.confidences[: self.tokens]
        step = bisect_right([at for at, _ in line.steps], self.tokens) - 1
        self.answer = line.steps[step][1] if step >= 0 else None


class Script:
    def __init__(self, lines):
        self.lines = lines

    def __len__(self):
        return len(self.lines)

    def tokens(self, rollout):
        return self.lines[rollout].tokens

    def prefix(self, rollout, tokens):
        return Prefix(rollout, self.lines[rollout], tokens)

    def commitment_tokens(self, rollout):
        return [at for at, _ in self.lines[rollout].steps]

    def probe(self, rollout, tokens):
        return self.lines[rollout].probes.get(tokens, ("", 5))


def play(spec, lines, brief=None):
    """The policy and what it did."""
    policy = parse(spec).build(Context(k=len(lines), problem="p", brief=brief))
    return policy, simulate(policy, Script(lines), follow_commitments=True)


def said(*answers):
    """Rollouts of 10, 20, 30... tokens with these answers."""
    return [line(10 * (at + 1), answer) for at, answer in enumerate(answers)]


STEPS = st.dictionaries(st.integers(1, 40), st.sampled_from(["a", "a", "b", "c", None]), max_size=3)
THOUGHTS = ["Wait, so it is", "Alternatively, try", "one two three", "</think>"]


@st.composite
def lines(draw):
    """Few draws a rollout; what only some methods look at follows from one number."""
    tokens = draw(st.integers(1, 40))
    steps = tuple(
        sorted(((at, answer) for at, answer in draw(STEPS).items() if at <= tokens), key=lambda step: step[0])
    )
    chance = Random(draw(st.integers(0, 99)))
    probes = {at: (chance.choice(["a}", "b}", "hmm a}", "a"]), 3) for at in range(4, tokens, 4)}
    text = " ".join(chance.choices(THOUGHTS, k=chance.randrange(6)))
    confidences = tuple(chance.choices([1.0, 2.0, 5.0], k=tokens))
    return Line(tokens, steps, chance.choice([0.5, 1.0, 2.0, 3.0]), text, confidences, probes)


problems = st.lists(lines(), min_size=1, max_size=9)
