"""`pcs fit` and `pcs versions --use` in a run folder, and opening one; where the model changes, so does the report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import Say, lock_ledger
from pcs_annotator.base.errors import ConfigError, MismatchError, TableError, warn_user
from pcs_annotator.judging.model import Model
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.book_result import BookResult, WholeSets, learn_sets, sets_in_force, whole_sets, write_labels
from pcs_annotator.runs.fits import REFIT, promises_less, settings_of_fits, take_version
from pcs_annotator.runs.gold_labels import ROWS_TO_LABEL, FromPeople
from pcs_annotator.runs.label_table import relabel_whole
from pcs_annotator.runs.learn import learned_from
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import SAMPLED, RunFolder, read_start
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.watch import Watch
from pcs_annotator.showing.report.page import report_or_warn
from pcs_annotator.tables.files import clear_leftovers, expecting


def fit(  # noqa: PLR0913  # options of pcs fit
    path: Path,
    changes: Mapping[str, Any] | None = None,
    people: FromPeople | None = None,
    *,
    spreadsheet_safe: bool = False,
    spare_looks: bool = False,
    ledger: str = "",
    say: Say = warn_user,
) -> BookResult:
    """Learn again from the votes of a run, with the labels and verdicts that people gave; no model is called.

    Learning uses the settings of the last fit, with `changes`. With `spare_looks`, a promise is only tested for once
    enough gold rows have come, and a model that promises less than the one in use becomes a version alone. `ledger`
    says where the run's answers are now.
    """
    book = Book.open(path)  # raises if this is not a run folder, before a lock is put there
    people, first = people or FromPeople(), next(iter(book.parts.values()))
    if book.named and people.gold is not None:
        raise ConfigError(
            f"--gold is for one variable: name its folder, such as pcs fit {first.home} --gold {people.gold}; for "
            "several, add columns named like the variables to the data, and repeat pcs run"
        )
    first = RunFolder(first.path)
    if book.named and not first.items.exists():
        raise TableError(f"{path} has no {first.items.name}: repeat pcs run, which writes it")
    tally = Tally()
    with lock_ledger(first.ledger, say=say), Watch(first, "fit", tally) as watch:
        watch.begin()
        clear_leftovers(first.path, *(folder.own_folder for folder in book.parts.values()))
        results, runs = {}, {part: Run.of(folder, ledger) for part, folder in book.parts.items()}
        for part, run in runs.items():
            tally.rows_expected = len(run.dataset.items)
            shared, how = run.having(parts=runs) if book.named else run, _How(spreadsheet_safe, spare_looks, say)
            results[part] = _fit_part(shared, changes or {}, people, how)
        tally.rows = len(run.dataset.items)
        return written(first, results, book, spreadsheet_safe=spreadsheet_safe)


def fit_run(path: Path, *options: Any, **named: Any) -> RunResult:
    """Learn again from the votes of one variable, as `fit` does."""
    return fit(path, *options, **named).only


class _How(NamedTuple):
    spreadsheet_safe: bool
    spare_looks: bool
    say: Say


def _fit_part(run: Run, changes: Mapping[str, Any], people: FromPeople, how: _How) -> RunResult:
    folder, settings = run.folder, replace(run.settings, **changes)
    shown = {"by": settings.by, "gold_sample": settings.gold_sample}
    run = run.having(config=replace(run.config, learn=settings), **shown)
    in_use = _in_use(run) if how.spare_looks else None
    if people.gold is not None:
        run = run.with_gold(people)
    learned = run.learn(settings, spare_looks=how.spare_looks, say=how.say)
    fits = {**settings_of_fits(folder), **changes}
    if in_use is not None and promises_less(learned.model, in_use):
        run.write_learned(learned, settings, fits, use=False)
        return _open_part(folder)
    if run.sampled:
        learned = relabel_whole(run, learned, spreadsheet_safe=how.spreadsheet_safe)
    run.write_learned(learned, settings, fits)
    return run.result(learned, to_label=run.hand_out(learned, people.to_label))


def written(
    folder: RunFolder, results: Mapping[str, RunResult], book: Book | None = None, *, spreadsheet_safe: bool = False
) -> BookResult:
    """Write the labels and the page of a run of which some variables were learned anew; return those of `book`."""
    whole = Book.open(folder.path)
    parts = {result.folder.part: result for result in results.values()}
    every = {name: parts.get(name) or _open_part(part, fitting=False) for name, part in whole.parts.items()}
    result = _with_sets(whole, every, learning=len(parts) == len(every))
    if not any(SAMPLED in read_start(part) for part in whole.parts.values()):
        write_labels(result, spreadsheet_safe=spreadsheet_safe)
    report_or_warn(result)
    return result if book is None or book.named else BookResult(book=book, results=results)


def _in_use(run: Run) -> Model | None:
    try:
        return run.model_in_force()
    except (TableError, MismatchError):
        return None


def use_version(path: Path, number: int, say: Say = warn_user) -> BookResult:
    """Go back, or forward, to a version of a run: its model labels the rows, and whatever comes."""
    book = Book.open(path)
    folder = RunFolder.find(path)
    with lock_ledger(folder.ledger, say=say):
        take_version(folder, number)
        run = Run.of(folder)
        run = run.having(config=replace(run.config, learn=run.settings))
        learned = learned_from(run.model_in_force(), run.figures())
        if run.sampled:
            relabel_whole(run, learned, spreadsheet_safe=False)
        result = run.result(learned, to_label=run.hand_out(learned, ROWS_TO_LABEL))
        return written(folder, {"": result}, book)


def open_book(path: Path) -> BookResult:
    """Return the result of a run from its folder, for each of its variables; see `open_run`."""
    book = Book.open(path)
    return _with_sets(book, {name: _open_part(folder) for name, folder in book.parts.items()}, learning=False)


def _with_sets(book: Book, results: Mapping[str, RunResult], *, learning: bool) -> BookResult:
    """Return all results with those of whole sets of labels, about which is learned anew if all parts were."""

    def learned(parts: Sequence[str]) -> WholeSets:
        if learning:
            return learn_sets([results[part] for part in parts])
        return sets_in_force([book.parts[part] for part in parts])

    outcomes = {name: result.outcomes for name, result in results.items()}
    return BookResult(book=book, results=results, sets=whole_sets(book.variables, outcomes, learned))


def open_run(path: Path, version: int = 0) -> RunResult:
    """Return the result of a run, or of one variable, from its folder; one that was stopped early is fitted.

    If model or figures are damaged or of different fits, what they would say is learned for this command alone: a
    command that only reads leaves files as they are, and `pcs fit` puts them right.
    """
    return _open_part(RunFolder.find(path, version))


def _open_part(folder: RunFolder, *, fitting: bool = True) -> RunResult:
    run = Run.of(folder)
    run = run.having(config=replace(run.config, learn=run.settings))
    figures = run.folder.evaluation
    try:
        with expecting(figures, REFIT):
            learned = learned_from(run.model_in_force(), run.figures())
        return run.result(learned)
    except (TableError, MismatchError) as error:
        if fitting and not (run.folder.model.exists() and figures.exists()):
            return fit_run(folder.home)
        warn_user(f"{error}; learned again for this command alone")
        learned = run.learn(run.settings)
    return run.result(learned)
