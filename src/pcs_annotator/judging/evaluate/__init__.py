"""How good methods are, and whether a difference between them is significant."""
