"""Gold labels, kept apart from items and votes."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

import numpy as np

from pcs_annotator.base.errors import GoldError
from pcs_annotator.base.text import MOST_LISTED, listed, row_number
from pcs_annotator.core.arrays import CODE, Codes, values_of
from pcs_annotator.core.identity import text_key
from pcs_annotator.core.task import label_code
from pcs_annotator.core.votes import Votes, check_known, check_votes

UNLABELLED = -1


def gold_codes(votes: Votes, gold: Iterable[object] | Mapping[str, object]) -> Codes:
    """Return the gold label of every item as a position in `votes.labels`, `UNLABELLED` where there is none.

    Gold is label names in the order of `votes.ids` (None, nan or an empty text where unknown), or item id → label name.
    """
    check_votes(votes)
    codes = np.full(len(votes), UNLABELLED, dtype=CODE)
    for row, value in enumerate(_aligned(votes, gold)):
        if text := _as_text(value):
            codes[row] = label_code(text, votes.labels, f"gold, row {row + 1} (id {votes.ids[row]!r})")
    return codes


def refuse_without_gold(gold: Codes, name: str, what: str) -> None:
    """Raise if no row has gold; the message calls the votes `name` and says what is measured."""
    if (gold == UNLABELLED).all():
        raise GoldError(f"{name} has no gold labels, and {what} are measured on rows that have one: label some rows")


def refuse_contradictions(texts: Sequence[str], gold: Sequence[str | None], table: str) -> None:
    """Raise when the same text has different gold labels, because nothing valid can be learned from both."""
    seen: dict[str, dict[int, str]] = {}
    for row, (text, label) in enumerate(zip(texts, gold, strict=True), row_number(table, 1)):
        if label and (key := text_key(text)):
            seen.setdefault(key, {})[row] = label
    wrong = [rows for rows in seen.values() if len({label.casefold() for label in rows.values()}) > 1]
    if not wrong:
        return
    first = " and ".join(dict.fromkeys(map(repr, wrong[0].values())))
    pairs = (" and ".join(map(str, islice(rows, MOST_LISTED))) for rows in wrong)
    fault = f"{table}, rows {next(pairs)} have the same text but the gold labels {first}"
    if len(wrong) > 1:
        fault += f", and so have rows {listed(pairs, len(wrong) - 1)} ({sum(map(len, wrong))} rows in all)"
    raise GoldError(
        f"{fault}: correct them or leave them empty; with --gold-wins the label that most of them have counts, or none "
        "if there is no such label"
    )


def cell_key(cell: str) -> str:
    r"""Return what cells share that a spreadsheet may have made of each other, such as `1`, `001` and `1.0`.

    >>> cell_key("WAHR") == cell_key("true"), cell_key("don’t know") == cell_key("Don't\xa0know ")
    (True, True)
    """
    key = text_key(cell)
    number = _WHOLE.fullmatch(key)
    return f"{number[1]}{number[2]}" if number else _TRUTH.get(key, key)


def as_known(names: Iterable[str]) -> Callable[[str], str]:
    """Return what turns a cell of a spreadsheet into the one of these names that it stands for, if there is one."""
    exact = set(names)
    keys: dict[str, set[str]] = {}
    for name in exact:
        keys.setdefault(cell_key(name), set()).add(name)

    def as_listed(cell: str) -> str:
        alike = keys.get(cell_key(cell), ())
        return cell if cell in exact or len(alike) != 1 else next(iter(alike))

    return as_listed


_WHOLE = re.compile(r"(-?)0*(\d+?)(?:[.,]0{1,2})?")  # a whole number; three digits after a point may be thousands
_TRUE, _FALSE = "wahr vrai verdadero verdadeiro vero waar prawda", "falsch faux falso onwaar fałsz"
_TRUTH = {**dict.fromkeys(_TRUE.split(), "true"), **dict.fromkeys(_FALSE.split(), "false")}
"""What spreadsheets in other languages write."""


def _aligned(votes: Votes, gold: Iterable[object] | Mapping[str, object]) -> list[object]:
    if isinstance(gold, Mapping):
        by_id = {_as_text(name): value for name, value in gold.items()}  # data frames may hold ids as numbers
        check_known(by_id, votes.ids, "item")
        return [by_id.get(name) for name in votes.ids]
    if isinstance(gold, str):
        raise GoldError(f"gold must be a list with one label per item, not the single text {gold!r}")
    values = values_of(gold, "gold")
    if len(values) != len(votes):
        raise GoldError(f"{len(values)} gold labels for {len(votes)} items: give one per item, None where unknown")
    return values


def _as_text(value: object) -> str:
    if isinstance(value, np.floating):
        value = value.item()  # np.float32 is not a Python float
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # data frames store whole numbers with gaps as floats
    text = str(value)
    return "" if text in ("<NA>", "NaT") else text
