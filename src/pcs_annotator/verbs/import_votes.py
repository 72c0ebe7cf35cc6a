"""A table of votes becomes a run: votes, texts and gold in a run folder, which every command that takes a run takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pcs_annotator.asking.ledger.lock import Say, lock_ledger
from pcs_annotator.base.errors import ConfigError, TableError, warn_user
from pcs_annotator.base.fields import setting
from pcs_annotator.core.votes import Unknown
from pcs_annotator.runs.gold_labels import FromPeople, check_gold, refuse_other_gold
from pcs_annotator.runs.learn import learning_of
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import IMPORTED, RunFolder, parts_in, write_start
from pcs_annotator.runs.recorded_votes import texts_of
from pcs_annotator.runs.resolve_config import columns_of, task_of
from pcs_annotator.runs.run_table import lost_rows
from pcs_annotator.runs.settings import AskSettings, Config, DataSettings, LearnSettings, TaskSettings
from pcs_annotator.runs.toml import config_to_dict
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.chunks import Dataset, TableStream
from pcs_annotator.tables.find import as_arrow, source_name
from pcs_annotator.tables.source_files import AS_FOUND
from pcs_annotator.tables.vote_files import write_votes
from pcs_annotator.tables.vote_tables import VoteTable, read_vote_table
from pcs_annotator.tables.write import write_table
from pcs_annotator.version import __version__

NAMES = DataSettings(text_column="text", id_column="id", gold_column="gold")  # of columns of an imported run


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteSource:
    """A table of votes, and the run that it becomes.

    Attributes:
        labels: The labels; default: those in the votes.
        unknown: What to do with a vote that is not one of the labels.
        folder: Run folder for TABLE; default: runs/ plus its name.
    """

    table: Path  # votes and gold, wide or long
    labels: Sequence[str] = setting((), "--labels A,B")
    unknown: Unknown = setting("error", "--unknown")
    folder: Path = setting(Path(), "-o --out PATH")
    people: FromPeople = field(default_factory=FromPeople)  # how to read the table, unless that is about a file of gold
    replace: bool = False  # whether to set other results in the folder aside


def import_votes(source: VoteSource, changes: Mapping[str, Any], say: Say = warn_user) -> None:
    """Make or renew the run of a table of votes, from which `pcs fit` learns with `changes`, checked first."""
    learn = LearnSettings(**changes)
    learning_of(learn)
    folder, name = RunFolder(source.folder), source_name(source.table)
    folder.refuse_file()
    if parts_in(folder.path) not in ([], [""]):
        raise ConfigError(f"{folder.path} has several variables: name another folder with -o")
    arrow = as_arrow(source.table, source.people.reading if source.people.gold is None else AS_FOUND)
    table = read_vote_table(arrow, source.labels or None, unknown=source.unknown, name=name)
    rows = _rows(arrow, table, name)
    config = Config(
        task=TaskSettings(labels=tuple(table.votes.labels)),
        data=NAMES,
        ask=AskSettings(draws=table.votes.codes.shape[3]),
        learn=replace(learn, text=learn.text and any(item.text for item in rows.items)),
    )
    task_of(config)  # raises for a single label
    refuse_other_gold(rows, table.votes.labels)
    if not source.people.gold_wins:
        check_gold(None, rows)
    replacing = _refuse_other_work(source, config, rows)
    asked = {"annotators": list(table.votes.annotators), "relations": list(table.votes.relations)}
    start = {"version": __version__, "data": str(source.table), IMPORTED: True, **asked}
    with lock_ledger(folder.ledger, say=say):
        if replacing:
            say(f"the old results are kept in {folder.set_results_aside()}")
        write_start(folder, {**start, "config": config_to_dict(config)})
        folder.own_folder.mkdir(parents=True, exist_ok=True)
        write_table(folder.items, rows.table)
        write_votes(folder.votes, table.votes)


def _rows(arrow: pa.Table, table: VoteTable, name: str) -> Dataset:
    """Return the rows of the items: those of the table, unless it has a row per vote; with their texts, if known."""
    ids, texts = table.votes.ids, texts_of(arrow, table.votes)
    rows = arrow if len(arrow) == len(ids) else pa.table({"id": ids})
    columns = {"id": ids, "text": [texts.get(item, "") for item in ids], "gold": table.gold}
    for column, values in columns.items():
        array = pa.array(values, pa.string())
        places = [place for place, name in enumerate(rows.column_names) if name.strip().casefold() == column]
        rows = rows.set_column(places[0], column, array) if places else rows.append_column(column, array)
    return TableStream.of(rows, name, columns_of(Config(data=NAMES))).read()


def _refuse_other_work(source: VoteSource, config: Config, rows: Dataset) -> bool:
    """Raise if the folder has results of other work; if they may be set aside, return whether it has."""
    folder = RunFolder(source.folder)
    if not parts_in(folder.path):
        return False
    try:
        before = Run.open(source.folder)
        if not before.start.get(IMPORTED):
            other = "of a run that asked models"
        elif {*before.config.task.labels} != {*config.task.labels}:
            other = f"with other labels ({', '.join(before.config.task.labels)})"
        else:
            other = lost_rows(before.dataset.items, rows.items, rows.name)
    except TableError as error:
        other = f"that cannot be read ({error})"
    if other and not source.replace:
        remedy = "name another folder with -o, or add --replace, which keeps the old results under a dated name"
        raise ConfigError(f"{source.folder} has results {other}: {remedy}")
    return bool(other)
