"""Asks models: asynchronous, within rate limits and a budget. Does not import `judging`."""
