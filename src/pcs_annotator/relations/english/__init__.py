"""Rewrites by rule that parse English: voice, double negation, synonyms."""
