"""`do not` for `don't`: contractions are written out, where it is clear what they stand for."""

from __future__ import annotations

import re

from pcs_annotator.relations.facts import listed, word_set
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


@text_rule("rule:contraction", version="2")
def contraction(text: str) -> str | NotApplicable:
    """Return the text with its contractions written out."""
    written_out = expand(text) if "'" in text or "’" in text else text
    return NotApplicable("no contraction to write out") if written_out == text else written_out


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


# Of a contracted word, only the part before the contraction counts.
_NEXT_WORD = re.compile(
    r"\s+[\"“'‘(]*(?:([A-Za-z]+?(?:-[A-Za-z]+)*)(?:[nN]?['’][A-Za-z]+)*(?![A-Za-z'’-])|([$£€#]?\d))"
)

_ADVERBS = listed("auxiliary", "adverbs")
_PARTICIPLES = listed("auxiliary", "participles")
_BOTH = listed("auxiliary", "both")
_HAS_ONLY = listed("auxiliary", "has_only")
_NOT_PAST = listed("auxiliary", "not_past")
_BASES = listed("auxiliary", "bases")
_OTHERS_IN_EN = listed("auxiliary", "others_in_en")
_AFTER_WHO = listed("auxiliary", "after_who")
_PRONOUNS = word_set("i you he she it we they this that")
_D_SUBJECTS = word_set("i you he she we they it there who")
_S_SUBJECTS = word_set("he she it that this there here who what where how")
_QUESTION = word_set("what where how")
_NOT_AFTER_S = word_set("own and or but if of")


def what_s_means(subject: str, following: str) -> str:
    """Return `is`, `has` or `us` for the `'s` after a lower-case subject; empty when unclear.

    >>> what_s_means("it", " been raining"), what_s_means("it", " raining"), what_s_means("it", " finished")
    ('has', 'is', '')
    """
    words = next_words(following)
    if subject == "let":
        return "us" if words else ""
    if subject not in _S_SUBJECTS or not words or words[0] in _NOT_AFTER_S:
        return ""
    telling = after_adverbs(words)
    if telling in _HAS_ONLY:
        return "has"
    if not telling or _may_be_participle(telling) or (subject in _QUESTION and words[0] in _PRONOUNS):
        return ""
    doubtful = subject == "who" and telling not in _AFTER_WHO and not telling.endswith("ing")
    return "" if doubtful else "is"


def what_d_means(subject: str, following: str) -> str:
    """Return `had` or `would` for the `'d` after a lower-case subject; empty when unclear.

    >>> what_d_means("she", " never seen it"), what_d_means("she", " like it"), what_d_means("she", " put it")
    ('had', 'would', '')
    """
    words = next_words(following)
    if subject not in _D_SUBJECTS or not words:
        return ""
    telling = after_adverbs(words)
    if telling == "better":
        return "had" if words[0] == "better" else ""
    if telling in _BASES:
        return "would"
    if telling in _BOTH or telling in _NOT_PAST:
        return ""
    return "had" if telling in _PARTICIPLES or telling.endswith("ed") else ""


def next_words(following: str) -> list[str]:
    """Return up to four words that follow without a break, in lower case."""
    words: list[str] = []
    position = 0
    while len(words) < 4 and (match := _NEXT_WORD.match(following, position)):
        words.append((match[1] or match[2]).lower())
        position = match.end()
    return words


def after_adverbs(words: list[str]) -> str:
    """Return the first word that is not an adverb; empty when there is none."""
    for word in words:
        if word not in _ADVERBS and not (word.endswith("ly") and len(word) > 5):
            return word
    return ""


def _may_be_participle(word: str) -> bool:
    if word in _PARTICIPLES:
        return True
    if word.endswith("ed"):
        return word not in _NOT_PAST
    return word.endswith("en") and word not in _OTHERS_IN_EN
