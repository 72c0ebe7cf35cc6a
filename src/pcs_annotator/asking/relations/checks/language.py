"""Is the rewrite in the language of the text, and a rewrite at all rather than talk about one?"""

from __future__ import annotations

import re

from pcs_annotator.asking.relations.checks.base import Rewrite
from pcs_annotator.asking.relations.checks.reading import plain, words
from pcs_annotator.asking.relations.language import language_of
from pcs_annotator.asking.relations.word_set import word_set

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
