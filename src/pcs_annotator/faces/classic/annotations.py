"""Votes on a dataset: asked for and written to `dataset_annotations.csv`, or read from it.

The file has the columns of the paper's library: the rewrites in `text_mr1`, …, the answers in `<model>_text`, ….
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pcs_annotator.base.errors import PcsWarning, TableError
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.ledger_address import without_password
from pcs_annotator.core.task import label_lookup
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED
from pcs_annotator.core.votes import Votes
from pcs_annotator.faces.classic.table import TEXT, ClassicDataset, cells_of, text_cells
from pcs_annotator.runs import classic, executors
from pcs_annotator.tables.tabular import as_arrow

if TYPE_CHECKING:
    import pyarrow as pa

GENERATE = "pass generate_annotations=True to ask the models"
_VARIANT = re.compile(r"text_mr(\d+)")


class AnnotationAxes(NamedTuple):
    """Names along the axes of the votes; the first relation is the original text, the next one is `mr1`."""

    annotators: Sequence[str]
    relations: Sequence[str]


class Annotated(NamedTuple):
    """Votes read from a file.

    Attributes:
        votes: One item for each entry of `rows`.
        rows: Positions in the dataset.
    """

    votes: Votes
    rows: list[int]


async def ask_about(panel: executors.Panel, dataset: ClassicDataset, rows: Sequence[int], path: Path) -> Votes:
    """Ask about rows of the dataset, and write the answers to a file beside it."""
    texts = [dataset.texts[row] for row in rows]
    asked = await classic.ask_texts(panel, texts)
    warn_unanswered(asked)
    for relation, cause in asked.unchanged.items():
        message = f"relation {relation!r} changed none of {len(texts)} texts ({cause}), so it has no votes"
        warnings.warn(message, PcsWarning, stacklevel=2)
    rewrites = {relation: [asked.rewrite(text, relation) for text in texts] for relation in asked.votes.relations}
    try:
        classic.write_annotations(path, with_annotations(dataset, rows, rewrites, asked.votes))
    except (OSError, TableError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        message = f"{path.name} was not written ({reason}); the answers are kept in {without_password(panel.ledger)}"
        warnings.warn(message, PcsWarning, stacklevel=2)
    return asked.votes


def read_answers(dataset: ClassicDataset, rows: Sequence[int], axes: AnnotationAxes, path: Path) -> Annotated:
    """Return earlier votes, from the file beside the dataset or from the dataset itself."""
    if path.exists():
        return read_annotations(as_arrow(path), path.name, dataset, rows, axes)
    if has_votes(dataset.table, axes.annotators):
        return read_annotations(dataset.table, dataset.name, dataset, rows, axes)
    raise TableError(f"no answers to learn from, there is no file {path}: {GENERATE} about {dataset.name}")


def vote_column(annotator: str, number: int) -> str:
    """Return the column with an annotator's answers on the original text (0) or on its rewrite `mr<number>`.

    >>> vote_column("llama3-8b-8192", 0), vote_column("llama3-8b-8192", 2)
    ('llama3-8b-8192_text', 'llama3-8b-8192_text_mr2')
    """
    return f"{annotator}_{TEXT}" + (f"_mr{number}" if number else "")


def has_votes(table: pa.Table, annotators: Sequence[str]) -> bool:
    """Return whether a table has answers of one of these annotators."""
    return any(vote_column(name, 0) in table.column_names for name in annotators)


def with_annotations(
    dataset: ClassicDataset, rows: Sequence[int], rewrites: Mapping[str, Sequence[str | None]], votes: Votes
) -> pa.Table:
    """Return the dataset's columns, then all rewrites, then the answers of each annotator.

    Args:
        dataset: The annotated dataset.
        rows: Which of its rows were annotated.
        rewrites: Relation → the rewrite of each of these rows, or None; relations as in `votes`.
        votes: One item for each of these rows.
    """
    import pyarrow as pa

    columns: dict[str, Sequence[str | None]] = {}
    for number, relation in enumerate(votes.relations[1:], 1):
        columns[f"{TEXT}_mr{number}"] = rewrites[relation]
    names = [*votes.labels, None, None]  # codes −2 and −1 index the last two
    for position, annotator in enumerate(votes.annotators):
        for number in range(len(votes.relations)):
            codes = votes.codes[:, position, number, 0].tolist()
            columns[vote_column(annotator, number)] = [names[code] for code in codes]
    table = dataset.table.drop_columns([name for name in columns if name in dataset.table.column_names])
    for name, values in columns.items():
        cells: list[str | None] = [None] * len(dataset.texts)
        for row, value in zip(rows, values, strict=True):
            cells[row] = value
        table = table.append_column(name, pa.array(cells, pa.string()))
    return table


def read_annotations(
    table: pa.Table, name: str, dataset: ClassicDataset, rows: Sequence[int], axes: AnnotationAxes
) -> Annotated:
    """Return the votes on some rows of a dataset from a table of annotations.

    Rows are matched by text. A cell with none of the labels is no vote.

    Raises:
        TableError: A column is missing, or the table has none of the rows.
    """
    _refuse_missing(table, name, axes)
    _warn_of_unused(table, name, axes)
    place = _places(text_cells(table, TEXT, name), dataset.texts)
    found = [row for row in rows if row in place]
    missing = [row for row in rows if row not in place]
    if not found:
        raise TableError(f"{name} has none of the labelled texts of {dataset.name}: {GENERATE}")
    if missing:
        warnings.warn(
            f"{len(missing)} of {len(rows)} labelled rows of {dataset.name}, first row {missing[0] + 1}, are not in "
            f"{name} and are not used for learning: {GENERATE} about them",
            PcsWarning,
            stacklevel=2,
        )
    there = [place[row] for row in found]
    codes = np.full((len(found), len(axes.annotators), len(axes.relations)), NOT_ASKED, dtype=np.int8)
    for number in range(len(axes.relations)):
        shown = _shown(table, number, there)
        for position, annotator in enumerate(axes.annotators):
            cells = cells_of(table, vote_column(annotator, number))
            codes[:, position, number] = _codes([cells[row] for row in there], shown, dataset.labels)
    ids = [str(row) for row in range(len(found))]
    votes = Votes(codes=codes, ids=ids, annotators=axes.annotators, relations=axes.relations, labels=dataset.labels)
    return Annotated(votes, found)


def _refuse_missing(table: pa.Table, name: str, axes: AnnotationAxes) -> None:
    for annotator in axes.annotators:
        for number, relation in enumerate(axes.relations):
            column = vote_column(annotator, number)
            if column not in table.column_names:
                raise TableError(
                    f"{name} has no column {column!r} with the answers of {annotator} to {relation!r}: {GENERATE}, "
                    "or write the model's name as in the column names"
                )


def _warn_of_unused(table: pa.Table, name: str, axes: AnnotationAxes) -> None:
    numbers = (int(match[1]) for column in table.column_names if (match := _VARIANT.fullmatch(column)))
    more = sorted(number for number in numbers if number >= len(axes.relations))
    if more:
        listed = ", ".join(f"mr{number}" for number in more)
        warnings.warn(
            f"{name} also has {listed}, which are not used: add the relation with register_mr to use them",
            PcsWarning,
            stacklevel=3,
        )


def _places(there: Sequence[str], wanted: Sequence[str]) -> dict[int, int]:
    """Return position in the dataset → row of the annotations: the same row if its text matches, else the first."""
    keys = [" ".join(text.split()) for text in there]
    first: dict[str, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    places: dict[int, int] = {}
    for row, text in enumerate(wanted):
        key = " ".join(text.split())
        if row < len(keys) and keys[row] == key:
            places[row] = row
        elif key in first:
            places[row] = first[key]
    return places


def _shown(table: pa.Table, number: int, rows: Sequence[int]) -> list[bool]:
    """Return for each row whether there was a text to ask about."""
    column = f"{TEXT}_mr{number}"
    if number == 0 or column not in table.column_names:
        return [True] * len(rows)
    cells = cells_of(table, column)
    return [bool(cells[row].strip()) for row in rows]


def _codes(cells: Sequence[str], shown: Sequence[bool], labels: Sequence[str]) -> Codes:
    lookup = label_lookup(labels)
    silences = (ABSTAINED if seen else NOT_ASKED for seen in shown)
    codes = [lookup.get(cell.strip().casefold(), silence) for cell, silence in zip(cells, silences, strict=True)]
    return np.array(codes, dtype=np.int8)


def warn_unanswered(asked: classic.AskedTexts) -> None:
    """Warn about questions that no model answered."""
    failed = asked.tally.failed
    if failed:
        causes = ", ".join(f"{cause}: {count}" for cause, count in failed.most_common())
        message = f"{failed.total()} questions unanswered ({causes}); repeat the call to ask only those again"
        warnings.warn(message, PcsWarning, stacklevel=3)


def warn_silent(asked: classic.AskedTexts) -> None:
    """Warn about texts without a usable answer."""
    silent = int(asked.votes.silent.sum())
    if silent:
        message = f"no model gave a usable label for {silent} of {len(asked.votes)} texts: their scores are equal"
        warnings.warn(message, PcsWarning, stacklevel=3)
