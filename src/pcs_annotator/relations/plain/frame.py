"""A neutral lead-in before the unchanged text, in the text's language."""

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.language import NO_LEAD_IN, known_language
from pcs_annotator.relations.phrases import all_phrases
from pcs_annotator.relations.rule import NotApplicable, text_rule

# A text of two short words is much shorter than the lead-in.
_LONGEST = 8.0


@text_rule("rule:frame", version="2", expects=Expectation(shortest=1.0, longest=_LONGEST), english=False)
def frame(text: str) -> str | NotApplicable:
    """Return the unchanged text after a lead-in that says nothing about it.

    >>> frame("The bridge is open."), frame("Die Brücke ist wieder offen.")
    ('The text reads: The bridge is open.', 'Der Text lautet: Die Brücke ist wieder offen.')
    """
    phrases = all_phrases().get(known_language(text))
    if phrases is None:
        return NotApplicable(NO_LEAD_IN)
    if text.startswith(phrases.lead_in):
        return NotApplicable("already framed")
    return phrases.lead_in + text
