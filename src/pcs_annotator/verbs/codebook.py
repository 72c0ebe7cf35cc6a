"""Commands for a codebook: one variable after the other, one table of all labels, one page for all reports."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pcs_annotator.asking.ledger.lock import lock_ledger
from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.judging.promise.sets import SetResult, WholeSets
from pcs_annotator.runs import ledgers, resolve_config
from pcs_annotator.runs.codebook import CodebookFolder, final_labels, labels_of, open_codebook, place_of
from pcs_annotator.runs.columns import with_columns
from pcs_annotator.runs.learned_sets import learn_sets, sets_in_force, whole_sets
from pcs_annotator.runs.new_texts import output_policy, without_gold
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.run_table import open_table, refuse_other_work
from pcs_annotator.runs.settings import Saving, TaskSettings
from pcs_annotator.showing.report.page import write_index, write_report
from pcs_annotator.tables import write
from pcs_annotator.tables.files import write_json
from pcs_annotator.tables.find import as_arrow
from pcs_annotator.tables.write import STRICT, OutputPolicy
from pcs_annotator.verbs.fit import fit_run, open_run
from pcs_annotator.verbs.label import Labelled, label
from pcs_annotator.verbs.run import run


@dataclass(frozen=True, slots=True)
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
    folder.refuse_file()
    if folder.settings.exists():
        raise ConfigError(f"{folder.path} has a run of a single task: name another folder with --out")
    table, requests = open_codebook(request)
    ledgers.check_ledger(config, fresh=request.fresh)
    replacing = False
    for part in requests.values():  # before the first is asked, as its calls are about the others too
        rows = open_table(part.open_data(), RunFolder(part.folder), part.config)
        replacing |= refuse_other_work(part, resolve_config.resolve(part.config, rows.sample), rows)
    folder.path.mkdir(parents=True, exist_ok=True)
    if replacing:
        request.say(f"the old results of all variables are kept in {folder.set_results_aside()}")
    if request.fresh and folder.ledger.exists():
        with lock_ledger(folder.ledger, wait=request.wait, say=request.say):
            request.say(f"the answers so far are kept in {ledgers.set_ledger_aside(folder.ledger)}")
    folders = {part: place_of(part) for part in requests}
    write_json(folder.codebook, {"folders": folders})
    results = {}
    for name, part in requests.items():
        announce(name)
        results[name] = run(part)
    write.write_table(folder.items, table)
    return _written(folder, config.variables, results, safe=request.spreadsheet_safe)


def fit_codebook(
    book: CodebookFolder, changes: Mapping[str, Any], *, spreadsheet_safe: bool = False, **how: Any
) -> CodebookResult:
    """Learn again from the votes on every variable, and write their labels and reports anew; no model is called."""
    folder = RunFolder(book.path)
    if not folder.items.exists():
        raise TableError(f"{folder.path} has no {folder.items.name}: pcs run, once more, writes it")
    results = book.each(lambda path: fit_run(path, changes, spreadsheet_safe=spreadsheet_safe, **how))
    return _written(folder, book.variables, results, safe=spreadsheet_safe)


def report_codebook(book: CodebookFolder, out: Path | None = None, policy: OutputPolicy = STRICT) -> CodebookResult:
    """Write the report of every variable, and the page that leads to them."""
    folder, results = RunFolder(book.path), book.each(open_run)
    for result in results.values():
        write_report(result)
    sets = whole_sets(
        book.variables, _outcomes(results), lambda parts: sets_in_force([book.parts[result] for result in parts])
    )
    index = write_index({**results, **sets}, book.variables, folder.report, out, policy)
    return CodebookResult(
        folder=folder.path, variables=book.variables, results=results, labels=folder.labels, report=index, sets=sets
    )


def _written(
    folder: RunFolder, variables: Mapping[str, TaskSettings], results: Mapping[str, RunResult], *, safe: bool
) -> CodebookResult:
    """Learn about whole sets, write the labels of all variables, and the page that leads to their reports."""
    outcomes = _outcomes(results)
    reviewed = any(part.verdicts.by_row for part in results.values())
    final = {name: final_labels(part) for name, part in results.items()} if reviewed else None
    sets = whole_sets(variables, outcomes, lambda parts: learn_sets([results[part] for part in parts]))
    columns = labels_of(variables, outcomes, sets, final)
    table = with_columns(as_arrow(folder.items), columns, columns)
    write.write_table(folder.labels, table, OutputPolicy(spreadsheet_safe=safe))
    index = write_index({**results, **sets}, variables, folder.report)
    return CodebookResult(
        folder=folder.path, variables=variables, results=results, labels=folder.labels, report=index, sets=sets
    )


def _outcomes(results: Mapping[str, RunResult] | Mapping[str, Labelled]) -> dict[str, Sequence[Outcome]]:
    return {part: result.outcomes for part, result in results.items()}


def label_codebook(
    book: CodebookFolder, request: RunRequest, out: Path | None, saving: Saving | None = None
) -> tuple[dict[str, Labelled], dict[str, SetResult]]:
    """Label new texts with every variable of a codebook; return part → its labels, and variable → its whole sets."""
    policy = output_policy(request, without_gold(request, ()).open_data(), out)
    if out is not None:
        policy.check(out)
    results = book.each(lambda path: label(replace(request, folder=path), None, saving))
    first, outcomes = next(iter(results.values())), _outcomes(results)

    def learned(parts: Sequence[str]) -> WholeSets:
        return sets_in_force([book.parts[part] for part in parts], [results[part].frugal for part in parts])

    sets = whole_sets(book.variables, outcomes, learned)
    columns = labels_of(book.variables, outcomes, sets)
    if out is not None:
        kept = policy.make_way(out)
        policy.write_table(out, with_columns(first.dataset.table, columns, columns))
        if kept:
            request.say(f"{out} is kept as {kept}")
    return results, sets
