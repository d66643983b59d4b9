"""What the engines of this process have in common."""

from __future__ import annotations

from fot.engines.base import Capabilities
from fot.errors import ConfigError

__all__ = ["LocalEngine"]


class LocalEngine:
    """Runs at most `parallel` rollouts at once, and tells everything about them."""

    has_barrier = False

    def __init__(self, parallel: int) -> None:
        if parallel < 1:
            raise ConfigError(f"parallel={parallel} is too few", "At least one rollout must run.")
        self._parallel = parallel

    async def capabilities(self) -> Capabilities:
        return Capabilities(
            exact_counts=True,
            token_ends=True,
            seeds=True,
            abort="explicit",
            resume=True,
            barrier=self.has_barrier,
            logprobs=True,
            max_parallel=self._parallel,
        )
