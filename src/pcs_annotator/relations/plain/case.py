"""Another case: small letters instead of capitals or, in a text without capitals, the other way round."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from pcs_annotator.relations.facts import LOUD, SMALL, kept_as_they_are
from pcs_annotator.relations.language import NO_CASE, known_language
from pcs_annotator.relations.rule import NotApplicable, Replacement, splice, text_rule

_WORD = re.compile(r"[^\W\d_]+(?:['’`][^\W\d_]+)*")
# What stands before the first word of a sentence, a line or a quotation.
_OPENS = re.compile(r"(?:\A|[.!?¿¡:;*|\n…\"“”„«(\[]|\s-+)[\s\"“”„'‘«(\[]*\Z")
_LOOK_BACK = 12
# A text may begin with the names of those it is addressed to.
_ADDRESSED = re.compile(r"(?:\W*+(?<=@)\w++)*+\W*+")
_LONGEST_ACRONYM = 5
# In a headline nearly every word has a capital, so that capitals do not mark names.
_HEADLINE = 0.85
_FEWEST_WORDS = 3
# Letters of the languages in which i and ı are two letters.
_TURKISH = re.compile("[ıİğ]")

Word = re.Match[str]


@text_rule("rule:case", version="2", english=False)
def case(text: str) -> str | NotApplicable:
    """Return the text in small letters, except for names.

    If that changes nothing, sentences get a capital at their start, or else all words do.

    >>> case("My sister met Ann Lee of the BBC. GREAT news!")
    'my sister met Ann Lee of the BBC. great news!'
    >>> case("so tired. can't sleep")
    "So tired. Can't sleep"
    """
    kept = kept_as_they_are(text)
    words = [word for word in _WORD.finditer(text) if not kept[word.start()]]
    addressed = _ADDRESSED.match(text)
    after_names = addressed.end() if addressed else 0
    opening = {word.start() for word in words if word.start() <= after_names or _opens(text, word.start())}
    names = _names(text, words, opening)
    turkish = _TURKISH.search(text) is not None
    changes: Sequence[Callable[[Word], str]] = (
        lambda word: word[0] if word.start() in names else _lower(word[0], turkish=turkish),
        lambda word: _capitalised(word[0], turkish=turkish) if word.start() in opening else word[0],
        lambda word: _capitalised(word[0], turkish=turkish),
    )
    for change in changes:
        changed = splice(text, [Replacement(word.start(), word.end(), change(word)) for word in words])
        if changed != text:
            return changed
    return NotApplicable(NO_CASE)


def _lower(word: str, *, turkish: bool) -> str:
    # Python would make two characters of İ, and i of the Turkish I.
    return (word.replace("İ", "i").replace("I", "ı") if turkish else word).lower()


def _capitalised(word: str, *, turkish: bool) -> str:
    if not word.islower():
        return word
    return ("İ" if turkish and word[0] == "i" else word[0].title()) + word[1:]


def _opens(text: str, start: int) -> bool:
    return _OPENS.search(text, max(0, start - _LOOK_BACK), start) is not None


def _names(text: str, words: Sequence[Word], opening: set[int]) -> set[int]:
    """Return where words start that are names or short forms, as far as their capitals show it."""
    telling = [word[0] for word in words if word[0].lower() not in SMALL]
    capitals = sum(word[0].isupper() for word in telling)
    if len(telling) >= _FEWEST_WORDS and capitals >= _HEADLINE * len(telling):
        return set()
    names = {word.start() for word in words if _is_name(word[0], opens=word.start() in opening)}
    # In German, nouns have capitals too, and what stands before one is mostly its article.
    for word, after in pairwise(words) if known_language(text) != "de" else ():
        # "Ann Lee" may open a sentence.
        beside = after.start() in names and text[word.end() : after.start()] == " "
        if beside and word[0].istitle() and not _is_ordinary(word[0]):
            names.add(word.start())
    return names


def _is_name(word: str, *, opens: bool) -> bool:
    if word.isupper():
        return word == "US" or (1 < len(word) <= _LONGEST_ACRONYM and not _is_ordinary(word))
    # "eBay" and, in the middle of a sentence, "May"; but not "I'm"
    return word[1:].lower() != word[1:] or (word.istitle() and not opens)


def _is_ordinary(word: str) -> bool:
    plain = word.lower().replace("’", "'").replace("`", "'")
    return plain in SMALL or plain in LOUD
