"""`pcs fit` on a table of votes: writes the model and the labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pcs_annotator.base.errors import PcsWarning, TableError
from pcs_annotator.core.gold import refuse_contradictions
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import check_labels
from pcs_annotator.core.votes import Votes, VoteTable, read_vote_table
from pcs_annotator.runs import human_review
from pcs_annotator.runs.facts import Facts
from pcs_annotator.runs.files import runs
from pcs_annotator.runs.files.config import LearnSettings
from pcs_annotator.runs.learn import KnownRows, Learned, learn_if_possible, model_file
from pcs_annotator.tables import tables
from pcs_annotator.tables.result_columns import with_outcomes
from pcs_annotator.tables.table_files import AS_FOUND, Reading
from pcs_annotator.tables.table_writer import WRITTEN, TableStyle
from pcs_annotator.tables.tabular import as_arrow, columns_of, table_name, text_column
from pcs_annotator.tables.vote_columns import Unknown
from pcs_annotator.tables.workbook import excel_dialect

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFiles:
    """What to read and where to write.

    Attributes:
        table: Votes and gold, wide or long.
        model: Output file for the model.
        labels_out: Output file with a label for every row; None to write none.
        labels: The label set; None for the labels in the table.
        unknown: What to do with votes for other labels.
        gold: A file with more gold labels, by id.
        gold_wins: Whether to accept gold labels that contradict each other; those of `gold` override the table's.
        reading: How to read `gold`, or the table if there is no such file.
        replace: Whether to keep a file in the way of `labels_out` under a dated name.
        spreadsheet_safe: Whether labels are written so that a spreadsheet runs no cell as a formula.
        excel: Whether a CSV file of labels is written as Excel expects it on this computer.
    """

    table: Path
    model: Path
    labels_out: Path | None = None
    labels: Iterable[str] | None = None
    unknown: Unknown = "error"
    gold: Path | None = None
    gold_wins: bool = False
    reading: Reading = AS_FOUND
    replace: bool = False
    spreadsheet_safe: bool = False
    excel: bool = False

    @property
    def style(self) -> TableStyle:
        """How labels are written."""
        if self.excel:
            return TableStyle(dialect=excel_dialect(), spreadsheet_safe=True)
        return TableStyle(spreadsheet_safe=self.spreadsheet_safe)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """The result of fitting a table of votes; `table` has the votes and the gold that were learned from."""

    table: VoteTable
    learned: Learned
    outcomes: list[Outcome]
    folds: int
    texts: Sequence[str] | None = None

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label, because they have no vote."""
        return sum(outcome.label is None for outcome in self.outcomes)

    @property
    def facts(self) -> Facts:
        """What findings about the votes are made from."""
        return Facts(
            votes=self.table.votes,
            outcomes=self.outcomes,
            gold=self.table.gold,
            learned=self.learned,
            texts=self.texts,
        )


def fit_table(files: FitFiles, changes: Mapping[str, Any] | None = None) -> FittedTable:
    """Learn from a table of votes, with the default settings and `changes`; write the model and the labels."""
    settings = LearnSettings(**(changes or {}))
    earlier = _earlier_model(files.model)
    in_the_way = _check_outputs(files, earlier)
    arrow = as_arrow(files.table, files.reading if files.gold is None else AS_FOUND)
    labels = None if files.labels is None else check_labels(files.labels)
    table = read_vote_table(arrow, labels, unknown=files.unknown, name=table_name(files.table))
    texts = texts_of(arrow, table.votes)
    gold = table.gold if files.gold is None else _with_gold(table, texts, files)
    if not files.gold_wins:
        refuse_contradictions([texts.get(name, "") for name in table.votes.ids], gold, table_name(files.table))
    votes = table.votes.plain()
    # what a person chose to label may be easier or harder than the rest
    from_table = np.array([label is not None for label in table.gold], dtype=np.bool_)
    known = KnownRows(from_table, texts=list(texts.values()) or None)
    learned = learn_if_possible(votes, gold, settings, known)
    outcomes = list(learned.model.judge(votes))
    for path in in_the_way:
        runs.set_aside(path)
    written = dict(earlier.get("written", {}))
    if files.labels_out is not None:
        labelled = with_outcomes(arrow, outcomes, table.votes.labels)
        tables.write_table(files.labels_out, labelled, files.style)
        written.update(runs.signature(files.labels_out, files.model.parent))
    made = {"table": files.table.name, "written": written}
    runs.write_json(files.model, {**model_file(learned, settings, table.votes.labels), **made})
    return FittedTable(
        table=VoteTable(votes, gold), learned=learned, outcomes=outcomes, folds=settings.folds, texts=known.texts
    )


def _earlier_model(path: Path) -> Mapping[str, Any]:
    """Return the contents of a model file; empty if there is none, or if it is something else."""
    try:
        found = runs.read_json(path)
    except TableError:
        return {}
    return found if "weights" in found else {}


def _check_outputs(files: FitFiles, earlier: Mapping[str, Any]) -> list[Path]:
    """Return the files to set aside, because an earlier fit of this table did not write them.

    A model of another table is kept without asking, because the name of the model's file is usually not chosen.
    """
    in_the_way = []
    runs.check_ending(files.model, [".json"])
    runs.refuse_inputs(files.model, files.table, files.gold)
    if files.model.exists() and earlier.get("table", files.table.name if earlier else None) != files.table.name:
        in_the_way.append(files.model)
        what = f"a model of {earlier['table']}" if earlier else "no model"
        warnings.warn(f"{files.model} was {what}: it is kept under a dated name", PcsWarning, stacklevel=3)
    out = files.labels_out
    if out is None:
        return in_the_way
    runs.check_ending(out, WRITTEN)
    runs.refuse_inputs(out, files.table, files.gold)
    if not runs.signature(out, files.model.parent).items() <= earlier.get("written", {}).items():
        in_the_way.append(out)
        if not files.replace:
            raise TableError(
                f"{out} exists, and was not written by a fit of {files.table.name}, or has been changed since: name "
                "another file with -o, or add --replace, which keeps it under a dated name"
            )
    return in_the_way


def _with_gold(table: VoteTable, texts: Mapping[str, str], files: FitFiles) -> tuple[str | None, ...]:
    assert files.gold is not None
    ids = table.votes.ids
    people = human_review.FromPeople(gold=files.gold, gold_wins=files.gold_wins, reading=files.reading)
    known = {name: texts.get(name, "") for name in ids}
    rows = human_review.read_labels(people, known, table.votes.labels, "table")
    given = {one.id: one.label for one in rows}
    if not files.gold_wins:
        human_review.refuse_other_labels(ids, table.gold, given, (files.gold.name, files.table.name))
    return tuple(given.get(name, label) for name, label in zip(ids, table.gold, strict=True))


def texts_of(arrow: pa.Table, votes: Votes) -> dict[str, str]:
    """Return item id → text, if a table of votes has texts and one row per item."""
    columns = columns_of(arrow)
    if "text" not in columns or len(arrow) != len(votes):
        return {}
    texts = (text or "" for text in text_column("text", columns["text"]).to_pylist())
    return dict(zip(votes.ids, texts, strict=True))
