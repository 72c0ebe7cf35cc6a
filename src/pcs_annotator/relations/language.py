"""Whether a text is English prose that a rule may rewrite, and which language it is in."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# The beginning of a long text is enough.
SAMPLE = 3_000

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_PLAIN_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S*|[\w.+-]+@[\w-]+\.\w+|[@#]\w+|&[a-z]+;")
_ADDRESS_MARKS = ("@", "#", "://", "www.", "&")
_BEYOND_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")

_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff\u0750-\u077f]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("bn", re.compile(r"[\u0980-\u09ff]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
)

# Norwegian counts as Danish and Malay as Indonesian, so that such close languages do not count as different.
LANGUAGES = ("en", "es", "fr", "de", "pt", "it", "nl", "sv", "da", "pl", "cs", "tr", "id", "tl", "ro", "fi", "hu", "vi")
# Short English texts with foreign names look foreign to the library, so a text counts as English unless its
# probability is below this. Chosen with benchmarks/language.py; docs/design/rewrites.md has the figures.
_LEAST_ENGLISH = 0.03
_WORDS_READ = 100

# Single characters are tested first: most prose has none of these.
_CODE_CHARACTERS = re.compile(r"[{}<>=|\\]")
_CALL = re.compile(r"\w\(")
_OPTION = re.compile(r"\s--?[a-z]")
_CODE_BEGINNINGS = ("import ", "from ", "SELECT ", "sudo ", "git ", "pip ", "npm ", "cd ", "ls ", "$ ", "#!")
_CODE = re.compile(
    r"""
      [\w\])]\([^()\s]*\)                                  # a call
    | \b[A-Za-z_][\w.]*\([^()]*[=,'"][^()]*\)
    | [;{}][ \t]*$                                          # a statement's end
    | </?[a-zA-Z][\w-]*(?:\s+[\w-]+=[^<>]*)?\s*/?>         # a tag
    | (?<![=<>!])\s(?:[-+*/!<>=]?=|:=|===|!==|=>)\s        # an assignment or a comparison
    | \b\w+=["'\w]+
    | &&|\|\||::\w|\w->\w|\+\+
    | "[\w-]+"\s*:                                         # a key of JSON
    | \s--?[a-z][\w-]*(?=[\s=]|$)                          # an option
    """,
    re.VERBOSE | re.MULTILINE,
)
_STATEMENT = re.compile(
    r"""
      ^[ \t]*(?:def|class|function|fn|func|public|private|static|const|let|var|struct)\ \w+\s*[=(:{<]
    | ^[ \t]*(?:import\ [\w.]+(?:\ as\ \w+)?;?\s*$|from\ [\w.]+\ import\ |\#include|\#!/|using\ namespace)
    | \bSELECT\ .{1,200}?\ FROM\ \w+|\bINSERT\ INTO\ \w+|\bDELETE\ FROM\ \w+|\bCREATE\ TABLE\ \w+|\bUPDATE\ \w+\ SET\ 
    | ^[ \t]*(?:\$\ |>\ |sudo\ )?(?:git|pip|npm|docker|curl|cd|ls|grep|apt-get|mkdir|rm|python3?|ssh|cat)\ [-\w./|"']+
    """,
    re.VERBOSE | re.MULTILINE,
)
_LINK = re.compile(r"https?://[^\s\"'<>)]+")
# Prose may have one mark of code in this many words; a whole statement counts for several.
_WORDS_PER_MARK = 6
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
@lru_cache(maxsize=1024)
def _why_not(sample: str) -> str:
    if reason := why_not_prose(sample):
        return reason
    words = _words(sample)
    # Includes scripts that no entry of the table covers.
    if _script_of(words):
        return "not English"
    if len(words) == 1:
        return "a single word"
    return "" if _latin_language(words) == "en" else "not English"


def language_of(text: str) -> str:
    """Return the language of a text, such as `en` or `es`; empty when the text is too short.

    All Cyrillic text counts as `ru`, Arabic script as `ar` and Devanagari as `hi`.

    >>> language_of("Der Hund schläft nicht."), language_of("42")
    ('de', '')
    """
    words = _words(text[:SAMPLE])
    if script := _script_of(words):
        return script.strip("?")
    return _latin_language(words) if len(words) > 1 else ""


def _words(sample: str) -> list[str]:
    lowered = sample.lower()
    if any(mark in lowered for mark in _ADDRESS_MARKS):
        lowered = _ADDRESS.sub(" ", lowered)
    return (_PLAIN_WORD if lowered.isascii() else _WORD).findall(lowered)


def _latin_language(words: list[str]) -> str:
    return _language_of_words(" ".join(words[:_WORDS_READ]))


# All rules and checks look up the same few texts.
@lru_cache(maxsize=1024)
def _language_of_words(words: str) -> str:
    ranked = _identifier().rank(words)
    return "en" if dict(ranked)["en"] >= _LEAST_ENGLISH else ranked[0][0]


@cache
def _identifier() -> LanguageIdentifier:
    # Imported at the first text: loading takes half a second.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(LANGUAGES)
    return identifier


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
    if not _may_be_code(sample):
        return False
    tokens = sample.split()
    if "://" in sample:
        sample = _LINK.sub(" ", sample)
    marks = len(_CODE.findall(sample)) + _MARKS_PER_STATEMENT * len(_STATEMENT.findall(sample))
    return (marks > 1 or (marks > 0 and len(tokens) <= 3)) and marks * _WORDS_PER_MARK >= len(tokens)


def _may_be_code(sample: str) -> bool:
    return bool(
        _CODE_CHARACTERS.search(sample)
        or ("(" in sample and _CALL.search(sample))
        or (" -" in sample and _OPTION.search(sample))
        or sample.startswith(_CODE_BEGINNINGS)
        or sample.endswith(";")
        or ";\n" in sample
    )
