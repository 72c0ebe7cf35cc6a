"""The words of a tweet or post without what stands around them, for the parser, which was trained on newspapers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from pcs_annotator.relations.facts import word_set

_EMOJI = r"[\u200d\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
_SIGN = rf"(?:https?:\S+|www\.\S+|pic\.twitter\.com/\S+|[@#]\w+|{_EMOJI}|<3|[:;]-?[)(DP](?!\w)|[xX]{{2,}}\b)"
_BEFORE = re.compile(
    rf"\s*(?:(?:RT\s+)?\.?@\w+:?\s+|RT\s+|#\w+(?::\s+|\s+(?=#))|{_EMOJI}\s*)*(?:(?:breaking(?: news)?|just in|updated?|"
    r"exclusive|watch|video|report|poll|study|analysis|opinion|fact check)\s*(?::|-|–|—)\s+)?",
    re.IGNORECASE,
)
_AFTER = re.compile(rf"(?:\s*(?:\bvia(?=\s+@))?\s*{_SIGN})+[\s.]*$|\s+\|\s[^|]{{2,40}}$|\s+$")
# What a mention in front belongs to: "@user is right", "@user and I".
_CONTINUES = word_set("and or & 's is was has had says said are were")
# Words that a tag or mention after them may belong to.
_TAKES_TAG = word_set(
    "a an the and or but of in on at to for from by with about as into over after before under between against during "
    "without through than near around like via my your his her its our their this that these those is are was were be "
    "am not no so very new love hate see watch meet join great good happy using called thank & + w/ -"
)
_LONGEST_TAIL = 300


class Prepared(NamedTuple):
    """A text as it is parsed.

    Attributes:
        before: What was set aside in front.
        text: The rest, which is parsed.
        after: What was set aside at the end.
    """

    before: str
    text: str
    after: str


# All rules parse the same texts.
@lru_cache(maxsize=2048)
def prepared(text: str) -> Prepared:
    """Return a text as it is parsed: without mentions, labels, tags, links and emoji at its ends.

    >>> prepared("@user The mayor saves her old school. #proud")
    Prepared(before='@user ', text='The mayor saves her old school.', after=' #proud')
    """
    found = _BEFORE.match(text)
    start = found.end() if found else 0
    following = text[start:].split(maxsplit=1)
    if start and following and following[0].lower() in _CONTINUES:
        start = 0
    tail = _AFTER.search(text, max(start, len(text) - _LONGEST_TAIL))
    end = tail.start() if tail else len(text)
    last, sign = (text[start:end].split() or [""])[-1].lower(), text[end:].lstrip()[:1]
    # "Back from #work": the tag is part of the sentence.
    if (sign in ("#", "@") and (last in _TAKES_TAG or last[-1:] in (",", ":", ""))) or start >= end:
        return Prepared(text[:start], text[start:], "") if start < len(text) else Prepared("", text, "")
    return Prepared(text[:start], text[start:end], text[end:])
