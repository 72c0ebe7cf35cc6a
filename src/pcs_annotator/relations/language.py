"""Whether a text is English prose that a rule may touch, and which language it is in."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from pcs_annotator.relations.function_words import FUNCTION_WORDS

# A long text is told by its beginning.
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

_ENGLISH = FUNCTION_WORDS["en"]
_SPOKEN_IN: dict[str, tuple[str, ...]] = {
    word: tuple(language for language, words in FUNCTION_WORDS.items() if word in words)
    for word in frozenset().union(*FUNCTION_WORDS.values())
}
# Words that English does not have, and words that only English has: enough for most texts.
_FOREIGN = frozenset(_SPOKEN_IN) - _ENGLISH
_ONLY_ENGLISH = frozenset(word for word in _ENGLISH if len(_SPOKEN_IN[word]) == 1)

# Where no small word tells, the endings do: few English words end in a vowel other than e or y.
_ENGLISH_ENDING = re.compile(
    r"(?:ing|ed|[^aoui]s|ers?|ly|tions?|ness|ments?|[^aeo]y|ey|ay|th|ck|sh|ght|ll|ff|nd|[^i]st|rt|nt|[lr][dkp]|w|gh|ch|ge"
    r"|ve|ce|ke|ow|ee|ea|oo|ty|ry|ss|ct|ue|ous|ful|[ao]ry|'s|’s|['’]t|[aeiou][pgbdmk]|ship|ian|onal|ical|list)$"
)
_FOREIGN_ENDING = re.compile(
    r".*[bcdfghjklmnpqrstvwxz](?:a|o|i|u)$|.*(?:os|as|ado|ada|ido|ien|ung|keit|schaft|lich|lichen|isch|chen|ebt"
    r"|eux|eur|elle|ette|ment[eo]|dad|dade|zione|aan|ijk|ij|ski|owa|owy|lar|ler|yor|nya|kan|ar|or[ea]s|ez|aux|ais|que)$"
)

# A look at single characters comes first: most prose has none of these.
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
# Every so many words, prose may have one mark of code; a whole statement weighs more.
_WORDS_PER_MARK = 6
_MARKS_PER_STATEMENT = 3


def why_not_english(text: str) -> str:
    """Return why rules must leave a text alone; empty when they may try.

    >>> why_not_english("Le chat dort sur le lit."), why_not_english("The cat sleeps on the bed.")
    ('not English', '')
    """
    reason = _why_not(text[:SAMPLE])
    return "no words" if reason == "empty text" and text.strip() else reason


# every rule asks about the same few texts
@lru_cache(maxsize=1024)
def _why_not(sample: str) -> str:
    tokens = sample.lower().split()
    if not tokens:
        return "empty text"
    if _is_code(sample, tokens):
        return "looks like code"
    # Splitting at spaces is quicker than finding words, and enough for most texts.
    if len(tokens) > 1 and _surely_english(tokens):
        return ""
    return _why_not_at_second_look(sample)


def _why_not_at_second_look(sample: str) -> str:
    words = _words(sample)
    if not words:
        return "no words"
    if not sample.isascii() and _script_of(sample, words):
        return "not English"
    if len(words) == 1:
        return "a single word"
    return "" if _language_by_words(words) == "en" else "not English"


def language_of(text: str) -> str:
    """Return the language of a text, such as `en` or `es`; empty when there is too little to tell it by.

    Cyrillic counts as `ru`, Arabic script as `ar` and Devanagari as `hi`, whatever is written in them.

    >>> language_of("Der Hund schläft nicht."), language_of("42")
    ('de', '')
    """
    sample = text[:SAMPLE]
    words = _words(sample)
    if not words:
        return ""
    if not sample.isascii() and (script := _script_of(sample, words)):
        return script.strip("?")
    return "en" if _surely_english(words) else _language_by_words(words)


def _words(sample: str) -> list[str]:
    lowered = sample.lower()
    if any(mark in lowered for mark in _ADDRESS_MARKS):
        lowered = _ADDRESS.sub(" ", lowered)
    return (_PLAIN_WORD if lowered.isascii() else _WORD).findall(lowered)


def _surely_english(words: list[str]) -> bool:
    english = sum(map(_ONLY_ENGLISH.__contains__, words))
    return 5 * english >= len(words) and english > sum(map(_FOREIGN.__contains__, words))


def _language_by_words(words: list[str]) -> str:
    counts: Counter[str] = Counter()
    for word in words:
        for language in _SPOKEN_IN.get(word, ()):
            counts[language] += 1
    english = counts["en"]
    best, most = max(counts.items(), key=lambda entry: (entry[1], entry[0] == "en"), default=("", 0))
    if most > english:
        # One small word more is no proof when the rest of the words look English, as in a headline with a foreign name.
        return best if most > english + 1 or (most > 1 and english == 0) or _looks_english(words) < 0 else "en"
    if 5 * english >= len(words):
        return "en"
    return "en" if _looks_english(words) + english > 0 else ""


def _looks_english(words: list[str]) -> int:
    """Return how many more words have an English shape than a foreign one."""
    score = 0
    for word in words[:60]:
        if word in _ONLY_ENGLISH:
            score += 2
        elif word in _ENGLISH:
            continue  # shared with other languages, and counted already
        elif not word.isascii() and "’" not in word:
            score -= 2
        elif word in _FOREIGN or _FOREIGN_ENDING.match(word):
            score -= 1
        elif _ENGLISH_ENDING.search(word):
            score += 1
    return score


def _script_of(sample: str, words: list[str]) -> str:
    """Return the language that goes with the script of most letters; empty when that is the Latin one."""
    beyond = _BEYOND_LATIN.findall(sample)
    if 3 * len(beyond) < sum(map(len, words)):
        return ""
    letters = "".join(beyond)
    counts = {language: len(script.findall(letters)) for language, script in _SCRIPTS}
    if 10 * counts["ja"] > len(letters):
        return "ja"
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] else "?"


def _is_code(sample: str, tokens: list[str]) -> bool:
    if not _may_be_code(sample):
        return False
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
