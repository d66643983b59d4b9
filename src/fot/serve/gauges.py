"""Figures for Prometheus, in a registry of the server's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from fot.online.result import Result

__all__ = ["Gauges"]


class Gauges:
    """All that is counted. No label holds anything that a client wrote."""

    def __init__(self, running: Callable[[], float], waiting: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        made: Any = {"registry": self._registry}
        self.requests = Counter("fot_requests", "Requests answered.", ["mode", "status"], **made)
        self._tokens = Counter("fot_generated_tokens", "Tokens generated for votes.", **made)
        self._overshoot = Counter("fot_overshoot_tokens", "Of them, after a rollout's decision.", **made)
        self._rollouts = Counter("fot_rollouts", "Rollouts, by what became of them.", ["fate"], **made)
        self._seconds = Histogram(
            "fot_run_seconds", "Wall time of a run.", buckets=(0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600), **made
        )
        self.up = Gauge("fot_upstream_up", "Does the upstream answer?", ["upstream"], **made)
        Gauge("fot_running_problems", "Problems underway.", **made).set_function(running)
        Gauge("fot_waiting_problems", "Problems in the queue.", **made).set_function(waiting)

    def ran(self, result: Result) -> None:
        """Count a run that came to a result."""
        self._tokens.inc(max(result.usage.completion_tokens, 0))
        self._overshoot.inc(max(result.usage.overshoot_tokens, 0))
        self._seconds.observe(result.wall_s)
        for rollout in result.rollouts:
            self._rollouts.labels(rollout.fate.value).inc()

    def text(self) -> bytes:
        """The page."""
        return generate_latest(self._registry)
