"""`pcs fit` on a table of votes: writes the model and the labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcs_annotator.core.gold import refuse_contradictions
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.tabular import as_arrow, columns_of, table_name, text_column
from pcs_annotator.core.task import check_labels
from pcs_annotator.core.vote_columns import Unknown
from pcs_annotator.core.votes import VoteTable, read_vote_table
from pcs_annotator.errors import TableError
from pcs_annotator.files import human_files, runs, tables
from pcs_annotator.files.config import LearnSettings
from pcs_annotator.pipeline.learn import Learned, learn_if_possible, model_file

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
    """

    table: Path
    model: Path
    labels_out: Path | None = None
    labels: Iterable[str] | None = None
    unknown: Unknown = "error"
    gold: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """The result of fitting a table of votes."""

    table: VoteTable
    learned: Learned
    outcomes: list[Outcome]

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label, because they have no vote."""
        return sum(outcome.label is None for outcome in self.outcomes)


def fit_table(files: FitFiles, changes: Mapping[str, Any] | None = None) -> FittedTable:
    """Learn from a table of votes, with the default settings and `changes`; write the model and the labels."""
    settings = LearnSettings(**(changes or {}))
    arrow = as_arrow(files.table)
    labels = None if files.labels is None else check_labels(files.labels)
    table = read_vote_table(arrow, labels, unknown=files.unknown, name=table_name(files.table))
    gold = table.gold if files.gold is None else _with_gold(table, files.gold)
    _refuse_contradictions(arrow, gold, table_name(files.table))
    votes = table.votes.plain()
    learned = learn_if_possible(votes, gold, settings)
    outcomes = list(learned.model.judge(votes))
    runs.write_json(files.model, model_file(learned, settings, table.votes.labels))
    if files.labels_out is not None:
        tables.write_table(files.labels_out, tables.with_outcomes(arrow, outcomes, table.votes.labels))
    return FittedTable(table=table, learned=learned, outcomes=outcomes)


def _with_gold(table: VoteTable, path: Path) -> tuple[str | None, ...]:
    given = {one.id: one for one in human_files.read_gold(path)}
    for one in given.values():
        if one.id not in table.votes.ids:
            raise TableError(f"{path.name}, row {one.row}: the table has no row with the id {one.id!r}")
    pairs = zip(table.votes.ids, table.gold, strict=True)
    return tuple(given[name].label if name in given else label for name, label in pairs)


def _refuse_contradictions(arrow: pa.Table, gold: Sequence[str | None], name: str) -> None:
    """Raise if equal texts have different gold labels; only tables with texts and one row per item are checked."""
    columns = columns_of(arrow)
    if "text" in columns and len(arrow) == len(gold):
        texts = [text or "" for text in text_column("text", columns["text"]).to_pylist()]
        refuse_contradictions(texts, gold, name)
