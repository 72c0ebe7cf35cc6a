"""The rule that adds two negations to a statement."""
