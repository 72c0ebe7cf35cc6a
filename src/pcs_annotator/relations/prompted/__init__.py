"""Rewrites written by a model: prompts, joint calls, long texts, and cleaning what the model replied."""
