"""The engine: what to ask, how fast, what was paid for, and what came back."""
