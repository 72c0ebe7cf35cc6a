"""Numbers of other languages than English in another format: ٢٠ and 20, 12.500 and 12500, 20 Prozent and 20 %."""

from __future__ import annotations

import re

from pcs_annotator.relations.plain.kept import is_address

_ASCII = "0123456789"
_DIGITS = {"ar": "٠١٢٣٤٥٦٧٨٩", "fa": "۰۱۲۳۴۵۶۷۸۹", "ur": "۰۱۲۳۴۵۶۷۸۹", "hi": "०१२३४५६७८९", "mr": "०१२३४५६७८९",
           "ne": "०१२३४५६७८९"}  # fmt: skip
"""The digits of languages that use their own beside ours."""
_TO_ASCII = str.maketrans("".join(_DIGITS.values()), _ASCII * len(_DIGITS))
# Chinese and Japanese write digits of both widths, next to letters.
_WIDE = str.maketrans("０１２３４５６７８９", _ASCII)
_NUMBER = re.compile(r"(?<![\w@#])\d[\d.,:/-]*(?!\w)")

_THOUSANDS = {"de": ".", "es": ".", "it": ".", "pt": ".", "nl": ".", "tr": ".", "fr": "\u202f", "pl": "\u00a0",
              "ru": "\u00a0", "uk": "\u00a0"}  # fmt: skip
"""The mark between thousands."""
_PERCENT = {"de": "Prozent", "fr": "pour cent", "es": "por ciento", "it": "per cento", "pt": "por cento",
            "nl": "procent", "pl": "procent", "sv": "procent", "da": "procent"}  # fmt: skip
"""Words for the percent sign that are never inflected."""
# Four digits may be a year, and longer numbers may be codes.
_LONG = re.compile(r"(?<![\w@#.,:/+-])([1-9]\d{4,6})(?![\w.,:/%-]\S|\w)")
_SIGN = re.compile(r"(?<=\d)[ \u00a0\u202f]?%(?![\w%/-])")


def in_other_figures(text: str, language: str) -> str:
    """Return the text with its numbers in another format, as far as that is certain in its language.

    >>> in_other_figures("Rund 20 % der 12500 Menschen", "de"), in_other_figures("في 20 مدينة", "ar")
    ('Rund 20 Prozent der 12.500 Menschen', 'في ٢٠ مدينة')
    """
    ours = _NUMBER.sub(lambda found: found[0] if is_address(found) else found[0].translate(_TO_ASCII), text)
    ours = ours.translate(_WIDE)
    if ours != text:
        return ours
    if language in _DIGITS:
        own = str.maketrans(_ASCII, _DIGITS[language])
        return _NUMBER.sub(lambda found: found[0] if _is_more(found) else found[0].translate(own), text)
    if language in _PERCENT:
        word = re.compile(rf"(?<=\d)[ \u00a0\u202f]{_PERCENT[language]}\b")
        text = word.sub(" %", text) if word.search(text) else _SIGN.sub(f" {_PERCENT[language]}", text)
    return _with_thousands(text, _THOUSANDS[language]) if language in _THOUSANDS else text


def _is_more(found: re.Match[str]) -> bool:
    """Return whether a number has marks, which other scripts write in other ways, or belongs to an address."""
    return not found[0].rstrip(".,:").isdecimal() or is_address(found)


def _with_thousands(text: str, mark: str) -> str:
    grouped = re.compile(rf"(?<![\w@#.,:/+-])([1-9]\d{{1,2}}){re.escape(mark)}(\d{{3}})(?![\w.,:/-]\S|\w)")
    if grouped.search(text):
        return grouped.sub(r"\1\2", text)
    return _LONG.sub(lambda found: f"{int(found[1]):,}".replace(",", mark), text)
