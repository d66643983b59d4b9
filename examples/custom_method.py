"""A method of your own: prune whoever is longest without an answer, and vote. Run it: python examples/custom_method.py

A package offers it to `fot simulate` and `fot solve` by an entry point of the group "fot.methods".
"""

from dataclasses import dataclass

from fot.core.funnel import Funnel
from fot.core.rollout import Rollout
from fot.core.signals import Signal
from fot.methods import Context, Method
from fot.methods.spec import parameter
from fot.replay.recording import TextRecording
from fot.replay.simulator import simulate


@dataclass(frozen=True)
class PatiencePlan:
    """Its parameters: defaults, and what help says of them."""

    tokens: int = parameter(4000, "how long we wait before we choose")
    keep: float = parameter(0.5, "share of the others that runs on")


def build(plan: PatiencePlan, context: Context) -> Funnel:
    """A fresh policy for one problem: a funnel whose signal is the characters written so far."""
    wordy = Signal("wordy", lambda prefix, bank: float(prefix.chars))
    return Funnel(context.k, (plan.tokens,), plan.keep, signal=wordy)


PATIENCE = Method(name="patience", summary="prune the wordiest", plan=PatiencePlan, build=build)

if __name__ == "__main__":
    texts = ["so \\boxed{7}"] + ["hm, " * n + "\\boxed{7}" for n in (10, 20, 30, 40)]
    own = {"model": "m", "benchmark": "b", "problem_id": "p"}
    rollouts = [Rollout(**own, rollout_id=at, text=text, n_tokens=len(text) // 2) for at, text in enumerate(texts)]
    policy = build(PatiencePlan(tokens=12), Context(k=len(rollouts)))
    outcome = simulate(policy, TextRecording(rollouts, "boxed"))
    print(outcome.verdict.answer, *(fate.value for fate in outcome.fates))
