"""Checks that need nothing but the words: did anything change, is all of it there, are the numbers the same?"""

from __future__ import annotations

import re

from pcs_annotator.relations.checks.base import Rewrite, quoted
from pcs_annotator.relations.checks.numbers import changed_numbers
from pcs_annotator.relations.checks.reading import plain, prose, words
from pcs_annotator.relations.language import language_of
from pcs_annotator.relations.rules.words import word_set

# A voice or a contraction comes and goes with these, so they are no sign that something was left out.
_SMALL = word_set(
    "a an the to of by that which who it its is are was were be been being am 's has have had do does did will would "
    "and or so too very just really then there"
)
# Below these shares of the words, and of all but the small ones, a part of the text is gone.
_FEWEST = 0.7
_FEWEST_BIG = 0.74
# In a handful of words, one that goes is no part of a text.
_HANDFUL = 6


def unchanged(rewrite: Rewrite) -> str:
    """Complain when nothing but spaces differs."""
    if rewrite.source.split() == rewrite.text.split():
        return "the rewrite is the same as the text; change it as asked"
    return ""


def length(rewrite: Rewrite) -> str:
    """Complain when a part is missing or a lot was added."""
    source, text = len(rewrite.source.strip()), len(rewrite.text.strip())
    if not text:
        return "the rewrite is empty; write the whole text"
    if not source:
        return "there is no text to rewrite"
    # A few more characters are much of a short text: "It is not bad" for "Good".
    if text > source * rewrite.expects.longest + 16:
        return "the rewrite is much longer than the text; add nothing"
    if text < source * rewrite.expects.shortest - 8 or _dropped(rewrite):
        return "a part of the text is missing; rewrite the whole text"
    return ""


def _dropped(rewrite: Rewrite) -> bool:
    if len(rewrite.text) > 0.85 * len(rewrite.source):
        return False
    source, text = words(rewrite.source), words(rewrite.text)
    if not text:
        return bool(source)
    if len(source) <= _HANDFUL or len(text) >= 0.8 * len(source):
        return False
    big_source = sum(word not in _SMALL for word in source)
    big_text = sum(word not in _SMALL for word in text)
    fewest = min(1.0, rewrite.expects.shortest / 0.6)
    return len(text) < fewest * _FEWEST * len(source) or big_text < fewest * _FEWEST_BIG * big_source


def numbers(rewrite: Rewrite) -> str:
    """Complain when a number is missing or new, however it is written."""
    missing, new = changed_numbers(rewrite.source, rewrite.text)
    if missing:
        return f"missing: {quoted(missing)}; keep every number"
    if new:
        return f"new: {quoted(new)}; add no number"
    return ""


_CHATTER = re.compile(
    r"^\W*(?:sure|certainly|of course|absolutely|okay|ok)[,!.: ]+(?:here|i|this|the|let)\b|"
    r"^\W*(?:here(?:'s| is| are)) (?:the|a|an|your|my|one)\b.{0,60}:|"
    r"^\W*(?:the )?(?:rewritten|revised|rephrased|original|modified|paraphrased|converted) \w+|"
    r"^\W*(?:passive|active)(?: voice)?:|^\W*(?:rewrite|rewritten|output|answer|double negation|synonyms?|text)\s*:|"
    r"\bas an? (?:ai|artificial|language model|assistant)\b|\blanguage model\b|"
    r"\bi(?:'m| am) (?:sorry|unable|afraid|not able)\b[^.]{0,40}\b(?:but|can|to|assist|that|i)\b|"
    r"\bi (?:cannot|can't|can not|won't) (?:rewrite|assist|help|fulfill|comply|provide|process|do that)\b|"
    r"\b(?:please|could you)\b.{0,20}\b(?:provide|clarify|share)\b.{0,30}\b(?:text|sentence|context|information)\b|"
    r"\b(?:the|this|that) (?:sentence|text|statement|phrase|headline|tweet|review|passage)\b[^.:]{0,40}"
    r"\b(?:rewritten|active voice|passive voice|already|means|expresses|contains|suggests|implies|does not)\b|"
    r"\b(?:passive|active) voice\b|\bdouble negati(?:on|ve)s?\b|\brewrit(?:e|ten|ing)\b|\bsynonyms?\b|\brephras\w+\b|"
    r"\blet me know if\b|\bhow (?:can|may) i (?:help|assist)\b|\bthank(?:s| you) for (?:your (?:feedback|review|"
    r"message|question|kind)|sharing|providing)\b|"
    r"\bglad (?:to hear|you)\b|\bsorry to hear\b|\bhope this helps\b|\bnote:|\bexplanation:|<\/?(?:text|rewrite|"
    r"output)>|'''|```",
    re.IGNORECASE | re.DOTALL,
)


# No talk without one of these, or a mark that rewrites do not have.
_TALK_WORDS = word_set(
    "sure certainly course absolutely okay ok here here's rewritten revised rephrased original modified paraphrased "
    "converted ai artificial language model assistant sorry unable afraid able i cannot can't can won't please could "
    "sentence text statement phrase headline tweet review passage passive active negation negative negations "
    "negatives rewrite rewriting synonym synonyms rephrase rephrasing help assist let thank thanks glad hope note "
    "explanation output answer double"
)


def _may_talk(rewrite: Rewrite) -> bool:
    new = set(words(rewrite.text)).difference(words(rewrite.source))
    return not new.isdisjoint(_TALK_WORDS) or "```" in rewrite.text or ":" in rewrite.text or "</" in rewrite.text


def language(rewrite: Rewrite) -> str:
    """Complain when the language changed, or when a model talked instead of rewriting."""
    talk = _CHATTER.search(plain(rewrite.text)) if _may_talk(rewrite) else None
    # What the text itself says is no talk of the model.
    if talk and talk.group().strip().lower() not in plain(rewrite.source).lower():
        return "the reply talks about the text or answers it; write nothing but the rewritten text"
    before, after = language_of(rewrite.source), language_of(rewrite.text)
    if before and after and before != after:
        return f"the text is in one language ({before}), the rewrite in another ({after}); keep the language"
    return ""


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
