"""Every analysis, in the order of a report, with the paper's tables and figures that it corresponds to.

Table 6, the online measurement, has none: no recording holds wall times. `fot bench` measures it on a live server.
"""

from __future__ import annotations

from fot.report.exhibit import Step
from fot.report.steps import behaviour, beside, cost, markers, mechanism, outcome, tuning, votes

__all__ = ["BESIDE", "SECTIONS", "steps"]

SECTIONS: dict[str, tuple[Step, ...]] = {
    "The result": (
        Step("main", "Accuracy and cost of every method", outcome.main, tables=(2, 4, 5), figures=(4,)),
        Step("pareto", "Accuracy against compute", outcome.pareto, figures=(1,)),
        Step("funnel", "One problem, rollout by rollout", cost.funnel, figures=(2,)),
        Step("regimes", "Hard and easy problems", outcome.regimes, tables=(3,)),
        Step("strata", "By difficulty of the problem", outcome.strata, tables=(14,)),
        Step("pass-gap", "From one rollout to the best of k", outcome.pass_gap, tables=(13,)),
    ),
    "The rollouts": (
        Step("profile", "How rollouts end", behaviour.profile, tables=(1,)),
        Step("deciles", "Accuracy by hesitation", behaviour.deciles, tables=(9,)),
        Step("model-density", "Hesitation by model", behaviour.model_density, tables=(10,)),
        Step("markers", "The markers, one by one", markers.markers, tables=(8,)),
        Step("length", "Hesitation and eventual length", behaviour.length),
        Step("signals", "Signals among running rollouts", markers.signals),
        Step("silence", "Rollouts that never answer", behaviour.silence, tables=(11,)),
    ),
    "The vote": (
        Step("concentration", "When the answer changes", votes.concentration, figures=(6,)),
        Step("discordant", "Won and lost problems", votes.discordant, figures=(5,)),
        Step("typology", "Compute removed, votes kept", votes.typology, figures=(3,)),
        Step("no-answer", "The tail without an answer", votes.no_answer, tables=(12,)),
        Step("early-voting", "What early voting banks", votes.early_voting, figures=(8,)),
    ),
    "The mechanism": (
        Step("mechanism", "Signal by early voting", mechanism.mechanism, tables=(7,)),
        Step("keep-and-voting", "Early voting as pruning sharpens", mechanism.keep_and_voting, tables=(20,)),
        Step("schedules", "Schedules and keep ratios", mechanism.schedules, tables=(16,)),
        Step("kernel-size", "How many markers", mechanism.kernel_size, tables=(19,)),
        Step("pool-size", "How many rollouts", mechanism.pool_size, figures=(7,)),
    ),
    "The choice of configuration": (
        Step("sweep", "340 configurations, and a choice among them", tuning.search, figures=(7,)),
        Step("per-model", "A configuration for each model", tuning.per_model, tables=(17,)),
        Step("transfer", "Configurations on other models", tuning.transfer, tables=(18,)),
    ),
    "The cost": (
        Step("attention", "Other kinds of attention", cost.attention, tables=(21,)),
        Step("baselines", "Sample axis and token axis on one basis", cost.baselines, tables=(15,)),
        Step("composition", "The funnel with other methods", cost.composition, tables=(15,)),
    ),
}


BESIDE = Step("beside", "Published beside measured", beside.beside)
"""What `--paper` puts first."""


def steps() -> dict[str, Step]:
    """Every analysis by name."""
    return {step.name: step for section in SECTIONS.values() for step in section} | {BESIDE.name: BESIDE}
