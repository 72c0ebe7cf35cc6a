"""Is what was a question or a rumour still one?"""

from __future__ import annotations

import re

from pcs_annotator.asking.relations.checks.base import Rewrite
from pcs_annotator.asking.relations.checks.reading import prose

_HEDGE = re.compile(
    r"\b(?:reportedly|allegedly|supposedly|apparently|seemingly|purportedly|rumou?r(?:s|ed)?|alleged|"
    r"may|might|could|possibly|perhaps|maybe|probably|likely|presumably|seems?|seemed|appears?|appeared|"
    r"looks? (?:like|as)|sounds? like|unconfirmed|speculat\w+|potential(?:ly)?|suspected|"
    r"claim(?:s|ed|ing)?|suggest(?:s|ed|ing)?|believed|thought to|said to|expected|think|guess|unclear|"
    r"i think|can|would|should|appearing|seeming|possible|possibility|hint(?:s|ed|ing)?|report(?:s|ed)?)\b"
)
# Only these are missed when they are gone; the others above only stand in for them.
_MISSED = re.compile(
    r"\b(?:reportedly|allegedly|supposedly|apparently|rumou?red|alleged|might|possibly|perhaps|maybe|probably|"
    r"(?:it|this|that) (?:seems|appears|looks like|sounds like)|seems? (?:to|like)|appears? to|looks? like)\b"
)
_MONTH = re.compile(r"\bMay\b(?= \d)")
_QUESTION = re.compile(r"\?+[\s\"')\]]|\?+$")
_ASKS = re.compile(
    r"(?:^|[.!,:;\"'] *)(?:who|what|when|where|why|how|which|is|are|was|were|do|does|did|can|could|will|would|"
    r"should|has|have|"
    r"am|isn't|aren't|don't|doesn't|didn't|won't|whether)\b|\b(?:whether|wonder\w*|asks?|asking|asked)\b"
)


def certainty(rewrite: Rewrite) -> str:
    """Complain when a question became a statement, the other way round, or a rumour became a fact."""
    source, text = prose(rewrite.source), prose(rewrite.text)
    asked, asks = "?" in source and _asks(source), "?" in text and _asks(text)
    if asked and not asks and not _ASKS.search(text.lower()):
        return "the text is a question; keep it one"
    if asks and not asked and not _ASKS.search(source.lower()):
        return "the text is no question; do not ask one"
    missed = _MISSED.search(source.lower())
    if missed and not _HEDGE.search(_MONTH.sub("", text).lower()):
        return f'"{missed.group()}" is missing; do not make the text surer than it is'
    return ""


def _asks(text: str) -> bool:
    return _QUESTION.search(text) is not None
