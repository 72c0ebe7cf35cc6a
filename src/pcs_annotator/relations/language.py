"""Which language a text is in, and whether it is English prose that a rule may rewrite.

Every text is judged by itself, never by its neighbours: the same text has the same variants in every file, whatever the
order of its rows, and when it comes alone.
"""

from __future__ import annotations

import re
from copy import copy
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from pcs_annotator.base.user_cache import cache_folder, keep_folder
from pcs_annotator.relations.facts import pattern, word_tables

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# The beginning of a long text is enough.
SAMPLE = 3_000

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_PLAIN_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S*|[\w.+-]{1,64}@[\w-]+\.\w+|[@#]\w+|&[a-z]+;")
_ADDRESS_MARKS = ("@", "#", "://", "www.", "&")
_BEYOND_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")

_SCRIPTS = [(language, re.compile(script)) for language, script in word_tables()["scripts"].items()]

# Norwegian counts as Danish and Malay as Indonesian, so that such close languages do not count as different.
LANGUAGES = ("en", "es", "fr", "de", "pt", "it", "nl", "sv", "da", "pl", "cs", "tr", "id", "tl", "ro", "fi", "hu", "vi")
# Short English texts with foreign names look foreign to the library, so a text counts as English unless its
# probability is below this. Chosen with benchmarks/language.py; docs/design/rewrites.md has the figures.
_LEAST_ENGLISH = 0.03
_WORDS_READ = 100
# With all languages of the library to choose from, one this probable is known: Catalan and Swahili look more like
# English than like any of the common languages. A text this probably English needs no such second look.
_KNOWN = 0.6
_SURELY_ENGLISH = 0.95
# Dialects and close relatives that share their written language, and codes for the same language.
_SAME_LANGUAGE = {
    "wuu": "zh", "yue": "zh", "ary": "ar", "arz": "ar", "ext": "es", "an": "es", "lij": "it", "vec": "it", "pcm": "en",
}  # fmt: skip
# The table of scripts names one language for each of these; only the library can tell it from the others.
_SHARED_SCRIPTS = ("ru", "ar", "hi", "zh")
NAMES = word_tables()["languages"]  # the English names of common languages; others are shown by their code
NOT_ENGLISH = "not English"
NO_LEAD_IN = "no lead-in in this language"
NO_CASE = "no letter has another case"
NO_TYPOS = "no typos in this script"
LIMITS = (NOT_ENGLISH, NO_LEAD_IN, NO_CASE, NO_TYPOS)  # why a rule does not apply, because of language or script

# Tested first: most prose has none of these.
_MAY_BE_CODE = re.compile(
    r"[{}<>=|\\]|\w\(|\s--?[a-z]|;(?:\n|\Z)|\A(?:import|from|SELECT|sudo|git|pip|npm|cd|ls|\$) |\A#!"
)
_CODE, _STATEMENT = pattern("code", re.MULTILINE), pattern("statement", re.MULTILINE)
_LINK = re.compile(r"https?://[^\s\"'<>)]+")
# Prose may have one mark of code in this many words; a whole statement counts for several.
_WORDS_PER_MARK = 6
# A rewrite with this share of words from its text is in the same language.
_SHARED_WORDS = 0.6
_MARKS_PER_STATEMENT = 3


def why_not_english(text: str) -> str:
    """Return why rules must not rewrite a text; empty when they may.

    >>> why_not_english("Le chat dort sur le lit."), why_not_english("The cat sleeps on the bed.")
    ('not English', '')
    """
    reason = _why_not(text[:SAMPLE])
    return "no words" if reason == "empty text" and text.strip() else reason


def why_not_prose(text: str) -> str:
    """Return why a text is not prose in any language, such as code or a bare link; empty when it may be.

    >>> why_not_prose("Le chat dort sur le lit."), why_not_prose("x = f(y);")
    ('', 'looks like code')
    """
    sample = text[:SAMPLE]
    if not text.strip():
        return "empty text"
    if _is_code(sample):
        return "looks like code"
    return "" if _words(sample) else "no words"


# All rules look up the same few texts.
@lru_cache(maxsize=4096)
def _why_not(sample: str) -> str:
    if reason := why_not_prose(sample):
        return reason
    words = _words(sample)
    # Includes scripts that no entry of the table covers.
    if _script_of(words):
        return NOT_ENGLISH
    if len(words) == 1:
        return "a single word"
    return "" if _latin_language(" ".join(words[:_WORDS_READ])) == "en" else NOT_ENGLISH


def language_of(text: str) -> str:
    """Return the language of a text, such as `en` or `es`; empty when the text is too short.

    All Cyrillic text counts as `ru`, Arabic script as `ar` and Devanagari as `hi`.

    >>> language_of("Der Hund schläft nicht."), language_of("42")
    ('de', '')
    """
    words = _words(text[:SAMPLE])
    if script := _script_of(words):
        return script.strip("?")
    return _usual_language(" ".join(words[:_WORDS_READ]))[0] if len(words) > 1 else ""


def known_language(text: str) -> str:
    """Return the language of a text where it is certain enough to write in it; else empty, as for most short texts.

    Unlike `language_of`, which compares texts, it tells Ukrainian from Russian and leaves doubtful texts out.

    >>> known_language("Цей фільм дуже нудний"), known_language("Wer kommt?"), known_language("Das Essen war kalt.")
    ('uk', '', 'de')
    """
    return _known_language(text[:SAMPLE])


@lru_cache(maxsize=4096)
def _known_language(sample: str) -> str:
    words = _words(sample)
    script = _script_of(words)
    if script and script not in _SHARED_SCRIPTS:
        return script.strip("?")
    read = " ".join(words[:_WORDS_READ])
    if not script and len(words) < 2:
        return ""
    if not script:
        return _latin_language(read)
    language, probability = _most_probable(read)
    return language if probability >= _KNOWN else ""


def may_be_english(text: str) -> bool:
    """Return whether a text is English, or too short to tell and in Latin letters."""
    return (known_language(text) or language_of(text)) in ("en", "")


def other_language(source: str, text: str) -> str:
    """Return the language of a rewrite if it is another than the source's; empty in doubt."""
    if _shares_words(source, text):
        return ""
    before, after = language_of(source), language_of(text)
    if not before or not after or before == after:
        return ""
    known = known_language(source)
    words = " ".join(_words(text[:SAMPLE])[:_WORDS_READ])
    # As with English, the language of the source has the benefit of the doubt.
    doubtful = known not in ("", "en") and _probabilities(words).get(known, 0.0) >= _LEAST_ENGLISH
    return "" if doubtful else after


def _shares_words(source: str, text: str) -> bool:
    """Return whether most words of a rewrite are the text's, so that its language need not be found out."""
    known, found = set(_words(source[:SAMPLE])), _words(text[:SAMPLE])
    return sum(word in known for word in found) > _SHARED_WORDS * len(found)


def _words(sample: str) -> list[str]:
    lowered = sample.lower()
    if any(mark in lowered for mark in _ADDRESS_MARKS):
        lowered = _ADDRESS.sub(" ", lowered)
    return (_PLAIN_WORD if lowered.isascii() else _WORD).findall(lowered)


# All rules and checks look up the same few texts.
@lru_cache(maxsize=4096)
def _usual_language(words: str) -> tuple[str, float]:
    """Return the best of the common languages, and the probability that it is English."""
    ranked = _identifier().rank(words)
    english = dict(ranked)["en"]
    return ("en" if english >= _LEAST_ENGLISH else ranked[0][0]), english


@lru_cache(maxsize=4096)
def _latin_language(words: str) -> str:
    """Return the language of words in Latin letters, English in doubt; empty if it is another that is not certain."""
    usual, english = _usual_language(words)
    if english >= _SURELY_ENGLISH:
        return "en"
    language, probability = _most_probable(words)
    if usual == "en":
        return language if probability >= _KNOWN else "en"
    return language if probability >= _KNOWN and (language == usual or language not in LANGUAGES) else ""


def _most_probable(words: str) -> tuple[str, float]:
    return max(_probabilities(words).items(), key=lambda pair: pair[1])


def _probabilities(words: str) -> dict[str, float]:
    """Return how probable each of all languages is."""
    found: dict[str, float] = {}
    for code, probability in _every_language().rank(words):
        language = _SAME_LANGUAGE.get(code, code)
        found[language] = found.get(language, 0.0) + probability
    return found


@cache
def _every_language() -> LanguageIdentifier:
    return load_identifier()


@cache
def _identifier() -> LanguageIdentifier:
    identifier = copy(_every_language())
    identifier.set_languages(LANGUAGES)
    return identifier


# In the order of `load_model`.
PARTS = ("weights", "priors", "languages", "moves", "rows", "features")


def load_identifier() -> LanguageIdentifier:
    """Return a model that knows all languages, unpacked once and kept in the user's cache.

    Unpacking takes most of a second, as long as everything else that `pcs plan` does.
    """
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier
    from py3langid.modelio import load_model

    source = Path(MODEL_DIR) / MODEL_FILE
    name = f"languages-{crc32(source.read_bytes()):08x}"
    try:
        parts = _unpacked(cache_folder() / name)
    except RuntimeError:  # this user has no home folder
        parts = load_model(source)
    except (OSError, ValueError):  # not there yet, or damaged
        parts = load_model(source)
        keep_folder(cache_folder() / name, partial(_write, parts))
    weights, priors, languages, moves, rows, features = parts
    return LanguageIdentifier(weights, priors, languages, moves, features, norm_probs=True, tk_row=rows)


def _unpacked(folder: Path) -> tuple[Any, ...]:
    # Of the large parts, only what the texts need is read from disk.
    weights, priors, languages, moves, rows, features = (
        np.load(folder / f"{name}.npy", mmap_mode="r" if name in ("weights", "moves") else None) for name in PARTS
    )
    # one number at a time is read several times as fast from a memoryview and a list as from an array
    return np.asarray(weights), priors, languages.tolist(), memoryview(moves), rows.tolist(), features.tolist()


def _write(parts: tuple[Any, ...], folder: Path) -> None:
    for name, part in zip(PARTS, parts, strict=True):
        np.save(folder / f"{name}.npy", np.asarray(part))


def _script_of(words: list[str]) -> str:
    """Return a language for a script with at least a third of the letters; empty for the Latin script."""
    letters = "".join(words)
    beyond = "" if letters.isascii() else "".join(_BEYOND_LATIN.findall(letters))
    if not beyond or 3 * len(beyond) < len(letters):
        return ""
    counts = {language: len(script.findall(beyond)) for language, script in _SCRIPTS}
    if 10 * counts["ja"] > len(beyond):
        return "ja"
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] else "?"


def _is_code(sample: str) -> bool:
    if not _MAY_BE_CODE.search(sample):
        return False
    tokens = sample.split()
    if "://" in sample:
        sample = _LINK.sub(" ", sample)
    marks = len(_CODE.findall(sample)) + _MARKS_PER_STATEMENT * len(_STATEMENT.findall(sample))
    return (marks > 1 or (marks > 0 and len(tokens) <= 3)) and marks * _WORDS_PER_MARK >= len(tokens)
