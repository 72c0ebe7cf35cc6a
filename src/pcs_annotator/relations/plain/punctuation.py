"""Punctuation in another style: quotation marks, dashes, dots; never what carries tone or meaning.

What applies depends on the script and, for quotation marks, on the language: where that is unclear, they stay.
"""

import re

from pcs_annotator.relations.facts import kept_as_they_are, listed
from pcs_annotator.relations.language import known_language
from pcs_annotator.relations.rule import NotApplicable, text_rule

_TO_STRAIGHT = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "„": '"', "«": '"', "»": '"'})
_CURLY = re.compile("[“”‘’„«»]")
_PADDED_GUILLEMET = re.compile(r"(?<=«)[ \u00a0\u202f]|[ \u00a0\u202f](?=»)")
_QUOTES = {
    "en": "“”", "de": "„“", "fr": "«»", "es": "«»", "it": "«»", "pt": "“”", "nl": "“”", "pl": "„”", "ru": "«»",
    "tr": "“”", "uk": "«»", "ar": "«»",
}  # fmt: skip
"""Opening and closing quotation marks of languages in which they are certain."""
# The same marks in another width or script. Spaces follow, because ours are narrower.
_OTHER_MARKS = dict(zip("，！？；：،؟؛", ",!?;:,?;", strict=True))
_OTHER_MARK = re.compile(f"[{''.join(_OTHER_MARKS)}](?=(.?))")
_SPANISH_OPENING = re.compile(r"[¿¡](?=\w)")
# Scripts whose full stop is another one; where there is none of these letters, it is ours.
_STOPS = (("。", re.compile(r"[\u3040-\u30ff\u3400-\u9fff]\Z")), ("।", re.compile(r"[\u0900-\u0963]\Z")))
_NO_STOP = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]\Z")
# Marks that are not quotation marks: feet and inches, and marks in code.
_OTHER_USE = re.compile(r"[{}<>=`\\]|[\"'](?<=\d.)")
_INNER_APOSTROPHE = re.compile(r"'(?<=[^\W\d_]')(?=[^\W\d_])")
_OPENING = re.compile(r"(?:(?<=[\s(\[—–-])|^)\"(?=\S)", re.MULTILINE)
_CLOSING = re.compile(r"(?<=\S)\"(?=[\s.,;:!?)\]—–-]|$)", re.MULTILINE)

_DOUBLE_MARK = re.compile('[“”„«»"]')

_SPACED_HYPHEN = re.compile(r" (?:(?<=[^\W\d_] )|(?<=[\]).,!?\"”’'] ))--? (?=[^\W\d_]|[\[(\"“‘'])")
_SPACED_DASH = re.compile(r"(?<=[^\s\d]) [–—] (?=[^\s\d])")
_TIGHT_DASH = re.compile(r"(?<=[^\W\d_])—(?=[^\W\d_])")
_THREE_DOTS = re.compile(r"(?<![.…/])\.\.\.(?![.…/\w])")
_ELLIPSIS = re.compile(r"(?<![.…])…(?![.…])")
_SPACES = re.compile(r"(?<=[.!?,;:\"”\w]) {2,}(?=\S)")

_ABBREVIATIONS = listed("punctuation", "abbreviations")
_LAST_WORD = re.compile(r"[\"“‘'(]*([^\W\d_]{2,}(?:[-'’][^\W\d_]+)*|[$£€]?\d[\d,]{0,11}%?)([\"”')]?)(\.?)([\"”]?)")
_LAST_CHARACTERS = 40


@text_rule("rule:punctuation", version="2", english=False)
def punctuation(text: str) -> str | NotApplicable:
    r"""Return the text with its marks in another style or, failing that, with its final full stop added or removed.

    >>> punctuation("Er sagte: \"Wir kommen.\""), punctuation("我们明天来，你呢？")
    ('Er sagte: „Wir kommen.“', '我们明天来, 你呢?')
    """
    changed = _dots(_dashes(_quotes(text)))
    if not text.isascii():
        changed = _OTHER_MARK.sub(lambda at: _OTHER_MARKS[at[0]] + (" " if at[1].isalnum() else ""), changed)
        changed = _SPANISH_OPENING.sub("", changed)
    if changed == text:
        changed = _last_stop(text)
    if changed == text:
        return NotApplicable("no punctuation that may change")
    return _SPACES.sub(" ", changed) if "  " in changed else changed


def _quotes(text: str) -> str:
    if '"' not in text and "'" not in text:
        return text if text.isascii() else _PADDED_GUILLEMET.sub("", text).translate(_TO_STRAIGHT)
    # A text that mixes both styles would still mix them.
    if (not text.isascii() and _CURLY.search(text)) or _OTHER_USE.search(text):
        return text
    return _curly(text)


def _curly(text: str) -> str:
    """Return the text with curly marks, or unchanged if the direction of any mark is unclear."""
    changed = _INNER_APOSTROPHE.sub("’", text) if "'" in text else text
    if '"' in changed:
        style = _QUOTES.get(known_language(text))
        if style is None:
            return text
        changed = _CLOSING.sub(style[1], _OPENING.sub(style[0], changed))
        marks = _DOUBLE_MARK.findall(changed)
        if marks != list(style) * (len(marks) // 2):
            return text
    return text if "'" in changed else changed


def _dashes(text: str) -> str:
    if " -" in text:
        return _SPACED_HYPHEN.sub(" – ", text)
    if "—" in text:
        return _TIGHT_DASH.sub(" – ", _SPACED_DASH.sub(" – ", text))
    return _SPACED_DASH.sub(" - ", text) if "–" in text else text


def _dots(text: str) -> str:
    pattern, other = (_THREE_DOTS, "…") if "..." in text else (_ELLIPSIS, "...")
    kept = kept_as_they_are(text) if pattern.search(text) else b""
    return pattern.sub(lambda found: found[0] if kept[found.start()] else other, text)


def _last_stop(text: str) -> str:
    body = text.rstrip()
    if not body.isascii():
        for stop, letter in _STOPS:
            if body.endswith(stop):
                return body.removesuffix(stop) + text[len(body) :]
            if letter.search(body):
                return body + stop + text[len(body) :]
        if _NO_STOP.search(body):
            return text
    last = body[-_LAST_CHARACTERS:].rsplit(None, 1)[-1] if body else ""
    match = _LAST_WORD.fullmatch(last)
    if match is None or match[1].lower() in _ABBREVIATIONS:
        return text
    after = text[len(body) :]
    if match[3]:
        cut = len(body) - len(last) + match.start(3)
        return body[:cut] + body[cut + 1 :] + after
    return text if match[2] or match[4] else f"{body}.{after}"
