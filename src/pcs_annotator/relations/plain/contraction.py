"""`do not` for `don't`: contractions are written out, where it is clear what they stand for."""

import re

from pcs_annotator.relations.facts import is_title, listed, word_set
from pcs_annotator.relations.rule import NotApplicable, text_rule

# The part before the apostrophe, and the part after it.
_CONTRACTION = re.compile(r"(?<![\w'’@#/-])([^\W\d_]{1,8})['’](t|m|re|ve|ll|d|s)(?![\w'’-])", re.IGNORECASE)
_NEGATED = word_set("can won shan don doesn didn isn aren wasn weren hasn haven hadn wouldn couldn shouldn mustn needn")
_STEMS = {"wo": "will", "sha": "shall"}
_SUBJECTS = {
    "m": word_set("i"),
    "re": word_set("you we they who what there these those where how"),
    "ve": word_set("i you we they who could should would might must these those"),
    "ll": word_set("i you he she it we they that this there who what"),
    "s": word_set("he she it that this there here who what"),
    "d": word_set("i you he she we they it there who"),
}
_ALWAYS = {"m": "am", "re": "are", "ve": "have", "ll": "will"}
# What the others stand for before certain words; elsewhere, `'s` may be `is` or `has`, and `'d` `had` or `would`.
_BEFORE = {
    "s": {"is": listed("contraction", "after_is"), "has": word_set("been had got gotten")},
    "d": {"would": listed("contraction", "after_would"), "had": word_set("been better")},
}
_ADVERBS = listed("contraction", "adverbs")
_FOLLOWING = re.compile(r"(?:\s+[\w-]+){1,4}")
# After these, `it's` is a misspelt `its`.
_PREPOSITIONS = word_set("with of for in on at by from to into over under through despite")
_PRONOUNS = word_set("i you he she it we they")
_OPEN_SUBJECTS = _PRONOUNS | listed("contraction", "open_subjects")
_QUESTION_WORDS = word_set("why how what who when where which and but or so if")
_SENTENCE_END = re.compile(r"[.!?…\n]")


@text_rule("rule:contraction", version="3")
def contraction(text: str) -> str | NotApplicable:
    """Return the text with its contractions written out."""
    written_out = expand(text) if "'" in text or "’" in text else text
    return NotApplicable("no contraction to write out") if written_out == text else written_out


def expand(text: str) -> str:
    """Return the text with every unambiguous contraction written out.

    >>> expand("It's late, he's gone, and we don't know who's been here.")
    "It is late, he's gone, and we do not know who has been here."
    """
    once = _CONTRACTION.sub(lambda found: _written_out(found) or found[0], text)
    # A word that was written out may tell what the one before it stands for: `I'd don't` becomes `I'd do not` first.
    return once if once == text else expand(once)


def _written_out(found: re.Match[str]) -> str:
    """Return the words that a contraction stands for; empty when ambiguous."""
    word, ending = found[1].lower(), found[2].lower()
    given = _FOLLOWING.match(found.string, found.end())
    following = given[0].lower().split() if given else []
    if ending == "t":
        return _without_not(found, following) if word in _NEGATED else ""
    misspelt = word == "it" and ending == "s" and _word_before(found) in _PREPOSITIONS
    if word not in _SUBJECTS[ending] or misspelt or not (following or ending == "m"):
        return ""
    verb = _ALWAYS.get(ending) or _verb_before(following, _BEFORE[ending])
    return _like(found, f"{found[1]} ", verb) if verb else ""


def _verb_before(following: list[str], verbs: dict[str, frozenset[str]]) -> str:
    telling = next((word for word in following if word not in _ADVERBS), "")
    if "is" in verbs and telling.endswith("ing"):
        return "is"
    return next((verb for verb, words in verbs.items() if telling in words), "")


def _without_not(found: re.Match[str], following: list[str]) -> str:
    stem = found[1] if found[1].lower() == "can" else found[1][:-1]
    verb = _STEMS.get(stem.lower(), stem.lower())
    if _is_question(found, verb, following[0] if following else ""):
        return ""
    if verb == "can":
        return stem + ("NOT" if stem.isupper() else "not")
    changed = verb.upper() if stem.isupper() else verb.capitalize() if stem[0].isupper() else verb
    return _like(found, f"{changed} ", "not")


def _is_question(found: re.Match[str], verb: str, next_word: str) -> bool:
    """Return whether the subject follows the verb, so that `not` cannot."""
    if verb not in ("is", "are", "was", "were") and next_word in _PRONOUNS:
        return True
    before = _word_before(found)
    if before and before not in _QUESTION_WORDS:
        return False
    end = _SENTENCE_END.search(found.string, found.end())
    return next_word in _OPEN_SUBJECTS or (end is not None and end[0] == "?")


def _word_before(found: re.Match[str]) -> str:
    """Return the word before a contraction; empty when the contraction begins its clause."""
    head = found.string[max(0, found.start() - 40) : found.start()].rstrip(" \t\"“'‘(")
    return head.rsplit(None, 1)[-1].lower() if head and (head[-1].isalnum() or head[-1] in "'’") else ""


def _like(found: re.Match[str], kept: str, added: str) -> str:
    """Return the kept and the added part, the latter in the case of the original word."""
    whole, after = found[0], found.string[found.end() :].lstrip()[:2]
    if whole.isupper() and (len(whole) > 3 or (len(after) == 2 and after.isupper())):
        return kept + added.upper()
    return kept + (added.capitalize() if whole[0].isupper() and is_title(found.string) else added)
