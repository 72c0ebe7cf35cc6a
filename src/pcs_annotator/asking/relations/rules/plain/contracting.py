"""Contractions made where they are always right."""

from __future__ import annotations

import re

from pcs_annotator.asking.relations.word_set import word_set

_NOT = re.compile(
    r"\b(?<![\w'’@#-])(?:(?P<verb>is|are|was|were|do|does|did|has|have|had|would|could|should|will|can) "
    r"|(?P<glued>can))"
    r"(?P<not>not)\b(?![-'’])(?P<next>\s+\w+)?",
    re.IGNORECASE,
)
# `not` belongs to what follows it, or the words only meet by chance: "has not one but two", "all to do not to laugh".
_KEEPS_NOT = word_set("only to one just merely simply because so as least you i he she we they it a an the two")
_KEEPS_NOT_AFTER_BE = word_set("only one so because i you he she we they")
_BE = word_set("is are was were")
_QUESTION_WORDS = word_set("why how whether or")

_SUBJECT = re.compile(
    r"\b(?<![\w'’@#&-])(?P<subject>i|you|he|she|it|we|they|there) (?P<verb>am|are|is|will|have|would) (?P<next>[a-z]+)"
    r"(?= (?!(?:when|if|and|but|or|until|unless|because|as|than|there|here)\b)[\w$\"“])",
    re.IGNORECASE,
)
# A set of whole words is much quicker to look for than the expression.
_SUBJECTS = frozenset(
    before + subject
    for before in ("", '"', "“", "‘", "'", "(")
    for word in ("i", "you", "he", "she", "it", "we", "they", "there")
    for subject in (word, word.capitalize(), word.upper())
)
_ENDINGS = {"am": "m", "are": "re", "is": "s", "will": "ll", "have": "ve", "would": "d"}
_VERBS = {
    "i": frozenset({"am", "will", "have", "would"}),
    "you": frozenset({"are", "will", "have", "would"}),
    "we": frozenset({"are", "will", "have", "would"}),
    "they": frozenset({"are", "will", "have", "would"}),
    "he": frozenset({"is", "will"}),
    "she": frozenset({"is", "will"}),
    "it": frozenset({"is", "will"}),
    "there": frozenset({"is"}),
}
_AFTER_BE = word_set("not a an the going very too just also still")
_NOT_ING = word_set("nothing something anything everything king ring during bring")
_AFTER = {
    "have": word_set("been never always already seen done gone had"),
    "would": word_set("like love be rather never prefer"),
    "will": word_set(
        "be have never always also continue get see make take need do go find know win lose give come keep work meet "
        "remain become face receive"
    ),
}
# A subject behind one of these begins a clause, so its verb is not left alone at the end of a comparison or a question.
_CLAUSE_OPENERS = word_set("but and because if that said says say think believe while although though when so")
_WORD_BEFORE = re.compile(r"(\w+)\s$")
_BREAK_BEFORE = frozenset('.!?:;,"“‘(\n—–-…')


def contract(text: str) -> str:
    """Return the text with its contractions made, in the style of its quotation marks.

    >>> contract("They are going home, and it is not far.")
    "They're going home, and it isn't far."
    """
    mark = "’" if "’" in text or "“" in text or "”" in text else "'"
    shouted = text.isupper()

    def with_not(match: re.Match[str]) -> str:
        return _with_not(match, mark, shouted)

    def with_subject(match: re.Match[str]) -> str:
        return _with_subject(match, mark, shouted)

    if "not" in text or "Not" in text or "NOT" in text:
        text = _NOT.sub(with_not, text)
    return text if _SUBJECTS.isdisjoint(text.split()) else _SUBJECT.sub(with_subject, text)


def _with_not(match: re.Match[str], mark: str, shouted: bool) -> str:
    verb, negation, following = match["verb"] or match["glued"], match["not"], match["next"] or ""
    # NOT in capitals is said with force, and a contraction would lose that.
    if negation.isupper() and not shouted:
        return match[0]
    lower, next_word = verb.lower(), following.strip().lower()
    if next_word in (_KEEPS_NOT_AFTER_BE if lower in _BE else _KEEPS_NOT) or _is_set_apart(match):
        return match[0]
    stem = "wo" if lower == "will" else "ca" if lower == "can" else lower
    ending = f"n{mark}t"
    if shouted:
        return stem.upper() + ending.upper() + following
    return (stem.capitalize() if verb[0].isupper() else stem) + ending + following


def _is_set_apart(match: re.Match[str]) -> bool:
    """Return whether the verb and `not` belong to different phrases, as in `whether it is or is not`."""
    before = _WORD_BEFORE.search(match.string, max(0, match.start() - 20), match.start())
    if before is not None and before[1].lower() in _QUESTION_WORDS:
        return True
    return not match["next"] and match.string[match.end() : match.end() + 1] in (",", ":", ";", "—", "–")


def _with_subject(match: re.Match[str], mark: str, shouted: bool) -> str:
    subject, verb, following = match["subject"], match["verb"], match["next"]
    lower, next_word = verb.lower(), following.lower()
    if lower not in _VERBS[subject.lower()] or (verb.isupper() and not shouted) or not _opens_clause(match):
        return match[0]
    if not (_fits_there(next_word) if subject.lower() == "there" else _fits(lower, next_word)):
        return match[0]
    ending = _ENDINGS[lower].upper() if shouted else _ENDINGS[lower]
    return f"{subject}{mark}{ending} {following}"


def _fits(verb: str, next_word: str) -> bool:
    if verb in _AFTER:
        return next_word in _AFTER[verb]
    return next_word in _AFTER_BE or (next_word.endswith("ing") and len(next_word) > 4 and next_word not in _NOT_ING)


def _fits_there(next_word: str) -> bool:
    return next_word in ("a", "an", "no", "nothing")


def _opens_clause(match: re.Match[str]) -> bool:
    start = match.start()
    head = match.string[max(0, start - 20) : start]
    if not head.strip() or head.rstrip(" ")[-1] in _BREAK_BEFORE:
        return True
    before = _WORD_BEFORE.search(head)
    return before is not None and before[1].lower() in _CLAUSE_OPENERS
