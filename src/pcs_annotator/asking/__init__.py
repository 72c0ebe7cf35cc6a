"""Asking models: asynchronous, and careful with other people's money. Knows nothing of judging."""
