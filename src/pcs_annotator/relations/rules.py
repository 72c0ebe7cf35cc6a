"""The rules that rewrite prose without a model: another case, a neutral lead-in, a few typos."""

import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice, pairwise

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.function import NotApplicable, text_rule
from pcs_annotator.relations.language import LOUD, NO_CASE, NO_LEAD_IN, NO_TYPOS, SMALL, known_language, listed, pattern
from pcs_annotator.relations.phrases import all_phrases

_WHOLE = pattern("kept_whole")
_ANY_KEPT = re.compile(f"{_WHOLE.pattern}|{pattern('kept_part').pattern}", re.VERBOSE)
_TOKEN = re.compile(r"\S+")
_JOINED = re.compile(r"\w(?=[/\\_.]\w)")  # in a path, a domain, the name of a file, an abbreviation

Word = re.Match[str]


def kept_as_they_are(text: str) -> bytearray:
    """Return 1 for every character that rules for letters leave alone: of addresses, mentions, numbers, emoticons."""
    kept = bytearray(len(text))
    for token in _TOKEN.finditer(text):
        word = token[0]
        if not word.isalpha() or "x" in word or "X" in word:  # "xD" is an emoticon
            for start, end in _kept_parts(text, *token.span()):
                kept[start:end] = b"\1" * (end - start)
    return kept


def _kept_parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts to keep of a run of characters without blanks, each character read a fixed number of times."""
    joined = max((mark.start() for mark in _JOINED.finditer(text, start, end)), default=-1)
    while start <= joined:
        whole = _WHOLE.match(text, start, end)
        part = whole.span() if whole else (start, end)
        yield part
        start = part[1]
    yield from (part.span() for part in _ANY_KEPT.finditer(text, start, end))


_CASED_WORD = re.compile(r"[^\W\d_]+(?:['’`][^\W\d_]+)*")
# What stands before the first word of a sentence, a line or a quotation.
_OPENS = re.compile(r"(?:\A|[.!?¿¡:;*|\n…\"“”„«(\[]|\s-+)[\s\"“”„'‘«(\[]*\Z")
_LOOK_BACK = 12
# A text may begin with the names of those it is addressed to.
_ADDRESSED = re.compile(r"(?:\W*+(?<=@)\w++)*+\W*+")
_LONGEST_ACRONYM = 5
# In a headline nearly every word has a capital, so that capitals do not mark names.
_HEADLINE = 0.85
# Letters of the languages in which i and ı are two letters.
_TURKISH = re.compile("[ıİğ]")
_FEWEST_WORDS = 3


@text_rule("rule:case", version="2")
def case(text: str) -> str | NotApplicable:
    """Return the text in small letters, except for names.

    If that changes nothing, sentences get a capital at their start, or else all words do.

    >>> case("My sister met Ann Lee of the BBC. GREAT news!")
    'my sister met Ann Lee of the BBC. great news!'
    >>> case("so tired. can't sleep")
    "So tired. Can't sleep"
    """
    kept = kept_as_they_are(text)
    words = [word for word in _CASED_WORD.finditer(text) if not kept[word.start()]]
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
        changed = _CASED_WORD.sub(lambda word: word[0] if kept[word.start()] else change(word), text)  # noqa: B023
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


# A text of two short words is much shorter than the lead-in.
@text_rule("rule:frame", version="2", expects=Expectation(shortest=1.0, longest=8.0))
def frame(text: str) -> str | NotApplicable:
    """Return the unchanged text after a lead-in in its language that says nothing about it.

    >>> frame("The bridge is open."), frame("Die Brücke ist wieder offen.")
    ('The text reads: The bridge is open.', 'Der Text lautet: Die Brücke ist wieder offen.')
    """
    phrases = all_phrases().get(known_language(text))
    if phrases is None:
        return NotApplicable(NO_LEAD_IN)
    return NotApplicable("already framed") if text.startswith(phrases.lead_in) else phrases.lead_in + text


WORDS_PER_TYPO = 8
MOST_TYPOS = 8
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


@text_rule("rule:typo", version="2", expects=Expectation(shortest=0.85, longest=1.15, misspells=True))
def typo(text: str) -> str | NotApplicable:
    """Return the text with one typo in about eight words: two letters swapped, one missing, or one doubled.

    Only small words of four and more letters are misspelt, long ones first, and never to another word.

    >>> typo("The museum will reopen its northern wing after the summer.")
    'The museum will reoepn its northern wing after the summer.'
    """
    kept = kept_as_they_are(text)
    words = [word for word in _WORD.finditer(text) if not kept[word.start()]]
    if words and not _ANY_LETTER.search(text):
        return NotApplicable(NO_TYPOS)
    if len(words) < _FEWEST_WORDS:
        return NotApplicable("too short")
    seed = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    usable = [word for word in words if _MAY_CHANGE.fullmatch(word[0]) and word[0] not in _NEGATIONS]
    usable.sort(key=lambda word: (-min(len(word[0]), _LONG), _hash(seed, word.start())))
    wanted = min(max(1, round(len(words) / WORDS_PER_TYPO)), MOST_TYPOS)
    tried = ((word.start(), _misspelt(word[0], _hash(seed, -word.start()))) for word in usable)
    made = dict(islice((typo for typo in tried if typo[1]), wanted))
    return _WORD.sub(lambda word: made.get(word.start(), word[0]), text) if made else NotApplicable(_NO_WORD)


_NO_WORD = "no word to misspell"


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
