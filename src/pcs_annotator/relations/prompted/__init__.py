"""Rewrites by a model: prompts, joint calls, long texts, and cleaning of replies."""
