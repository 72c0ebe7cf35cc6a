"""The maths of the method: votes in, weights and scores out. Synchronous, no network, no files."""
