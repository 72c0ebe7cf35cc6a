"""When two texts are the same: for copies in a table, labels that come back from people, and texts of a stream."""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from pcs_annotator.core.arrays import Integers, Mask, frozen

LONGEST_CELL = 32_000  # spreadsheets cut longer texts
_TYPED = str.maketrans(
    {**dict.fromkeys("‘’‚‛′", "'"), **dict.fromkeys("“”„‟«»″", '"'), **dict.fromkeys("–—−", "-"), "…": "..."}
)


def text_key(text: str) -> str:
    r"""Return what copies of a text share: all but line ends, blanks, case, an apostrophe in front, and typography.

    Spreadsheets change these: they correct quotes and dashes while one types.

    >>> text_key("'Don’t\r\n know ") == text_key("don't know")
    True
    """
    words = " ".join(text.lstrip("' \t\r\n").split())
    typed = words if words.isascii() else unicodedata.normalize("NFC", words).translate(_TYPED)
    return typed.casefold()


def text_hash(text: str) -> str:
    """Return a hash that copies of a text share."""
    return f"h{blake2b(text_key(text).encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def same_text(cell: str, text: str) -> bool:
    """Return whether a cell of a spreadsheet holds this text, or its beginning if the cell is as long as they get."""
    key, expected = text_key(cell), text_key(text)
    cut = len(cell.encode("utf-16-le", "replace")) // 2 >= LONGEST_CELL  # as Excel counts
    return key == expected or (cut and expected.startswith(key))


def same_texts(texts: Sequence[str]) -> Integers:
    """Return the number of every row's text: copies share it, and every empty text has its own."""
    return _same_texts(tuple(texts))


@lru_cache(maxsize=2)  # learning, findings and report ask about the same texts
def _same_texts(texts: tuple[str, ...]) -> Integers:
    numbers: dict[object, int] = {}
    keys = (text_key(text) or row for row, text in enumerate(texts))
    return frozen(np.array([numbers.setdefault(key, len(numbers)) for key in keys]), np.intp)


def with_copies(same: Integers, rows: Mask) -> Mask:
    """Return these rows and all copies of their texts."""
    included = np.zeros(int(same.max(initial=-1)) + 1, dtype=np.bool_)
    included[same[rows]] = True
    return included[same]
