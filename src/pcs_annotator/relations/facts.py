"""Facts about English words and sentences that rules and checks share: names, titles, inflections, parts of clauses."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pcs_annotator.base.errors import MissingPackage

if TYPE_CHECKING:
    from spacy.tokens import Span, Token


def word_set(words: str) -> frozenset[str]:
    """Return the words of a string as a set.

    >>> sorted(word_set("is are was"))
    ['are', 'is', 'was']
    """
    return frozenset(words.split())


@cache
def word_tables() -> Mapping[str, Mapping[str, str]]:
    """Return the tables of `words.toml`."""
    return tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))


def listed(table: str, *names: str) -> frozenset[str]:
    """Return the words of lists in a table of `words.toml`."""
    return word_set(" ".join(word_tables()[table][name] for name in names))


def pattern(name: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a regular expression of `words.toml`."""
    return re.compile(word_tables()["patterns"][name], flags | re.VERBOSE)


SMALL = listed("names", "small")  # words that say little by themselves and are never names
LOUD = listed("names", "loud")  # words that people capitalise although they are not names
NAMES_TOO = listed("names", "words_too")  # names that are also words

_UPOS = {"V": "VERB", "M": "AUX", "N": "NOUN", "J": "ADJ", "R": "ADV"}


def lemma(token: Token) -> str:
    """Return the dictionary form of a parsed word, in lower case."""
    return lemma_of(token.lower_, token.tag_)


@lru_cache(maxsize=50_000)
def lemma_of(word: str, tag: str) -> str:
    """Return the dictionary form of a word with a Penn tag; the word itself if it is not inflected.

    >>> lemma_of("took", "VBD"), lemma_of("mice", "NNS"), lemma_of("the", "DT")
    ('take', 'mouse', 'the')
    """
    upos = _UPOS.get(tag[:1])
    if upos is None or tag in ("NNP", "NNPS"):
        return word
    if word in ("'s", "'re", "'m", "’s", "’re", "’m") and upos == "VERB":
        return "be"
    found = _lemminflect().getLemma(word, upos=upos)
    return found[0] if found else word


@lru_cache(maxsize=50_000)
def inflect(base: str, tag: str) -> str | None:
    """Return a dictionary form inflected for a Penn tag; None if unknown.

    >>> inflect("take", "VBN"), inflect("mouse", "NNS")
    ('taken', 'mice')
    """
    found = _lemminflect().getInflection(base, tag=tag, inflect_oov=False)
    return found[0] if found else None


@lru_cache(maxsize=50_000)
def readings(word: str) -> frozenset[str]:
    """Return the parts of speech that a word may be, in any form; none if it is in no dictionary, as most names are.

    >>> sorted(readings("aims")), sorted(readings("obama"))
    (['NOUN', 'VERB'], [])
    """
    return frozenset(_lemminflect().getAllLemmas(word))


_SMALL_IN_TITLES = listed("names", "small_in_titles")
_WORD = re.compile(r"(?:(?<!\w)[@#]\w*[^\W\d]\w*|[^\W_]+)(?:['’`][^\W_]+)*")
_LEAST_WORDS, _LEAST_CAPITALS = 2, 0.9


def is_title(sentence: str) -> bool:
    """Return whether nearly every word but the small ones has a capital, so that capitals do not mark names.

    >>> is_title("How the Mayor Saved Her Old School"), is_title("How Ann Lee saved her old school")
    (True, False)
    """
    words = [word for word in _WORD.findall(sentence)[1:] if word[0].isalpha() and word not in _SMALL_IN_TITLES]
    return len(words) >= _LEAST_WORDS and sum(not word.islower() for word in words) >= _LEAST_CAPITALS * len(words)


_NEVER_NAMES = listed("names", "never")
_OFTEN_NAMES = listed("names", "words_too", "often")


def within_sentence(first: Token) -> str | None:
    """Return the first word of a sentence as it is written elsewhere; None if its capital may be a name's or not."""
    word, low, tag = first.text, first.lower_, first.tag_
    if low in _NEVER_NAMES or word == "I":
        return low if word != "I" else word
    following = first.nbor().text[:1] if first.i + 1 < len(first.doc) else ""
    # "New Virginia rules", "New York"
    if low == "new":
        return None
    if tag in ("NNP", "NNPS") and (following.isupper() or not readings(low)):
        return word
    if not readings(low):
        # "American", "Danish"; other unknown words may be misspelt.
        return word if tag == "JJ" and low.endswith(("an", "ish", "ese", "i", "ic", "ch")) else None
    if following.isupper() or following.isdigit() or low in _OFTEN_NAMES or word[1:] != word[1:].lower():
        return None
    return low if tag in ("NNS", "JJ", "JJR", "CD", "VBG") else None


_WHOLE = pattern("kept_whole")
_ANY_KEPT = re.compile(f"{_WHOLE.pattern}|{pattern('kept_part').pattern}", re.VERBOSE)
_TOKEN = re.compile(r"\S+")
_JOINED = re.compile(r"\w(?=[/\\_.]\w)")  # in a path, a domain, the name of a file, an abbreviation


def kept_as_they_are(text: str) -> bytearray:
    """Return, for every character of a text, 1 if rules for letters must leave it alone and 0 otherwise.

    These are addresses, mentions, tags, numbers and emoticons.

    >>> "".join("x" if kept else "." for kept in kept_as_they_are("See @Bob, 5pm: https://a.b/C"))
    '....xxxx..xxx..xxxxxxxxxxxxx'
    """
    kept = bytearray(len(text))
    for token in _TOKEN.finditer(text):
        word = token[0]
        if not word.isalpha() or "x" in word or "X" in word:  # "xD" is an emoticon
            for start, end in _kept_parts(text, *token.span()):
                kept[start:end] = b"\1" * (end - start)
    return kept


def _kept_parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts to keep of a run of characters without blanks, each character read a fixed number of times."""
    joined = max((found.start() for found in _JOINED.finditer(text, start, end)), default=-1)
    while start <= joined:
        found = _WHOLE.match(text, start, end)
        part = found.span() if found else (start, end)
        yield part
        start = part[1]
    yield from (found.span() for found in _ANY_KEPT.finditer(text, start, end))


def _lemminflect() -> Any:  # the package has no types
    try:
        import lemminflect
    except ModuleNotFoundError as error:
        raise MissingPackage("this relation inflects English: pip install 'perceived-confidence[rules]'") from error
    return lemminflect


SUBJECTS = frozenset({"nsubj", "nsubjpass", "expl"})
FINITE = frozenset({"VBD", "VBP", "VBZ", "MD"})
NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS"})

# A capital, words, and one mark at the end; no quotations, brackets, dashes, links, tags or emoji.
_PLAIN = re.compile(r"[A-Z](?:[^\W_]|[ ,$£€%&'’.-])*[.!]")
_BROKEN = re.compile(r"\. ?\.| -|- | ['’]|['’] |[^\W\d]\.[A-Z][a-z]|\b[A-Z]\.?\s?\.$")
_SHOUTED = re.compile(r"\b[A-Z]{4,}\b")
_ENDS = re.compile(r"[.!?][\"'”’)]*\s*\Z|\A\s*\Z|\n[^\S\n]*\Z")
_NO_SURE_NUMBER = listed("sentence", "no_sure_number")
_PLURAL = word_set("people men women children they we these those")


def why_not_plain(sentence: Span) -> str:
    """Return why a sentence is not plain prose from its capital to its full stop; empty when it is."""
    if not _PLAIN.fullmatch(sentence.text) or _BROKEN.search(sentence.text):
        return "not plain prose"
    return why_not_whole(sentence)


def why_not_whole(sentence: Span) -> str:
    """Return why what the parser takes for a sentence may be a title or a part of a sentence; empty when it is not."""
    doc, text = sentence.doc, sentence.text
    before, after = doc[max(0, sentence.start - 3) : sentence.start].text, doc[sentence.end - 1].whitespace_
    if not _ENDS.search(before) or (not after and sentence.end < len(doc) and not doc[sentence.end].is_space):
        return "part of a sentence"
    shouted = any(readings(word.lower()) for word in _SHOUTED.findall(text))
    return "a title or capitals" if shouted or is_title(text) else ""


def finite_of(verb: Token) -> Token | None:
    """Return the word that carries the tense of a clause: its first auxiliary, or the verb itself."""
    helpers = [child for child in verb.lefts if child.dep_ in ("aux", "auxpass")]
    first = helpers[0] if helpers else verb
    return first if first.tag_ in FINITE else None


def subject_of(verb: Token) -> Token | None:
    """Return the subject of a clause if it has just one, in front of the verb."""
    found = [child for child in verb.children if child.dep_ in SUBJECTS or child.dep_ in ("csubj", "csubjpass")]
    return found[0] if len(found) == 1 and found[0].dep_ in SUBJECTS and found[0].i < verb.i else None


def is_plural(noun: Token) -> bool | None:
    """Return whether a noun or pronoun is plural; None when that is not clear."""
    word, before = noun.lower_, {child.lower_ for child in noun.lefts}
    if any(child.dep_ in ("conj", "cc", "appos") for child in noun.children) or word in _NO_SURE_NUMBER:
        return None
    if word in _PLURAL:
        return True
    one = not before.isdisjoint({"a", "an", "this", "that", "another"})
    if noun.tag_ == "NNS":
        return None if one or word.endswith("ics") or lemma(noun) == word else True
    counted = any(child.tag_ == "CD" and child.lower_ not in ("one", "1") for child in noun.lefts)
    if noun.tag_ not in ("NN", "NNP", "PRP", "DT", "EX") or counted or word == "you":
        return None
    # "Leeds", "the Mujahideen"
    unclear = (word.endswith("s") and not word.endswith("ss")) or ("the" in before and not readings(word))
    return None if noun.tag_ == "NNP" and unclear else False


def agrees(subject: Token, finite: Token) -> bool:
    """Return whether the form of a verb fits its subject; where it does not, the parse is wrong."""
    if finite.tag_ == "MD":
        return True
    if subject.lower_ in ("i", "you"):
        return finite.tag_ == "VBD" or (finite.tag_ == "VBP" and finite.lower_ not in ("is", "'s"))
    plural = is_plural(subject)
    if finite.tag_ == "VBZ" or finite.lower_ == "was":
        return plural is not True
    if finite.tag_ == "VBP" or finite.lower_ == "were":
        return plural is not False
    return finite.lower_ == inflect(lemma(finite), "VBD") or finite.lower_ in ("'d", "’d")
