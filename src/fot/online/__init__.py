"""Policies on running engines.

fot.online.api          solve, solve_sync, stream: one problem, from Python
fot.online.controller   Controller: rollouts on an engine, driven by a policy
fot.online.text         LiveText: one rollout as it comes, cut at any number of tokens
fot.online.events       what a run tells those who watch it
fot.online.journal      rows on disk, safe against crashes
"""
