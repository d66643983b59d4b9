"""Running policies on recorded rollouts."""
