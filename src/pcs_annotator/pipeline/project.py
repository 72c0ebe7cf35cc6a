"""The steps over files: a table of votes in, a model and labels out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pcs_annotator.core.labels import check_labels
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.tabular import as_arrow, table_name
from pcs_annotator.core.vote_columns import Unknown
from pcs_annotator.core.votes import VoteTable, read_vote_table
from pcs_annotator.files.runs import write_json
from pcs_annotator.files.tables import with_outcomes, write_table
from pcs_annotator.pipeline.steps import Learned, LearnSettings, learn, model_file


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFiles:
    """What to read and where to write.

    Attributes:
        table: Votes and gold, wide or long.
        model: Where the learned model goes.
        labels_out: Where a label for every row goes; None to write none.
        labels: The label set; None to take those seen.
        unknown: What to do with votes outside of it.
    """

    table: Path
    model: Path
    labels_out: Path | None = None
    labels: Iterable[str] | None = None
    unknown: Unknown = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """What came of fitting a table of votes."""

    table: VoteTable
    learned: Learned
    outcomes: list[Outcome]

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label, because nobody voted on them."""
        return sum(outcome.label is None for outcome in self.outcomes)


def fit_table(files: FitFiles, settings: LearnSettings) -> FittedTable:
    """Learn from a table of votes; write the model and, if asked for, a label for every row."""
    arrow = as_arrow(files.table)
    labels = None if files.labels is None else check_labels(files.labels)
    table = read_vote_table(arrow, labels, unknown=files.unknown, name=table_name(files.table))
    learned = learn(table.votes, table.gold, settings)
    outcomes = list(learned.model.judge(table.votes))
    write_json(files.model, model_file(learned, settings, table.votes.labels))
    if files.labels_out is not None:
        write_table(files.labels_out, with_outcomes(arrow, outcomes, table.votes.labels))
    return FittedTable(table=table, learned=learned, outcomes=outcomes)
