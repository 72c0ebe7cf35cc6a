"""Words and patterns of `words.toml`, which language a text is in, and whether it is prose.

Each text is judged by itself, never by its neighbours.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files


@cache
def word_tables() -> Mapping[str, Mapping[str, str]]:
    """Return the tables of `words.toml`."""
    return tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))


def listed(table: str, name: str) -> frozenset[str]:
    """Return the words of a list in `words.toml`."""
    return frozenset(word_tables()[table][name].split())


def pattern(name: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a regular expression of `words.toml`."""
    return re.compile(word_tables()["patterns"][name], flags | re.VERBOSE)


SMALL = listed("names", "small")  # words that say little by themselves and are never names
LOUD = listed("names", "loud")  # words that people capitalise although they are not names

SAMPLE = 3_000  # characters: the beginning of a long text is enough
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S*|[\w.+-]{1,64}@[\w-]+\.\w+|[@#]\w+|&[a-z]+;")
_ADDRESS_MARKS = ("@", "#", "://", "www.", "&")
_BEYOND_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
_SCRIPTS = {language: re.compile(script) for language, script in word_tables()["scripts"].items()}
# The table of scripts names one language for each of these; only the library can tell it from the others.
_SHARED_SCRIPTS = ("ru", "ar", "hi", "zh")

# Norwegian counts as Danish and Malay as Indonesian, so that such close languages do not count as different.
LANGUAGES = ("en", "es", "fr", "de", "pt", "it", "nl", "sv", "da", "pl", "cs", "tr", "id", "tl", "ro", "fi", "hu", "vi")
# Short English texts with foreign names look foreign to the library, so a text counts as English unless its
# probability is below this. Chosen with benchmarks/language.py; docs/design/rewrites.md has the figures.
_LEAST_ENGLISH = 0.03
_WORDS_READ = 100
# With all languages of the library to choose from, one this probable is known: Catalan and Swahili look more like
# English than like any of the common languages. A text this probably English needs no such second look.
_KNOWN, _SURELY_ENGLISH = 0.6, 0.95
_SAME_LANGUAGE = word_tables()["same_language"]  # dialects and close relatives that share their written language
NAMES = word_tables()["languages"]  # the English names of common languages; others are shown by their code
# why a rule does not apply, because of language or script
LIMITS = NO_LEAD_IN, NO_CASE, NO_TYPOS = (
    "no lead-in in this language",
    "no letter has another case",
    "no typos in this script",
)


def language_of(text: str) -> str:
    """Return the language of a text; empty when the text is too short. All Cyrillic is `ru`, Arabic script `ar`."""
    words = _words(text)
    if script := _script_of(words):
        return script.strip("?")
    return _common_language(words)[0] if len(words) > 1 else ""


@lru_cache(maxsize=4096)
def known_language(text: str) -> str:
    """Return the language of a text if it is certain enough to write in it; else empty, as for most short texts."""
    words = _words(text)
    script = _script_of(words)
    if (script and script not in _SHARED_SCRIPTS) or (not script and len(words) < 2):
        return script.strip("?")
    common, english = ("", 0.0) if script else _common_language(words)
    if english >= _SURELY_ENGLISH:
        return "en"
    language, probability = max(_probabilities(words).items(), key=lambda pair: pair[1])
    if probability < _KNOWN:
        return "en" if common == "en" else ""
    return language if common in ("", "en", language) or language not in LANGUAGES else ""


def likely_language(text: str) -> str:
    """Return the language of a text, certain or not; empty when the text is too short."""
    return known_language(text) or language_of(text)


def may_be_english(text: str) -> bool:
    """Return whether a text is English, or too short to tell and in Latin letters."""
    return likely_language(text) in ("en", "")


def other_language(source: str, text: str) -> str:
    """Return the language of a rewrite if it is another than the source's; empty in doubt."""
    source_words, words = set(_words(source)), _words(text)
    if sum(word in source_words for word in words) > 0.6 * len(words):
        return ""
    before, after = language_of(source), language_of(text)
    if not before or not after or before == after:
        return ""
    # As with English, the language of the source has the benefit of the doubt.
    sure = known_language(source)
    doubtful = sure not in ("", "en") and _probabilities(words).get(sure, 0.0) >= _LEAST_ENGLISH
    return "" if doubtful else after


def _words(text: str) -> list[str]:
    sample = text[:SAMPLE].lower()
    if any(mark in sample for mark in _ADDRESS_MARKS):
        sample = _ADDRESS.sub(" ", sample)
    return _WORD.findall(sample)


def _script_of(words: list[str]) -> str:
    """Return a language for a script with at least a third of the letters, `?` for an unlisted one, empty for Latin."""
    letters = "".join(words)
    beyond = "" if letters.isascii() else "".join(_BEYOND_LATIN.findall(letters))
    if not beyond or 3 * len(beyond) < len(letters):
        return ""
    counts = {language: len(script.findall(beyond)) for language, script in _SCRIPTS.items()}
    if 10 * counts["ja"] > len(beyond):
        return "ja"
    return max(counts, key=counts.__getitem__) if any(counts.values()) else "?"


def _common_language(words: list[str]) -> tuple[str, float]:
    """Return the best of the common languages, and the probability that it is English among them."""
    ranked = _ranked(words)
    english = ranked["en"] / sum(ranked[language] for language in LANGUAGES)
    return ("en" if english >= _LEAST_ENGLISH else max(LANGUAGES, key=ranked.__getitem__)), english


def _probabilities(words: list[str]) -> dict[str, float]:
    """Return how probable each of all languages is."""
    merged: dict[str, float] = {}
    for code, probability in _ranked(words).items():
        language = _SAME_LANGUAGE.get(code, code)
        merged[language] = merged.get(language, 0.0) + probability
    return merged


def _ranked(words: list[str]) -> dict[str, float]:
    return _rank(" ".join(words[:_WORDS_READ]))


# All rules and checks look up the same few texts.
@lru_cache(maxsize=4096)
def _rank(words: str) -> dict[str, float]:
    return dict(_identifier().rank(words))


@cache
def _identifier():  # type: ignore[no-untyped-def]  # the library has no types
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


# Tested first: most prose has none of these.
_MAY_BE_CODE = re.compile(
    r"[{}<>=|\\]|\w\(|\s--?[a-z]|;(?:\n|\Z)|\A(?:import|from|SELECT|sudo|git|pip|npm|cd|ls|\$) |\A#!"
)
_CODE, _STATEMENT = pattern("code", re.MULTILINE), pattern("statement", re.MULTILINE)
_LINK = re.compile(r"https?://[^\s\"'<>)]+")
# Prose may have one mark of code in this many words; a whole statement counts for several.
_WORDS_PER_MARK, _MARKS_PER_STATEMENT = 6, 3


def why_not_prose(text: str) -> str:
    """Return why a text is not prose in any language, such as code or a bare link; empty when it may be."""
    if not text.strip():
        return "empty text"
    if _is_code(text[:SAMPLE]):
        return "looks like code"
    return "" if _words(text) else "no words"


def _is_code(sample: str) -> bool:
    if not _MAY_BE_CODE.search(sample):
        return False
    tokens, sample = sample.split(), _LINK.sub(" ", sample)
    marks = len(_CODE.findall(sample)) + _MARKS_PER_STATEMENT * len(_STATEMENT.findall(sample))
    return (marks > 1 or (marks > 0 and len(tokens) <= 3)) and marks * _WORDS_PER_MARK >= len(tokens)
