"""Funnel of Thoughts: self-consistency at a fraction of its price."""

__version__ = "0.1.0"
