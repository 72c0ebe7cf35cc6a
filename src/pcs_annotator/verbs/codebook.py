"""Commands for a codebook: one variable after the other, one table of all labels, one page for all reports."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.judging.whole_sets import SetResult, WholeSets
from pcs_annotator.runs.codebook import CodebookFolder, final_labels, labels_of, open_codebook, place_of
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.fitting import learn_sets, recorded_sets
from pcs_annotator.runs.result_columns import with_columns
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.settings import Saving, TaskSettings
from pcs_annotator.showing.report.index import write_index
from pcs_annotator.showing.report.page import write_report
from pcs_annotator.tables import tables
from pcs_annotator.tables.files import write_json
from pcs_annotator.tables.table_writer import TableStyle
from pcs_annotator.tables.tabular import as_arrow
from pcs_annotator.verbs.fit import fit_run, open_run
from pcs_annotator.verbs.label import Labelled, label
from pcs_annotator.verbs.run import run

T = TypeVar("T", RunResult, Labelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodebookResult:
    """The labels of several variables."""

    folder: Path  # of all of them
    variables: Mapping[str, TaskSettings]
    results: Mapping[str, RunResult]  # part → its run; of a variable with any number of labels, `variable=label`
    labels: Path  # the table with all labels
    report: Path  # the page that leads to the report of every variable
    # variable with any number of labels → all labels of a text together
    sets: Mapping[str, SetResult] = field(default_factory=dict)

    __repr__ = brief


def run_codebook(request: RunRequest, announce: Callable[[str], None] = lambda part: None) -> CodebookResult:
    """Run every variable of a codebook; a second run asks only what is missing."""
    config, folder = request.config, RunFolder(request.folder)
    if folder.settings.exists():
        raise ConfigError(f"{folder.path} has a run of a single task: name another folder with --out")
    table, requests = open_codebook(request)
    folder.path.mkdir(parents=True, exist_ok=True)
    write_json(folder.codebook, {"folders": {part: place_of(part) for part in requests}})
    results = {}
    for name, part in requests.items():
        announce(name)
        results[name] = run(part)
    tables.write_table(folder.items, table)
    return _written(folder, config.variables, results, safe=request.spreadsheet_safe)


def fit_codebook(
    book: CodebookFolder, changes: Mapping[str, Any], *, spreadsheet_safe: bool = False, **how: Any
) -> CodebookResult:
    """Learn again from the votes on every variable, and write their labels and reports anew; no model is called."""
    folder = RunFolder(book.path)
    if not folder.items.exists():
        raise TableError(f"{folder.path} has no {folder.items.name}: pcs run, once more, writes it")
    results = book.each(lambda place: fit_run(place, changes, spreadsheet_safe=spreadsheet_safe, **how))
    return _written(folder, book.variables, results, safe=spreadsheet_safe)


def report_codebook(book: CodebookFolder, out: Path | None = None, *, replace: bool = False) -> CodebookResult:
    """Write the report of every variable, and the page that leads to them."""
    folder, results = RunFolder(book.path), book.each(open_run)
    for one in results.values():
        write_report(one)
    sets = _sets(book.variables, results, lambda _, parts: recorded_sets([(one.folder, one.model) for one in parts]))
    index = write_index({**results, **sets}, book.variables, out or folder.report, own=out is None, replace=replace)
    return CodebookResult(
        folder=folder.path, variables=book.variables, results=results, labels=folder.labels, report=index, sets=sets
    )


def _sets(
    variables: Mapping[str, TaskSettings], found: Mapping[str, T], learn: Callable[[str, Sequence[T]], WholeSets]
) -> dict[str, SetResult]:
    """Return the whole sets of every variable with any number of labels."""
    sets = {}
    for name in (name for name, task in variables.items() if task.kind == "many"):
        parts = [found[f"{name}={label}"] for label in variables[name].labels]
        unlike = any(one.model.unlike_gold for one in parts)
        sets[name] = SetResult.of(learn(name, parts), [one.outcomes for one in parts], unlike_gold=unlike)
    return sets


def _written(
    folder: RunFolder, variables: Mapping[str, TaskSettings], results: Mapping[str, RunResult], *, safe: bool
) -> CodebookResult:
    """Learn about whole sets, write the labels of all variables, and the page that leads to their reports."""
    outcomes = {name: one.outcomes for name, one in results.items()}
    reviewed = any(one.verdicts.by_row for one in results.values())
    final = {name: final_labels(one) for name, one in results.items()} if reviewed else None
    sets = _sets(variables, results, lambda _, parts: learn_sets(parts))
    columns = labels_of(variables, outcomes, sets, final)
    table = with_columns(as_arrow(folder.items), columns, columns)
    tables.write_table(folder.labels, table, TableStyle(spreadsheet_safe=safe))
    index = write_index({**results, **sets}, variables, folder.report)
    return CodebookResult(
        folder=folder.path, variables=variables, results=results, labels=folder.labels, report=index, sets=sets
    )


def label_codebook(
    book: CodebookFolder, request: RunRequest, out: Path | str | None, saving: Saving | None = None
) -> tuple[dict[str, Labelled], dict[str, SetResult]]:
    """Label new texts with every variable of a codebook; return part → its labels, and variable → its whole sets."""

    def learn(name: str, parts: Sequence[Labelled]) -> WholeSets:
        runs = [Run.open(book.parts[part]) for part in book.parts_of(name)]
        in_force = [(run.folder, run.model_in_force()) for run in runs]
        return recorded_sets(in_force, [one.frugal and one.frugal.trial for one in parts])

    found = book.each(lambda place: label(replace(request, folder=place), None, saving))
    first, sets = next(iter(found.values())), _sets(book.variables, found, learn)
    columns = labels_of(book.variables, {name: one.outcomes for name, one in found.items()}, sets)
    if out is not None:
        tables.write_table(out, with_columns(first.dataset.table, columns, columns))
    return found, sets
