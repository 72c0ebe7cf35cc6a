"""Gold values that are probably not labels: words for a missing value, several labels in one cell, measurements."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from pcs_annotator.base.errors import LabelError

MISSING = frozenset(["nan", "none", "null", "nil", "na", "n/a", "n.a.", "#n/a", "#na", "<na>", "nat"])
LARGEST_CODE = 10  # whole numbers up to here are codes, such as those of a scale, even if hardly any occurs twice
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
_BETWEEN_LABELS, _MAYBE_BETWEEN_LABELS = re.compile(r"[;|]"), re.compile(r"[,/+&]")
_LIST = re.compile(r"\[.*[,'\"].*\]", re.DOTALL)


def doubt_about(value: str, labels: Collection[str] = ()) -> str:
    """Return why a value is probably not a label, and what to do; empty if it may be one.

    `known` are values that are labels: a comma or slash between two of them joins labels, but is otherwise part of one.
    """
    if value.casefold() in MISSING:
        return "may mean that there is no label: empty such cells"
    parts, maybe = ([part.strip() for part in by.split(value)] for by in (_BETWEEN_LABELS, _MAYBE_BETWEEN_LABELS))
    names = {name.casefold() for name in labels}
    joined = len(list(filter(None, parts))) > 1 or (len(maybe) > 1 and all(part.casefold() in names for part in maybe))
    if joined or _LIST.fullmatch(value):
        return "looks like several labels in one cell, and a text gets one: keep one of them"
    return ""


def refuse_doubtful(gold: Sequence[str | None], rows: Sequence[str], naming: str) -> None:
    """Raise for the first gold value that is probably not a label.

    `rows` are what messages call the rows; `naming` is how the user can name the labels, so that nothing is guessed.
    """
    counts = Counter(value for value in gold if value is not None)
    measured = _measurement(counts)
    for value in counts:
        why = doubt_about(value, counts)
        if not why and value == measured:
            why = "looks like a measurement: turn numbers into classes"
        if why:
            where = rows[gold.index(value)]
            raise LabelError(f"{where}: {value!r} {why}, or {naming}, {value!r} among them if it is one")


def _measurement(counts: Mapping[str, int]) -> str | None:
    """Return a number that is not a code: a fraction, or a large one among whole numbers that hardly repeat."""
    numbers = {value: float(value.replace(",", ".")) for value in counts if _NUMBER.fullmatch(value)}
    repeated = sum(counts[value] for value in numbers) >= 2 * len(numbers)
    codes = [value_ for value_ in numbers.values() if value_.is_integer() and (repeated or 0 <= value_ <= LARGEST_CODE)]
    return next((value for value, number in numbers.items() if number not in codes), None)
