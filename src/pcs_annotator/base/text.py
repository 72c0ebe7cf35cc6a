"""Small texts for people: counts with their nouns, lists of names, and one line of many."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

MOST_LISTED = 10
_PREFIX = re.compile(r"^(?:https?://[^#]*#|[a-z][a-z-]*:(?=[^/]))")  # of a model: its address, or its provider


def counted(number: int, singular: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "retry", "retries")
    ('1 row', '1,200 rows', '2 retries')
    """
    return f"{number:,} {singular if number == 1 else many or f'{singular}s'}"


def series(names: Sequence[str], joint: str = "and") -> str:
    """Return names as they stand in a sentence.

    >>> series(["a"]), series(["a", "b", "c"], "or")
    ('a', 'a, b or c')
    """
    *first, last = names
    return f"{', '.join(first)} {joint} {last}" if first else last


def listed(names: Iterable[str], count: int, most: int = MOST_LISTED) -> str:
    """Return the first of some names, and how many more there are.

    >>> listed("abc", 3), listed("abc", 3, most=2)
    ('a, b, c', 'a, b, and 1 more')
    """
    more = f", and {count - most} more" if count > most else ""
    return ", ".join(islice(names, most)) + more


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question whether a name is one of those that are known; empty if none is like it.

    >>> did_you_mean("Sprot", ["sport", "world"]), did_you_mean("x", ["sport"])
    ("did you mean 'sport'? ", '')
    """
    lower = {other.casefold(): other for other in known}
    close = get_close_matches(name.casefold(), lower, n=1, cutoff=0.7)
    return f"did you mean {lower[close[0]]!r}? " if close else ""


def capital(text: str) -> str:
    """Return a text with its first letter capitalised.

    >>> capital("no promise")
    'No promise'
    """
    return f"{text[:1].upper()}{text[1:]}"


def one_line(text: str) -> str:
    r"""Return a text in one line, with single blanks.

    >>> one_line(" two\n\nlines ")
    'two lines'
    """
    return " ".join(text.split())


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, or its kind if it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


_HEADED = re.compile(r"\.(csv|tsv|txt|xls[xm]?|ods)(\.\w+)?$", re.IGNORECASE)


def row_number(table: str, row: int) -> int:
    """Return the number that a row of a table, counted from 1, has in its file: a header is row 1, as in Excel.

    >>> row_number("news.csv.gz", 1), row_number("news.jsonl", 1)
    (2, 1)
    """
    return row + (_HEADED.search(table) is not None)


def short_names(names: Sequence[str]) -> list[str]:
    """Return the shortest tails of names of models that stay unique, without provider, address and organisation.

    >>> short_names(["openai:gpt-5", "vllm:meta/llama", "http://localhost:8000/v1#qwen", "embedded:smollm2/plain"])
    ['gpt-5', 'llama', 'qwen', 'smollm2/plain']
    """
    bare = [_PREFIX.sub("", name) for name in names]
    whole = ("embedded:", "http://", "https://")  # a style is part of the name, and an address has no name
    candidates = [
        (short if name.startswith(whole) else short.rpartition("/")[2] or name, short, name)
        for name, short in zip(names, bare, strict=True)
    ]
    taken = Counter(short for each in candidates for short in set(each))
    return [next((short for short in each if taken[short] == 1), each[-1]) for each in candidates]
