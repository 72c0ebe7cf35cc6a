"""Gold labels as codes: of one column, of several people, and one row for every text that rows repeat."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import GoldError
from pcs_annotator.base.text import MOST_LISTED, listed, row_number
from pcs_annotator.core.arrays import CODE, Codes, Integers, Mask, values_of
from pcs_annotator.core.identity import same_texts, text_hash, text_key
from pcs_annotator.core.task import label_code
from pcs_annotator.core.votes import Votes, check_known, check_votes

UNLABELLED = -1


class OpenLabels(list[str]):
    """Labels that nobody has listed, such as the passages of a text: each gets the next code when it first occurs."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[str, int] = {}

    def code(self, label: str) -> int:
        """Return the position of a label."""
        if label not in self._places:
            self._places[label] = len(self)
            self.append(label)
        return self._places[label]


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


PREFIX = "gold_"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coders:
    """What people said about the same rows."""

    names: tuple[str, ...]  # the people
    codes: Codes  # `[coder, row]`, positions in the label set; `UNLABELLED` where somebody gave a row no label

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or len(self.codes) != len(self.names):
            raise ValueError(f"{len(self.names)} coders with codes of shape {self.codes.shape}")

    @classmethod
    def of(
        cls, columns: Mapping[str, Sequence[str | None]], labels: Sequence[str], ids: Sequence[str], table: str
    ) -> "Coders | None":
        """Return what people said as codes, given name → the label of every row or None; None if nobody is named.

        `ids` and `table` are what messages call rows and table. A label that is not in the label set is a `LabelError`.
        """
        if not columns:
            return None
        codes = np.full((len(columns), len(ids)), UNLABELLED, dtype=CODE)
        for line, (name, column) in enumerate(columns.items()):
            for row, label in enumerate(column):
                if label:
                    codes[line, row] = label_code(label, labels, f"{table}, id {ids[row]!r}, coder {name}")
        return cls(names=tuple(columns), codes=codes)

    @property
    def majority(self) -> Codes:
        """The label that more of them gave than any other; `UNLABELLED` for a tie, and where nobody gave one."""
        return most_common(self.codes).astype(CODE)


def most_common(codes: Integers | Codes) -> Integers:
    """Return the most common code of every column, ignoring negative ones; `UNLABELLED` for a tie, and without any."""
    labels = np.full(codes.shape[1], UNLABELLED, dtype=np.intp)
    best = np.zeros(codes.shape[1], dtype=np.intp)
    for code in np.unique(codes[codes >= 0]):
        times = (codes == code).sum(axis=0)
        labels[times == best] = UNLABELLED
        labels[times > best] = code
        best = np.maximum(best, times)
    return labels


def coder_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that hold labels of one person each: those named `gold_<name>`."""
    return tuple(name for name in names if name.strip().casefold().startswith(PREFIX) and coder_of(name))


def coder_of(column: str) -> str:
    """Return whose labels a column holds: its name, without `gold_`.

    >>> coder_of("gold_anna"), coder_of("Ben")
    ('anna', 'Ben')
    """
    name = column.strip()
    return name[len(PREFIX) :].strip() if name.casefold().startswith(PREFIX) else name


def majority_labels(columns: Sequence[Sequence[str | None]]) -> list[str | None]:
    """Return for every row the label that more people gave than any other; None for a tie, and without labels.

    Without people there are no rows.
    """
    if not columns:
        return []
    spelled: dict[str, str] = {}
    for column in columns:
        for label in column:
            if label:
                spelled.setdefault(label.casefold(), label)
    codes = {folded: code for code, folded in enumerate(spelled)}
    majority = most_common(
        np.array([[codes[cell.casefold()] if cell else UNLABELLED for cell in row] for row in columns])
    )
    names = list(spelled.values())
    return [names[code] if code >= 0 else None for code in majority.tolist()]


# Two texts may get the same graded answer to one question (10 of 393 did), but hardly to several.
LEAST_GRADED_CELLS = 2


class Once(NamedTuple):
    """One row for every text."""

    distinct: Mask  # which rows count: of every text one row, with gold if the text has gold
    repeated: int  # number of gold rows that do not count, because another gold row has their text
    contradictory: Integers  # rows whose text has as many gold labels for one as for another; they are not gold
    copies: Integers  # for every row how many rows have its text
    drawn: Integers  # for every row how many rows with its text people judged that were drawn at random


def same_grades(votes: Votes) -> Integers:
    """Return a number for every row, the same for rows with the very same graded votes in all cells.

    So copies are found where texts are unknown. Hard votes are too coarse to tell.
    """
    rows = np.arange(len(votes))
    if votes.grades is None or not len(votes):
        return rows
    graded = ~np.isnan(votes.grades).all(axis=-1)
    enough = (graded == (votes.codes >= 0)).all(axis=(1, 2, 3)) & (graded.sum(axis=(1, 2, 3)) >= LEAST_GRADED_CELLS)
    cells = np.nan_to_num(votes.grades, nan=-1).reshape(len(votes), -1)
    first: dict[object, int] = {}
    return np.array(
        [first.setdefault(cells[row].tobytes() if enough[row] else row, row) for row in rows.tolist()], dtype=np.intp
    )


def once_per_text(
    same: Integers, ids: Sequence[str], gold: Codes, random_sample: Mask | None = None, undecided: Mask | None = None
) -> Once:
    """Return one row for every text: the first one by id, so that the order of rows does not matter.

    `same` is a number for every row, the same for copies of a text. Rows with gold are preferred, and among these the
    rows that were drawn at random, by default all, which can support a promise. Copies with different gold labels count
    with the label that most of them have; if there is none, without gold. `undecided` rows were drawn at random too,
    and people gave them no label.
    """
    at_random = np.ones(len(ids), dtype=np.bool_) if random_sample is None else random_sample
    agreed = agreed_gold(same, gold)
    contradictory = (gold != UNLABELLED) & (agreed == UNLABELLED)
    rank = np.where(gold == UNLABELLED, 2, np.where(gold != agreed, 3, np.where(at_random, 0, 1)))
    order = sorted(range(len(ids)), key=lambda row: (rank[row], ids[row]))
    _, first = np.unique(same[order], return_index=True)
    distinct = np.zeros(len(ids), dtype=np.bool_)
    distinct[np.array(order, dtype=np.intp)[first]] = True
    distinct &= rank < 3
    repeated = (gold != UNLABELLED) & ~distinct & ~contradictory
    judged = (gold != UNLABELLED) & at_random
    if undecided is not None:
        judged = judged | undecided
    copies, drawn = (np.bincount(same, counted).astype(np.intp)[same] for counted in (np.ones(len(ids)), judged))
    return Once(distinct, int(repeated.sum()), np.flatnonzero(contradictory), copies, drawn)


def agreed_gold(same: Integers, gold: Codes) -> Codes:
    """Return for every row the gold label that most copies of its text have; `UNLABELLED` if there is none."""
    counts_of: dict[int, Counter[int]] = {}
    for row in np.flatnonzero(gold != UNLABELLED).tolist():
        counts_of.setdefault(int(same[row]), Counter())[int(gold[row])] += 1
    agreed = np.full(len(gold), UNLABELLED, dtype=CODE)
    for row in np.flatnonzero(np.isin(same, [*counts_of])).tolist():
        (label, most), *others = counts_of[int(same[row])].most_common(2)
        if not others or others[0][1] < most:
            agreed[row] = label
    return agreed


def settled(same: Integers, gold: Codes) -> Mask:
    """Return which rows need no person any more: those with gold, and copies of texts on which gold agrees."""
    return (gold != UNLABELLED) | (agreed_gold(same, gold) != UNLABELLED)


def labels_of_texts(texts: Sequence[str], gold: Codes, labels: Sequence[str]) -> dict[str, str] | None:
    """Return hash of a text → its gold label, without texts on which gold contradicts itself; None if none is left."""
    pairs = zip(texts, agreed_gold(same_texts(texts), gold).tolist(), strict=True)
    return {text_hash(text): labels[code] for text, code in pairs if code != UNLABELLED and text_key(text)} or None
