"""Elicitations: ways to ask for a label together with its probability, one published method per file."""
