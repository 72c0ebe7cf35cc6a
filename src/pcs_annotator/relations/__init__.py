"""Rewrites after which the label must stay the same."""
