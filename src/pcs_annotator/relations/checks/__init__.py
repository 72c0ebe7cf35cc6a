"""Checks whether a rewrite still means the same, each for one kind of change."""
