"""`pcs run` and `pcs label` for a codebook: one run after the other, and one table of all labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.result_names import input_names
from pcs_annotator.runs.codebook import labels_of, open_codebook
from pcs_annotator.runs.files.runs import REMEDY, RunFolder
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.settings import Saving, TaskSettings
from pcs_annotator.tables import tables
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.files import expecting, read_json, write_json
from pcs_annotator.tables.table_writer import TableStyle
from pcs_annotator.verbs.label import Labelled, label
from pcs_annotator.verbs.run import run


@dataclass(frozen=True, slots=True, kw_only=True)
class CodebookResult:
    """The labels of several variables."""

    folder: Path  # of all of them
    variables: Mapping[str, TaskSettings]
    results: Mapping[str, RunResult]  # part → its run; of a variable with any number of labels, `variable=label`
    labels: Path  # the table with all labels

    __repr__ = brief


def run_codebook(request: RunRequest, announce: Callable[[str], None] = lambda part: None) -> CodebookResult:
    """Run every variable of a codebook; a second run asks only what is missing."""
    config, folder = request.config, RunFolder(request.folder)
    if folder.settings.exists():
        raise ConfigError(f"{folder.path} has a run of a single task: name another folder with --out")
    book = open_codebook(request)
    folder.path.mkdir(parents=True, exist_ok=True)
    write_json(folder.codebook, {"folders": {part.name: part.place for part in book.parts}})
    results = {}
    for name, part in book.requests.items():
        announce(name)
        results[name] = run(part)
    found = {name: result.outcomes for name, result in results.items()}
    written = _joined(book.table, labels_of(config.variables, found))
    tables.write_table(folder.labels, written, TableStyle(spreadsheet_safe=request.spreadsheet_safe))
    return CodebookResult(folder=folder.path, variables=config.variables, results=results, labels=folder.labels)


def label_codebook(request: RunRequest, out: Path | str | None, saving: Saving | None = None) -> dict[str, Labelled]:
    """Label new texts with every variable of a codebook; return part → its labels."""
    folder = RunFolder(request.folder)
    with expecting(folder.codebook, REMEDY):
        places = dict(read_json(folder.codebook, REMEDY)["folders"])
    found = {name: label(replace(request, folder=folder.path / place), None, saving) for name, place in places.items()}
    first = next(iter(found.values()))
    variables = Run.open(folder.path / next(iter(places.values()))).config.variables
    columns = labels_of(variables, {name: one.outcomes for name, one in found.items()})
    if out is not None:
        tables.write_table(out, _joined(first.dataset.table, columns))
    return found


def _joined(table: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    """Return the user's table with columns of results."""
    own = input_names(table.column_names, columns)
    table = table.rename_columns([own[name] for name in table.column_names])
    for name, values in columns.items():
        table = table.append_column(name, values)
    return table
