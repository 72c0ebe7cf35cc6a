"""Labels that several people gave independently of each other, in a column each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pcs_annotator.core.arrays import CODE, Codes, Integers
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.task import label_code

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
