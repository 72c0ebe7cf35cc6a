"""The dataset of the paper's class: a table with the columns `label` and `text`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pcs_annotator.base.errors import LabelError, TableError
from pcs_annotator.core.doubtful_labels import refuse_doubtful
from pcs_annotator.core.task import check_labels, label_lookup
from pcs_annotator.tables.tabular import as_arrow, columns_of, text_column

if TYPE_CHECKING:
    import pyarrow as pa

TEXT, LABEL = "text", "label"
# A column with more distinct values than this is unlikely to be a label column.
MOST_LABELS_TO_GUESS = 50
_TAG = re.compile(r"<\s*label\s*>([^<>]*)<\s*/\s*label\s*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicDataset:
    """A dataset with its labels.

    Attributes:
        name: The file's name, for messages.
        table: All columns of the file.
        texts: The text of each row.
        gold: The label of each row, spelled as in `labels`, or None.
        labels: The label set.
    """

    name: str
    table: pa.Table
    texts: tuple[str, ...]
    gold: tuple[str | None, ...]
    labels: tuple[str, ...]

    def rows(self, *, labelled: bool) -> list[int]:
        """Return the positions of all rows, or of those with a label."""
        return [row for row, label in enumerate(self.gold) if label is not None or not labelled]


def beside(dataset: Path, ending: str) -> Path:
    """Return the path of a file that belongs to a dataset.

    >>> beside(Path("data/news.csv"), "annotations.csv").as_posix()
    'data/news_annotations.csv'
    """
    stem = Path(dataset.name.removesuffix(".gz")).stem
    return dataset.with_name(f"{stem}_{ending}")


def prompt_labels(prompt: str) -> tuple[str, ...]:
    """Return the labels in the `<label>` tags of a prompt, each in its first spelling.

    >>> prompt_labels("Label the news as <label>Fake</label> or <label>Real</label>, for example <label>fake</label>.")
    ('Fake', 'Real')
    """
    found: dict[str, str] = {}
    for tagged in _TAG.findall(prompt):
        label = " ".join(tagged.split())
        if re.search(r"\w", label):  # an ellipsis is a placeholder, not a label
            found.setdefault(label.casefold(), label)
    return tuple(found.values())


def labels_of_prompt(prompt: str) -> tuple[str, ...]:
    """Return the labels of a prompt, for use without a dataset.

    Raises:
        LabelError: The prompt names fewer than two.
    """
    labels = prompt_labels(prompt)
    if len(labels) < 2:
        raise LabelError(
            "without a dataset, the prompt must name at least two labels, as in <label>Fake</label> or "
            f"<label>Real</label>; it names {', '.join(labels) or 'none'}"
        )
    return check_labels(labels)


def read_classic_dataset(path: Path, prompt: str) -> ClassicDataset:
    """Read the dataset, with labels from the prompt or the column `label`.

    The labels are those tagged in the prompt; if it tags fewer than two, those of the column. Case does not matter,
    and the prompt's spelling wins.

    Raises:
        TableError: The file cannot be read, has no rows, or lacks a column.
        LabelError: There are fewer than two labels, or a row has an unknown one.
    """
    table = as_arrow(path)
    texts = text_cells(table, TEXT, path.name)
    given = [" ".join(value.split()) for value in text_cells(table, LABEL, path.name)]
    if not texts:
        raise TableError(f"{path.name} has a header but no rows: add rows with a label and a text")
    tagged = prompt_labels(prompt)
    labels = check_labels(tagged) if len(tagged) > 1 else _labels_seen(given, tagged, path.name)
    lookup, row_like = label_lookup(labels), _looks_like_row(labels)
    gold: list[str | None] = []
    for row, (value, text) in enumerate(zip(given, texts, strict=True), 1):
        if value.casefold() == LABEL and text.strip().casefold() == TEXT:
            raise TableError(f"{path.name}, row {row} repeats the header: remove it")
        if value and value.casefold() not in lookup:
            raise LabelError(
                f"{path.name}, row {row}: label {value!r:.60} is none of {', '.join(labels)}: correct the row, "
                "or name the label in the prompt as <label>…</label>"
            )
        _refuse_open_quote(text, row_like, f"{path.name}, row {row}")
        gold.append(labels[lookup[value.casefold()]] if value else None)
    return ClassicDataset(name=path.name, table=table, texts=tuple(texts), gold=tuple(gold), labels=labels)


def text_cells(table: pa.Table, wanted: str, name: str) -> list[str]:
    """Return a column as texts, found regardless of case; `name` is the table's name in messages."""
    columns = columns_of(table)
    found = {column.strip().casefold(): column for column in reversed(list(columns))}.get(wanted)
    if found is None:
        alone = len(columns) == 1 and wanted in next(iter(columns)).casefold()
        remedy = "put commas between the columns" if alone else "rename the column that holds it"
        raise TableError(f"{name} has no column {wanted!r}, only {', '.join(map(repr, columns))}: {remedy}")
    return cells_of(table, found)


def cells_of(table: pa.Table, column: str) -> list[str]:
    """Return a column as texts; missing values become empty texts."""
    return [value or "" for value in text_column(column, table.column(column)).to_pylist()]


def _labels_seen(given: Sequence[str], tagged: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the labels of a column, sorted; of several spellings, the prompt's or else the most common."""
    spellings: dict[str, dict[str, int]] = {}
    for value in filter(None, given):
        counts = spellings.setdefault(value.casefold(), {})
        counts[value] = counts.get(value, 0) + 1
    if len(spellings) < 2:
        found = ", ".join(repr(next(iter(counts))) for counts in spellings.values()) or "none"
        raise LabelError(
            f"{name}: at least two labels are needed, the column 'label' has {found}: label rows of another class, "
            "or name the labels in the prompt as <label>…</label>"
        )
    rows = [f"{name}, row {row}" for row in range(1, len(given) + 1)]
    refuse_doubtful([value or None for value in given], rows, "name all labels in the prompt as <label>…</label>")
    if len(spellings) > MOST_LABELS_TO_GUESS:
        raise LabelError(
            f"{name}: the column 'label' has {len(spellings)} different values, too many for a label set: "
            "name the labels in the prompt as <label>…</label>"
        )
    best = {key: max(counts, key=lambda value: (counts[value], value)) for key, counts in spellings.items()}
    best.update((label.casefold(), label) for label in tagged if label.casefold() in best)
    return check_labels(sorted(best.values()))


def _looks_like_row(labels: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for lines that begin or end with a label's cell; in prose, a comma is followed by a space."""
    names = "|".join(map(re.escape, labels))
    return re.compile(rf'"?(?:{names})"?[,;\t]\S.*|.*\S[,;\t]"?(?:{names})"?', re.IGNORECASE)


def _refuse_open_quote(text: str, row_like: re.Pattern[str], where: str) -> None:
    """Raise when a text contains lines that look like rows, because then a quote was left open."""
    further = [line for line in text.splitlines()[1:] if line.strip()]
    if further and sum(row_like.fullmatch(line.strip()) is not None for line in further) > len(further) / 2:
        raise TableError(f"{where}: the text continues into the following rows: close the quote that is open there")
