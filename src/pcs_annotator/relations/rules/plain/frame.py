"""A neutral lead-in before the unchanged text."""

from __future__ import annotations

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.rules.rule import NotApplicable, text_rule

LEAD_IN = "The text reads: "

# A text of two short words is much shorter than the lead-in.
_LONGEST = 8.0


@text_rule("rule:frame", expects=Expectation(shortest=1.0, longest=_LONGEST))
def frame(text: str) -> str | NotApplicable:
    """Return the unchanged text after a lead-in that says nothing about it.

    >>> frame("The bridge is open.")
    'The text reads: The bridge is open.'
    """
    if text.startswith(LEAD_IN):
        return NotApplicable("already framed")
    return LEAD_IN + text
