"""Optimisers by family; each registers under a name, as users' own do."""
