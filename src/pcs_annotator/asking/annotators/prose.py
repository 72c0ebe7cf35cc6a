"""Finds the one label that a reply in prose decides for."""

import re
from collections.abc import Iterator

from pcs_annotator.asking.annotators.quotation import ECHO
from pcs_annotator.asking.annotators.vocabulary import LabelVocabulary, Mention

_WINDOW_CHARACTERS = 90
_WINDOW_WORDS = 6
_LONGEST_COORDINATION = 24

_NEGATION = re.compile(
    r"(?<!\w)(?:not|no(?!\s*,)|non|nor|none|never|neither|nothing|without|hardly|barely|cannot|unlike|whether|either|lacks?"
    r"|rather\s+than|instead\s+of|far\s+from|anything\s+but|opposite\s+of|other\s+than|\w{0,8}n['’`]t"
    r"|(?:is|are|was|were|do|does|did|could|would|should)nt"
    r"|nicht|keine?|pas|não|niet|geen|не)(?!\w)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(rf"[.!?;:\n{ECHO}。！？؟：]")
_COORDINATION = re.compile(r"(?:,|/|\||&|\b(?:and|or|nor|und|oder|et|ou|y|o))\s*(?:(?:an?|the)\s+)?[\"'“‘*_]*\Z", re.I)
_OPEN_LIST = re.compile(r"[\"'”’*_)\]]*\s*(?:,|/|\||(?:and|or)(?!\w))\s*[\"'“‘*_(\[]*(\w*)\Z", re.IGNORECASE)
_OR_AFTER_ECHO = re.compile(rf"{ECHO}[^\w\n]*(?:/|\||(?:or|nor|oder|ou)(?!\w))[^\w\n]*\Z", re.IGNORECASE)
_OR_BEFORE_ECHO = re.compile(
    rf"(?:[^\w\n{ECHO}/|]*+[/|]|[^\w\n{ECHO}]*+(?<!\w)(?:or|nor|oder|ou)(?!\w))[^\w\n]*{ECHO}", re.IGNORECASE
)
_REFUSAL = re.compile(
    r"(?<!\w)(?:can(?:no|['’])t|can\s+not|will\s+not|unable\s++to|(?:im|not\s+)possible\s++to|not\s++able\s++to"
    r"|(?:hard|difficult)\s++to|wo(?:n['’]t)|(?:do\s+not|don['’]t)\s++know|not\s++sure|unsure|unclear)(?!\w)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\s*+(?:\w++\s++){0,2}(?:answer|assist|choose|classify|comply|decide|determine|engage|follow|help|how|if|judge|label|obey|provide|say"
    r"|tell|what|whether|which)(?!\w)",
    re.IGNORECASE,
)


def label_in_prose(text: str, words: LabelVocabulary) -> tuple[str | None, str]:
    """Return the only label that the text names without a negation before it, or None and the reason.

    "Not real, it is fake" is a vote for fake; "not real" is not a vote for fake, because a third label may be meant;
    "neither real nor fake" is not a vote. A label that is both negated and affirmed is not a vote.
    """
    if any(_REFUSED.match(text, match.end()) for match in _REFUSAL.finditer(text)):
        return None, "refusal"
    affirmed: set[str] = set()
    denied: set[str] = set()
    last: Mention | None = None
    for mention, negated in _judged(text, words):
        (denied if negated else affirmed).add(mention.label)
        last = None if negated else mention
        if len(affirmed) > 1:
            return None, "two labels in reply"
    if not affirmed and not denied:
        return None, "no label in reply"
    if not affirmed or affirmed & denied:
        return None, "negated label"
    if last and (_breaks_off_in_a_list(text, last, words) or _is_left_of_a_list(text, last)):
        return None, "lists the options"
    return affirmed.pop(), ""


def _judged(text: str, words: LabelVocabulary) -> Iterator[tuple[Mention, bool]]:
    before: Mention | None = None
    negated = False
    for mention in words.mentions(text):
        since = before.end if before else 0
        gap = text[max(since, mention.start - _WINDOW_CHARACTERS) : mention.start]
        joined = before is not None and mention.start - since <= _LONGEST_COORDINATION and _COORDINATION.search(gap)
        # In "not real or fake" the negation applies to both; in "not real, it is fake" only to the first label.
        negated = bool((joined and negated) or _negates(gap))
        yield mention, negated
        before = mention


def _negates(gap: str) -> bool:
    clause = _SENTENCE_END.split(gap)[-1]
    return bool(_NEGATION.search(" ".join(clause.split()[-_WINDOW_WORDS:])))


def _breaks_off_in_a_list(text: str, last: Mention, words: LabelVocabulary) -> bool:
    # "Classify as positive, neut": cut off before the second label, so the first one looks like the only one
    match = _OPEN_LIST.match(text[last.end : last.end + _LONGEST_COORDINATION])
    return match is not None and any(label.casefold().startswith(match[1].casefold()) for label in words.labels)


def _is_left_of_a_list(text: str, last: Mention) -> bool:
    # "Decide if it is positive or negative", where the text has "decide if it is positive"
    before = text[max(0, last.start - _LONGEST_COORDINATION) : last.start]
    after = text[last.end : last.end + _LONGEST_COORDINATION]
    return bool(ECHO in text and (_OR_AFTER_ECHO.search(before) or _OR_BEFORE_ECHO.match(after)))
