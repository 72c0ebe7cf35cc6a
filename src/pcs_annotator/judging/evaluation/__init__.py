"""How good scores are, and whether a difference means anything."""
