"""A neutral lead-in: the text itself stays whole."""

from __future__ import annotations

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.rules.rule import NotApplicable, text_rule

LEAD_IN = "The text reads: "

# Two short words are the least that gets here; the lead-in is then much longer than the text.
_LONGEST = 8.0


@text_rule("rule:frame", expects=Expectation(shortest=1.0, longest=_LONGEST))
def frame(text: str) -> str | NotApplicable:
    """Return the text, untouched, behind a few words that tell nothing about it.

    >>> frame("The bridge is open.")
    'The text reads: The bridge is open.'
    """
    if text.startswith(LEAD_IN):
        return NotApplicable("already framed")
    return LEAD_IN + text
