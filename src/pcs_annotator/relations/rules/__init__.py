"""Rewrites made by rule: deterministic, offline and free."""
