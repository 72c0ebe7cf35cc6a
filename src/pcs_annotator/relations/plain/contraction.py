"""`do not` and `don't`: a text with contractions gets them written out, any other text gets some."""

from __future__ import annotations

import re

from pcs_annotator.relations.facts import word_set
from pcs_annotator.relations.plain.auxiliary import what_d_means, what_s_means
from pcs_annotator.relations.rule import NotApplicable, text_rule

# The part before the apostrophe, and the part after it.
_CONTRACTION = re.compile(r"(?<![\w'’@#/-])([^\W\d_]{1,8})['’](t|m|re|ve|ll|d|s)(?![\w'’-])", re.IGNORECASE)
_NEGATED = word_set("can won shan don doesn didn isn aren wasn weren hasn haven hadn wouldn couldn shouldn mustn needn")
_ENDINGS = {
    "m": ("am", word_set("i")),
    "re": ("are", word_set("you we they who what there these those where how")),
    "ve": ("have", word_set("i you we they who could should would might must these those")),
    "ll": ("will", word_set("i you he she it we they that this there who what")),
}
_STEMS = {"wo": "will", "sha": "shall"}
_SUBJECTS = word_set("i you he she it we they this that these those there anyone anybody everyone everybody someone")
_OPENERS = word_set("the a an my your his her our their its no all any some most many people")
_PLAIN_SUBJECTS = word_set("i you he she it we they")
_QUESTION_WORDS = word_set("why how what who when where which and but or so if")

_NEXT = re.compile(r"\s+([\w'’]+)")
# After these, `it's` is a misspelt `its`.
_PREPOSITIONS = word_set("with of for in on at by from to into over under through despite")
_BE = word_set("is are was were")
_NEXT_IS_UPPER = re.compile(r"\s+[A-Z]{2}")
_SENTENCE_END = re.compile(r"[.!?…\n]")


@text_rule("rule:contraction")
def contraction(text: str) -> str | NotApplicable:
    """Return the text with its contractions written out or, if it has none, with some added."""
    if "'" in text or "’" in text:
        written_out = expand(text)
        if written_out != text:
            return written_out
    contracted = contract(text)
    return NotApplicable("nothing to contract or to write out") if contracted == text else contracted


def expand(text: str) -> str:
    """Return the text with every unambiguous contraction written out.

    >>> expand("It's late and we don't know who's been here.")
    'It is late and we do not know who has been here.'
    """
    return _CONTRACTION.sub(lambda found: _written_out(found) or found[0], text)


def _written_out(found: re.Match[str]) -> str:
    """Return the words that a contraction stands for; empty when ambiguous."""
    word, ending = found[1].lower(), found[2].lower()
    if ending == "t":
        return _without_not(found) if word in _NEGATED else ""
    following = found.string[found.end() : found.end() + 80]
    if ending in _ENDINGS:
        verb, subjects = _ENDINGS[ending]
        known = word in subjects and (ending == "m" or _NEXT.match(following) is not None)
        return _like(found, f"{found[1]} ", verb) if known else ""
    if word == "it" and ending == "s" and _word_before(found).lower() in _PREPOSITIONS:
        return ""
    verb = what_s_means(word, following) if ending == "s" else what_d_means(word, following)
    return _like(found, f"{found[1]} ", verb) if verb else ""


def _without_not(found: re.Match[str]) -> str:
    stem = found[1] if found[1].lower() == "can" else found[1][:-1]
    verb = _STEMS.get(stem.lower(), stem.lower())
    following = _NEXT.match(found.string, found.end())
    if _is_question(found, verb, following[1].lower() if following else ""):
        return ""
    if verb == "can":
        return stem + ("NOT" if stem.isupper() else "not")
    kept = stem if verb == stem.lower() else _same_case(stem, verb)
    return _like(found, f"{kept} ", "not")


def _is_question(found: re.Match[str], verb: str, next_word: str) -> bool:
    """Return whether the subject follows the verb, so that `not` cannot."""
    if verb not in _BE and next_word in _PLAIN_SUBJECTS:
        return True
    before = _word_before(found)
    if before and before.lower() not in _QUESTION_WORDS:
        return False
    if next_word in _SUBJECTS or (next_word in _OPENERS and verb not in ("do", "have")):
        return True
    end = _SENTENCE_END.search(found.string, found.end())
    return end is not None and end[0] == "?"


def _word_before(found: re.Match[str]) -> str:
    """Return the word before a contraction; empty when the contraction begins its clause."""
    head = found.string[max(0, found.start() - 40) : found.start()].rstrip(" \t\"“'‘(")
    return head.rsplit(None, 1)[-1] if head and (head[-1].isalnum() or head[-1] in "'’") else ""


def _like(found: re.Match[str], kept: str, added: str) -> str:
    """Return the kept and the added part, the latter in the case of the original word."""
    whole = found[0]
    if whole.isupper() and (len(whole) > 3 or _NEXT_IS_UPPER.match(found.string, found.end())):
        return kept + added.upper()
    if whole[0].isupper() and _is_title(found.string, found.end()):
        return kept + added.capitalize()
    return kept + added


def _is_title(text: str, position: int) -> bool:
    """Return whether the text around a position is a headline With Capitals."""
    words = [
        word for word in text[max(0, position - 150) : position + 150].split() if len(word) > 3 and word[0].isalpha()
    ]
    return len(words) > 2 and sum(word[0].isupper() for word in words) > 0.7 * len(words)


def _same_case(like: str, word: str) -> str:
    if like.isupper():
        return word.upper()
    return word.capitalize() if like[0].isupper() else word


_NOT = re.compile(
    r"\b(?<![\w'’@#-])(?:(?P<verb>is|are|was|were|do|does|did|has|have|had|would|could|should|will|can) "
    r"|(?P<glued>can))"
    r"(?P<not>not)\b(?![-'’])(?P<next>\s+\w+)?",
    re.IGNORECASE,
)
# `not` belongs to the words after it, or is adjacent by chance: "has not one but two", "all to do not to laugh".
_KEEPS_NOT = word_set("only to one just merely simply because so as least you i he she we they it a an the two")
_KEEPS_NOT_AFTER_BE = word_set("only one so because i you he she we they")
_CONTRACTED_QUESTION_WORDS = word_set("why how whether or")

_SUBJECT = re.compile(
    r"\b(?<![\w'’@#&-])(?P<subject>i|you|he|she|it|we|they|there) (?P<verb>am|are|is|will|have|would) (?P<next>[a-z]+)"
    r"(?= (?!(?:when|if|and|but|or|until|unless|because|as|than|there|here)\b)[\w$\"“])",
    re.IGNORECASE,
)
_ENDING_OF = {"am": "m", "are": "re", "is": "s", "will": "ll", "have": "ve", "would": "d"}
_VERBS = {
    "i": word_set("am will have would"),
    **dict.fromkeys(("you", "we", "they"), word_set("are will have would")),
    **dict.fromkeys(("he", "she", "it"), word_set("is will")),
    "there": word_set("is"),
}
# Looking up whole words in a set is much faster than the regular expression.
_CONTRACTED_SUBJECTS = frozenset(
    before + subject
    for before in ("", *"\"“‘'(")
    for word in _VERBS
    for subject in (word, word.capitalize(), word.upper())
)
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
# A subject after one of these begins a clause, so its verb does not end a comparison or a question.
_CLAUSE_OPENERS = word_set("but and because if that said says say think believe while although though when so")
_WORD_BEFORE = re.compile(r"(\w+)\s$")
_BREAK_BEFORE = frozenset('.!?:;,"“‘(\n—–-…')


def contract(text: str) -> str:
    """Return the text with contractions, in the style of its quotation marks.

    >>> contract("They are going home, and it is not far.")
    "They're going home, and it isn't far."
    """
    mark = "’" if "’" in text or "“" in text or "”" in text else "'"
    shouted = text.isupper()
    if "not" in text or "Not" in text or "NOT" in text:
        text = _NOT.sub(lambda match: _with_not(match, mark, shouted), text)
    if _CONTRACTED_SUBJECTS.isdisjoint(text.split()):
        return text
    return _SUBJECT.sub(lambda match: _with_subject(match, mark, shouted), text)


def _with_not(match: re.Match[str], mark: str, shouted: bool) -> str:
    verb, negation, following = match["verb"] or match["glued"], match["not"], match["next"] or ""
    # NOT in capitals is emphatic, and a contraction would lose that.
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
    if before is not None and before[1].lower() in _CONTRACTED_QUESTION_WORDS:
        return True
    return not match["next"] and match.string[match.end() : match.end() + 1] in (",", ":", ";", "—", "–")


def _with_subject(match: re.Match[str], mark: str, shouted: bool) -> str:
    subject, verb, following = match["subject"], match["verb"], match["next"]
    lower, next_word = verb.lower(), following.lower()
    if lower not in _VERBS[subject.lower()] or (verb.isupper() and not shouted) or not _opens_clause(match):
        return match[0]
    if not _fits(subject.lower(), lower, next_word):
        return match[0]
    ending = _ENDING_OF[lower].upper() if shouted else _ENDING_OF[lower]
    return f"{subject}{mark}{ending} {following}"


def _fits(subject: str, verb: str, next_word: str) -> bool:
    if subject == "there":
        return next_word in ("a", "an", "no", "nothing")
    if verb in _AFTER:
        return next_word in _AFTER[verb]
    return next_word in _AFTER_BE or (next_word.endswith("ing") and len(next_word) > 4 and next_word not in _NOT_ING)


def _opens_clause(match: re.Match[str]) -> bool:
    start = match.start()
    head = match.string[max(0, start - 20) : start]
    if not head.strip() or head.rstrip(" ")[-1] in _BREAK_BEFORE:
        return True
    before = _WORD_BEFORE.search(head)
    return before is not None and before[1].lower() in _CLAUSE_OPENERS
