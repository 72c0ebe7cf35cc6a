"""`pcs fit` on a table of votes: writes the model and the labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.fields import setting
from pcs_annotator.core.gold_codes import refuse_contradictions
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import check_labels
from pcs_annotator.core.votes import Unknown
from pcs_annotator.runs.columns import groups_of, labelled_table, refuse_many
from pcs_annotator.runs.gold_labels import FromPeople, read_labels, refuse_other_labels
from pcs_annotator.runs.learn import KnownRows, Learned, learn_if_possible, model_file
from pcs_annotator.runs.recorded_votes import texts_of
from pcs_annotator.runs.run_result import Facts
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.files import read_json, set_aside, write_json
from pcs_annotator.tables.find import as_arrow, table_name
from pcs_annotator.tables.source_files import AS_FOUND
from pcs_annotator.tables.vote_tables import VoteTable, read_vote_table
from pcs_annotator.tables.write import OutputPolicy, TableStyle


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFiles:
    """What to read and where to write.

    Attributes:
        labels: The labels; default: those in the votes.
        unknown: What to do with a vote that is not one of the labels.
        labels_out: Write a label for every row here (.xlsx, .csv, .parquet, …).
        model: Write the fitted model here; default: model.json.
    """

    table: Path  # votes and gold, wide or long
    labels: Sequence[str] = setting((), "--labels A,B")
    unknown: Unknown = setting("error", "--unknown")
    labels_out: Path | None = setting(None, "-o --out FILE")
    model: Path = setting(Path("model.json"), "--model-out FILE")
    people: FromPeople = field(default_factory=FromPeople)  # more gold labels, by id, or how to read the table
    replace: bool = False  # whether to keep a file in the way of `labels_out` under a dated name
    spreadsheet_safe: bool = False  # whether labels are written so that a spreadsheet runs no cell as a formula


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
            votes=self.table.votes, outcomes=self.outcomes, gold=self.table.gold, learned=self.learned, texts=self.texts
        )


def fit_table(files: FitFiles, changes: Mapping[str, Any] | None = None) -> FittedTable:
    """Learn from a table of votes, with the default settings and `changes`; write the model and the labels."""
    settings = LearnSettings(**(changes or {}))
    policy = OutputPolicy(replace=files.replace, style=TableStyle(spreadsheet_safe=files.spreadsheet_safe))
    other_model = _check_outputs(files, policy)
    arrow = as_arrow(files.table, files.people.reading if files.people.gold is None else AS_FOUND)
    labels = check_labels(files.labels) if files.labels else None
    table = read_vote_table(arrow, labels, unknown=files.unknown, name=table_name(files.table))
    texts = texts_of(arrow, table.votes)
    gold = _with_gold(table, texts, files.people, files.table.name)
    if not files.people.gold_wins:
        refuse_contradictions([texts.get(name, "") for name in table.votes.ids], gold, table_name(files.table))
    listed, groups = list(texts.values()), None
    if settings.by:
        name = table_name(files.table)
        if len(arrow) != len(table.votes) or not (listed or settings.by in arrow.column_names):
            needs = f"a row per text, with a column {settings.by!r} or the text"
            raise TableError(f"{name}: --by needs {needs}: write the wide form of votes with it")
        groups = groups_of(settings.by, arrow, listed, name)
        refuse_many(settings.by, groups or ())
    votes = replace(table.votes.plain(), texts=listed or None, groups=groups)
    # what a person chose to label may be easier or harder than the rest
    chosen = settings.gold_sample == "chosen"
    from_table = np.array([label is not None and not chosen for label in table.gold], dtype=np.bool_)
    rows_known = KnownRows(from_table, texts=list(texts.values()) or None)
    learned = learn_if_possible(votes, gold, settings, rows_known)
    judged = learned.model.judged(votes)
    if other_model:
        set_aside(files.model)
    if files.labels_out is not None:
        # a table with a row per vote has other rows than the labels
        rows = arrow if len(arrow) == len(votes) else pa.table({"id": list(votes.ids)})
        policy.write_table(files.labels_out, labelled_table(rows, learned.model, votes, judged))
    write_json(files.model, {**model_file(learned, settings, table.votes.labels), "table": files.table.name})
    outcomes = list(learned.model.judge(votes, judged))
    return FittedTable(
        table=VoteTable(votes, gold), learned=learned, outcomes=outcomes, folds=settings.folds, texts=rows_known.texts
    )


def _earlier_model(path: Path) -> Mapping[str, Any]:
    try:
        contents = read_json(path)
    except TableError:
        return {}
    return contents if "weights" in contents else {}


def _check_outputs(files: FitFiles, policy: OutputPolicy) -> bool:
    """Raise for files that must not be written; return whether the model's file has something else, to be set aside.

    A model of another table is kept without asking, because the name of the model's file is usually not chosen.
    """
    inputs = (files.table, files.people.gold)
    OutputPolicy(replace=True).check(files.model, [".json"], inputs)
    if files.labels_out is not None:
        policy.check(files.labels_out, inputs=inputs)
    earlier = _earlier_model(files.model)
    if not files.model.exists() or (earlier and earlier.get("table", files.table.name) == files.table.name):
        return False
    what = f"a model of {earlier['table']}" if earlier else "no model"
    warn_user(f"{files.model} was {what}: it is kept under a dated name")
    return True


def _with_gold(table: VoteTable, texts: Mapping[str, str], people: FromPeople, name: str) -> tuple[str | None, ...]:
    """Return the gold of a table, overridden by that in a person's file, if there is one."""
    if people.gold is None:
        return tuple(table.gold)
    ids = table.votes.ids
    rows = read_labels(people, {name: texts.get(name, "") for name in ids}, table.votes.labels, "table")
    labels = {row.id: row.label for row in rows}
    if not people.gold_wins:
        refuse_other_labels(ids, table.gold, labels, (people.gold.name, name))
    return tuple(labels.get(name, label) for name, label in zip(ids, table.gold, strict=True))
