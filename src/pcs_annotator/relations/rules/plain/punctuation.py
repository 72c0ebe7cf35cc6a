"""Punctuation in another style: quotation marks, dashes, dots; never what carries tone or meaning."""

from __future__ import annotations

import re

from pcs_annotator.relations.rules.rule import NotApplicable, text_rule
from pcs_annotator.relations.rules.words import word_set

_TO_STRAIGHT = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'"})
_CURLY = re.compile("[“”‘’]")
# Marks that are not quotation marks: feet and inches, and marks in code.
_OTHER_USE = re.compile(r"[{}<>=`\\]|[\"'](?<=\d.)")
_INNER_APOSTROPHE = re.compile(r"'(?<=[^\W\d_]')(?=[^\W\d_])")
_OPENING = re.compile(r"(?:(?<=[\s(\[—–-])|^)\"(?=\S)", re.MULTILINE)
_CLOSING = re.compile(r"(?<=\S)\"(?=[\s.,;:!?)\]—–-]|$)", re.MULTILINE)

_DOUBLE_MARK = re.compile('[“”"]')

_SPACED_HYPHEN = re.compile(r" (?:(?<=[^\W\d_] )|(?<=[\]).,!?\"”’'] ))--? (?=[^\W\d_]|[\[(\"“‘'])")
_SPACED_DASH = re.compile(r"(?<=[^\s\d]) [–—] (?=[^\s\d])")
_TIGHT_DASH = re.compile(r"(?<=[^\W\d_])—(?=[^\W\d_])")
_THREE_DOTS = re.compile(r"(?<![.…/])\.\.\.(?![.…/\w])")
_ELLIPSIS = re.compile(r"(?<![.…])…(?![.…])")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S*$")
_SPACES = re.compile(r"(?<=[.!?,;:\"”\w]) {2,}(?=\S)")

_ABBREVIATIONS = word_set(
    "inc corp co ltd llc plc jr sr st dr mr mrs ms prof gen sen rep gov col lt sgt capt etc vs no dept est approx "
    "al ave blvd jan feb mar apr aug sept oct nov dec mon tue wed thu fri sat sun ph bros mt ft"
)
_LAST_WORD = re.compile(
    r"[\"“‘'(]*([^\W\d_]{2,}(?:[-'’][^\W\d_]+)*|[$£€]?\d[\d,]{0,11}%?)([\"”')]?)(\.?)([\"”]?)",
)
_LAST_CHARACTERS = 40


@text_rule("rule:punctuation")
def punctuation(text: str) -> str | NotApplicable:
    """Return the text with its marks in another style or, failing that, with its final full stop added or removed."""
    changed = _dots(_dashes(_quotes(text)))
    if changed == text:
        changed = _last_stop(text)
    if changed == text:
        return NotApplicable("no punctuation that may change")
    return _SPACES.sub(" ", changed) if "  " in changed else changed


def _quotes(text: str) -> str:
    if '"' not in text and "'" not in text:
        return text if text.isascii() else text.translate(_TO_STRAIGHT)
    # A text that mixes both styles would still mix them.
    if (not text.isascii() and _CURLY.search(text)) or _OTHER_USE.search(text):
        return text
    return _curly(text)


def _curly(text: str) -> str:
    """Return the text with curly marks, or unchanged if the direction of any mark is unclear."""
    changed = _INNER_APOSTROPHE.sub("’", text) if "'" in text else text
    if '"' in changed:
        changed = _CLOSING.sub("”", _OPENING.sub("“", changed))
        marks = _DOUBLE_MARK.findall(changed)
        if marks != ["“", "”"] * (len(marks) // 2):
            return text
    return text if "'" in changed else changed


def _dashes(text: str) -> str:
    if " -" in text:
        return _SPACED_HYPHEN.sub(" – ", text)
    if "—" in text:
        return _TIGHT_DASH.sub(" – ", _SPACED_DASH.sub(" – ", text))
    return _SPACED_DASH.sub(" - ", text) if "–" in text else text


def _dots(text: str) -> str:
    if "..." in text:
        return _THREE_DOTS.sub(lambda match: match[0] if _in_address(match) else "…", text)
    return _ELLIPSIS.sub(lambda match: match[0] if _in_address(match) else "...", text) if "…" in text else text


def _in_address(match: re.Match[str]) -> bool:
    return _ADDRESS.search(match.string, max(0, match.start() - 200), match.start()) is not None


def _last_stop(text: str) -> str:
    body = text.rstrip()
    last = body[-_LAST_CHARACTERS:].rsplit(None, 1)[-1] if body else ""
    match = _LAST_WORD.fullmatch(last)
    if match is None or match[1].lower() in _ABBREVIATIONS:
        return text
    after = text[len(body) :]
    if match[3]:
        cut = len(body) - len(last) + match.start(3)
        return body[:cut] + body[cut + 1 :] + after
    return text if match[2] or match[4] else f"{body}.{after}"
