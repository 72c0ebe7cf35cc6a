"""The files of the paper's class: a dataset with the columns `label` and `text`, and the answers about its rows.

The answers are in `dataset_annotations.csv`, in the columns of the paper's library: the rewrites in `text_mr1`, …, the
answers in `<model>_text`, `<model>_text_mr1`, ….
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pcs_annotator.base.errors import LabelError, TableError, warn_user
from pcs_annotator.core.arrays import CODE
from pcs_annotator.core.doubtful_labels import refuse_doubtful
from pcs_annotator.core.task import check_labels, label_lookup
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED
from pcs_annotator.core.votes import Votes
from pcs_annotator.runs.resolve_config import MOST_LABELS_TO_GUESS, usual_spellings
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.tables import write_table
from pcs_annotator.tables.tabular import as_arrow, columns_of, text_column

TEXT, LABEL = "text", "label"
GENERATE = "pass generate_annotations=True to ask the models"
_TAG = re.compile(r"<\s*label\s*>([^<>]*)<\s*/\s*label\s*>", re.IGNORECASE)
_VARIANT = re.compile(r"text_mr(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicDataset:
    """A dataset with its labels."""

    name: str  # the file's name, for messages
    table: pa.Table  # all columns of the file
    texts: tuple[str, ...]  # the text of each row
    gold: tuple[str | None, ...]  # the label of each row, spelled as in `labels`, or None
    labels: tuple[str, ...]  # the label set

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
    """Return the labels of a prompt, for use without a dataset; fewer than two are a `LabelError`."""
    labels = prompt_labels(prompt)
    if len(labels) < 2:
        raise LabelError(
            "without a dataset, the prompt must name at least two labels, as in <label>Fake</label> or "
            f"<label>Real</label>; it names {', '.join(labels) or 'none'}"
        )
    return check_labels(labels)


def read_classic_dataset(path: Path, prompt: str) -> ClassicDataset:
    """Read the dataset, with the labels tagged in the prompt or, if it tags fewer than two, those of its column.

    Case does not matter, and the prompt's spelling wins.
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
    return _cells(table, found)


def _cells(table: pa.Table, column: str) -> list[str]:
    """Return a column as texts; missing values become empty texts."""
    return [value or "" for value in text_column(column, table.column(column)).to_pylist()]


def _labels_seen(given: Sequence[str], tagged: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the labels of a column, sorted; of several spellings, the prompt's or else the most common."""
    best = usual_spellings(given)
    remedy = "name the labels in the prompt as <label>…</label>"
    if len(best) < 2:
        found = ", ".join(map(repr, best.values())) or "none"
        raise LabelError(
            f"{name}: at least two labels are needed, the column 'label' has {found}: label rows of another class, "
            f"or {remedy}"
        )
    rows = [f"{name}, row {row}" for row in range(1, len(given) + 1)]
    refuse_doubtful([value or None for value in given], rows, "name all labels in the prompt as <label>…</label>")
    if len(best) > MOST_LABELS_TO_GUESS:
        raise LabelError(
            f"{name}: the column 'label' has {len(best)} different values, too many for a label set: {remedy}"
        )
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


def vote_column(annotator: str, number: int) -> str:
    """Return the column with an annotator's answers on the original text (0) or on its rewrite `mr<number>`.

    >>> vote_column("llama3-8b-8192", 0), vote_column("llama3-8b-8192", 2)
    ('llama3-8b-8192_text', 'llama3-8b-8192_text_mr2')
    """
    return f"{annotator}_{TEXT}" + (f"_mr{number}" if number else "")


def with_annotations(
    dataset: ClassicDataset, rows: Sequence[int], rewrites: Mapping[str, Sequence[str | None]], votes: Votes
) -> pa.Table:
    """Return the dataset's columns, then all rewrites, then the answers of each annotator.

    `rows` says which rows were annotated; `rewrites` (by relation, as in `votes`) and `votes` have one item for each.
    """
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


def write_annotations(path: Path, table: pa.Table) -> None:
    """Write a table of annotations; an existing file with other contents is kept as `*.before`."""
    before = path.read_bytes() if path.is_file() else None
    write_table(path, table)
    if before is not None and path.read_bytes() != before:
        path.with_name(f"{path.stem}.before{path.suffix}").write_bytes(before)


def read_answers(
    path: Path, dataset: ClassicDataset, rows: Sequence[int], annotators: Sequence[str], relations: Sequence[str]
) -> tuple[Votes, list[int]]:
    """Return earlier votes, from the file beside the dataset or else the dataset itself, and the rows they are about.

    The first relation is the original text, the next one is `mr1`. Rows are matched by text. A cell with none of the
    labels is not a vote.
    """
    table, name = dataset.table, dataset.name
    if path.exists():
        table, name = as_arrow(path), path.name
    elif not any(vote_column(one, 0) in table.column_names for one in annotators):
        raise TableError(f"no answers to learn from, there is no file {path}: {GENERATE} about {dataset.name}")
    _check_columns(table, name, annotators, relations)
    place = _places(text_cells(table, TEXT, name), dataset.texts)
    found = [row for row in rows if row in place]
    missing = [row for row in rows if row not in place]
    if not found:
        raise TableError(f"{name} has none of the labelled texts of {dataset.name}: {GENERATE}")
    if missing:
        warn_user(
            f"{len(missing)} of {len(rows)} labelled rows of {dataset.name}, first row {missing[0] + 1}, are not in "
            f"{name} and are not used for learning: {GENERATE} about them"
        )
    votes = _votes(table.take([place[row] for row in found]), annotators, relations, dataset.labels)
    return votes, found


def _votes(table: pa.Table, annotators: Sequence[str], relations: Sequence[str], labels: Sequence[str]) -> Votes:
    lookup = label_lookup(labels)
    codes = np.full((len(table), len(annotators), len(relations)), NOT_ASKED, dtype=CODE)
    for number in range(len(relations)):
        rewrites = f"{TEXT}_mr{number}"
        silences = [ABSTAINED] * len(table)
        if rewrites in table.column_names:  # without a rewrite, nobody was asked
            silences = [ABSTAINED if text.strip() else NOT_ASKED for text in _cells(table, rewrites)]
        for position, annotator in enumerate(annotators):
            cells = zip(_cells(table, vote_column(annotator, number)), silences, strict=True)
            codes[:, position, number] = [lookup.get(cell.strip().casefold(), silence) for cell, silence in cells]
    ids = [str(row) for row in range(len(table))]
    return Votes(codes=codes, ids=ids, annotators=annotators, relations=relations, labels=labels)


def _check_columns(table: pa.Table, name: str, annotators: Sequence[str], relations: Sequence[str]) -> None:
    """Raise for answers that are missing; warn about rewrites that are not used."""
    for annotator in annotators:
        for number, relation in enumerate(relations):
            column = vote_column(annotator, number)
            if column not in table.column_names:
                raise TableError(
                    f"{name} has no column {column!r} with the answers of {annotator} to {relation!r}: {GENERATE}, "
                    "or write the model's name as in the column names"
                )
    numbers = (int(match[1]) for column in table.column_names if (match := _VARIANT.fullmatch(column)))
    if more := sorted(number for number in numbers if number >= len(relations)):
        listed = ", ".join(f"mr{number}" for number in more)
        warn_user(f"{name} also has {listed}, which are not used: add the relation with register_mr to use them")


def _places(there: Sequence[str], wanted: Sequence[str]) -> dict[int, int]:
    """Return position in the dataset → row of the annotations: the same row if its text matches, else the first."""
    keys, sought = ([" ".join(text.split()) for text in texts] for texts in (there, wanted))
    first = {key: row for row, key in reversed([*enumerate(keys)])}
    same = {row for row, (key, other) in enumerate(zip(keys, sought, strict=False)) if key == other}
    return {row: row if row in same else first[key] for row, key in enumerate(sought) if key in first}
