"""Codes of votes: a position among the labels, or one of two kinds of silence."""

ABSTAINED = -1
"""Asked, but no usable label came back."""
NOT_ASKED = -2
"""Never asked, or the rewrite did not apply."""
OPEN = -3
"""May still be asked; only while an item is being asked about, never in `Votes`."""
