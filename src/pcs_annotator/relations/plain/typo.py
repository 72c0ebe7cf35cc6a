"""A few typos, as a hurried person makes them."""

import re
from hashlib import blake2b
from itertools import islice

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.facts import kept_as_they_are, listed
from pcs_annotator.relations.language import NO_TYPOS
from pcs_annotator.relations.rule import NotApplicable, Replacement, splice, text_rule

WORDS_PER_TYPO = 8
MOST_TYPOS = 8
_FEWEST_WORDS = 3
# Shorter words stay as they are, and short ones are misspelt only if there are no long ones.
_SHORTEST, _LONG = 4, 6

# Alphabets in which a letter is one character; elsewhere two swapped characters may be no text at all.
_LETTER = "a-zà-öø-ÿ\u0101-\u0587\u05d0-\u05ea\u0620-\u064a\u0671-\u06d3\u10d0-\u10fa\u1e01-\u1fff"
_ANY_LETTER = re.compile(rf"[{_LETTER}]", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:['’]\w+)*")
# Names have capitals, and a letter that is repeated on purpose ("sooo") hides a typo.
_MAY_CHANGE = re.compile(rf"(?!.*(.)\1\1)[{_LETTER}]{{{_SHORTEST},}}")
_NEGATIONS, _OTHER_WORDS = listed("typo", "negations"), listed("typo", "other_words")
_VOWELS = frozenset("aeiou")
_NEVER_DOUBLED = frozenset("ahijkquvwxy")


@text_rule("rule:typo", version="2", expects=Expectation(shortest=0.85, longest=1.15, misspells=True), english=False)
def typo(text: str) -> str | NotApplicable:
    """Return the text with one typo in about eight words: two letters swapped, one missing, or one doubled.

    Only words of four and more letters without a capital are misspelt, the longer ones first, and never so that they
    become another word.

    >>> typo("The museum will reopen its northern wing after the summer.")
    'The museum will reoepn its northern wing after the summer.'
    """
    kept = kept_as_they_are(text)
    found = [word for word in _WORD.finditer(text) if not kept[word.start()]]
    if found and not _ANY_LETTER.search(text):
        return NotApplicable(NO_TYPOS)
    if len(found) < _FEWEST_WORDS:
        return NotApplicable("too short")
    seed = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    usable = [word for word in found if _MAY_CHANGE.fullmatch(word[0]) and word[0] not in _NEGATIONS]
    usable.sort(key=lambda word: (-min(len(word[0]), _LONG), _hash(seed, word.start())))
    wanted = min(max(1, round(len(found) / WORDS_PER_TYPO)), MOST_TYPOS)
    tried = (Replacement(*word.span(), _misspelt(word[0], _hash(seed, -word.start()))) for word in usable)
    made = list(islice((typo for typo in tried if typo.text), wanted))
    return splice(text, made) if made else NotApplicable("no word to misspell")


def _misspelt(word: str, seed: bytes) -> str:
    """Return the word with a typo that makes no other word of it; empty if there is no such typo."""
    inner = range(1, len(word) - 2)
    typos = {word[:at] + word[at] + word[at:] for at in inner if word[at] in _NEVER_DOUBLED or not word[at].isascii()}
    if len(word) > _SHORTEST:
        typos |= {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in inner if word[at] != word[at + 1]}
    if len(word) >= _LONG:
        typos |= {word[:at] + word[at + 1 :] for at in inner[1:] if _is_vowel_between_consonants(word, at)}
    return min(typos - _OTHER_WORDS, key=lambda typed: _hash(seed, typed), default="")


def _is_vowel_between_consonants(word: str, at: int) -> bool:
    return word[at] in _VOWELS and _VOWELS.isdisjoint((word[at - 1], word[at + 1]))


def _hash(seed: bytes, salt: object) -> bytes:
    return blake2b(str(salt).encode(), digest_size=8, key=seed).digest()
