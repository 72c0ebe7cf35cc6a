"""Whether a number counts things, told by the words around it."""

from __future__ import annotations

import re

from pcs_annotator.asking.relations.word_set import word_set

_NUMBER = (
    r"(?:\d[\d,.]*%?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy"
    r"|eighty|ninety|hundred|thousand|million|dozen|half)"
)
# Part of a pair, such as "two or three" or "one in five", which is changed as a whole or not at all.
_PAIRED_BEFORE = re.compile(rf"\b{_NUMBER}(?:-\w+)? (?:or|to|and|by|in|out of|of|versus|vs) $", re.IGNORECASE)
_PAIRED_AFTER = re.compile(rf" ?[\w-]* (?:to|or|and|of) {_NUMBER}\b", re.IGNORECASE)
_LINKS = word_set("or to and by in of versus vs")
_WORDS_AFTER = re.compile(r" ([a-z]+)(?![\w'’])(?:[ -]([a-z]+)(?![\w'’-]))?")
_CAPITALISED_AFTER = re.compile(r" ([A-Z][a-z]+)(?![\w'’-])")

_SENTENCE_OPENERS = word_set(
    "In Only After About Over Nearly Within For With Some The These Those All Every Just Almost"
)
# Behind these a number is a name, not a count: page five, phase two, no two people.
_NAMES_BEFORE = word_set(
    "page pages chapter number numbers no nos level phase grade room gate channel route section act part season "
    "episode week day game round stage step class type line verse psalm article amendment unit block apartment "
    "flat suite floor tier year month top version volume issue rule title highway interstate exit track platform "
    "pier box lot figure table formula group category zone district ward region point decimal age aged cloud "
    "catch area plan option door lane whole form series model serial code minus plus times than_one at"
)
_PLURALS = word_set("people men women children police officers feet teeth mice geese oxen fish deer sheep cattle")
_SCALES = word_set("million billion trillion percent")
_NOT_NOUNS = word_set(
    "is was has does says goes as this its his us plus always perhaps besides yes across towards afterwards "
    "sometimes thus less unless makes takes gets comes seems looks wants needs becomes remains means gives keeps "
    "shows begins starts ends tells turns leads brings gas bus glass class boss loss mass pass press access "
    "address business process success progress congress thirds halves quarters fourths fifths sixths sevenths "
    "eighths ninths tenths dozens cents wrongs birds peas winks yards musketeers cheers shakes wonders dwarfs "
    "seas sins commandments amigos stooges hrs mins secs lbs kgs yrs ins kms mms stars ways"
)
_NOT_ADJECTIVES = word_set(
    "of or and to by in on at for from with as than is are was were be been has have had do does did will would "
    "can could may might must should that which who whom whose when where while if because but not also then "
    "there here it he she they we you i the a an each per out up down over under after before since until hundred "
    "thousand dozen half o oclock am pm a.m p.m said say says told asked time times get got went came made took "
    "left won lost killed"
)


def is_counted(match: re.Match[str]) -> bool:
    """Return whether a number in words, or one of many digits, counts what follows it."""
    text, start, end = match.string, match.start(), match.end()
    after = _WORDS_AFTER.match(text, end)
    if after is None or not _is_plural_phrase(after[1], after[2]):
        return False
    head = text[max(0, start - 30) : start]
    before = word_before(head).lower()
    if not before and head.strip() and head[-1] not in '"“‘(\n—–':
        return False
    if before in _NAMES_BEFORE or (before in _LINKS and _PAIRED_BEFORE.search(head)):
        return False
    return _PAIRED_AFTER.match(text, end) is None


def counts_things(match: re.Match[str]) -> bool:
    """Return whether a small number in figures counts what follows it, so that it can be written as a word."""
    text, start, end = match.string, match.start(), match.end()
    head = text[max(0, start - 30) : start]
    if not head.strip():
        heading = _CAPITALISED_AFTER.match(text, end)
        if heading is not None and text[end:].istitle():
            return _is_plural(heading[1].lower())
        return is_counted(match)
    # A capitalised word before it makes it part of a name or a date: iPhone 5, May 5, Article 5.
    before = word_before(head)
    return before.isalpha() and (before.islower() or before in _SENTENCE_OPENERS) and is_counted(match)


def word_before(head: str) -> str:
    """Return the word that one space parts from what follows, with the marks around it; empty when there is none."""
    return head.rsplit(None, 1)[-1] if head.endswith(" ") and head.strip() else ""


def _is_plural_phrase(word: str, next_word: str | None) -> bool:
    if word in _SCALES or _is_plural(word):
        return True
    return word not in _NOT_ADJECTIVES and word not in _NOT_NOUNS and next_word is not None and _is_plural(next_word)


def _is_plural(word: str) -> bool:
    if word in _PLURALS:
        return True
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) and word not in _NOT_NOUNS
