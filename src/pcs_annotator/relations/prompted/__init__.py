"""Rewrites by a model: prompts, long texts, and cleaning of replies."""
