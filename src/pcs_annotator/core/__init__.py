"""Frozen values that every other part of the library passes around."""
