"""Evaluations as pages and files: tables, figures and what they say, out of recorded rollouts."""
