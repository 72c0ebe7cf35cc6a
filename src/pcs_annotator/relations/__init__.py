"""Rewrites that must not change the label of a text."""
