"""Errors, the registry and small helpers that know nothing of labelling."""
