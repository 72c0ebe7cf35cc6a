"""The script that a text is written in."""

import unicodedata
from collections import Counter

SCRIPTS = (
    *("LATIN", "CYRILLIC", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "ARABIC", "HEBREW", "GREEK", "DEVANAGARI", "THAI"),
    *("OTHER", "NONE"),
)
"""Scripts as Unicode names them; other scripts, and texts without letters."""
CHARACTERS_READ = 500


def script_of(text: str) -> int:
    """Return the position in `SCRIPTS` of the script that most letters at the start of a text have.

    >>> SCRIPTS[script_of("Привет, world")], SCRIPTS[script_of("42!")]
    ('CYRILLIC', 'NONE')
    """
    start = text[:CHARACTERS_READ]
    if start.isascii():
        return SCRIPTS.index("LATIN" if any(map(str.isalpha, start)) else "NONE")
    names = Counter(unicodedata.name(letter, "OTHER").split()[0] for letter in start if letter.isalpha())
    script = max(names, key=names.__getitem__, default="NONE")
    return SCRIPTS.index(script if script in SCRIPTS else "OTHER")
