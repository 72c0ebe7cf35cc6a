"""`pcs fit` and `pcs versions --use` in a run folder, and opening one; where the model changes, so does the report."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import Say, lock_ledger
from pcs_annotator.base.errors import MismatchError, TableError, warn_user
from pcs_annotator.judging.model import Model
from pcs_annotator.runs.fits import promises_less, settings_of_fits, take_version
from pcs_annotator.runs.gold_labels import ROWS_TO_LABEL, FromPeople
from pcs_annotator.runs.label_table import relabel_whole
from pcs_annotator.runs.learn import learned_from
from pcs_annotator.runs.opened import REFIT, Run
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.watch import Watch
from pcs_annotator.showing.report.page import report_or_warn
from pcs_annotator.tables.files import clear_leftovers, expecting


def fit_run(  # noqa: PLR0913  # options of pcs fit
    path: Path,
    changes: Mapping[str, Any] | None = None,
    people: FromPeople | None = None,
    *,
    spreadsheet_safe: bool = False,
    spare_looks: bool = False,
    ledger: str = "",
    say: Say = warn_user,
) -> RunResult:
    """Learn again from the votes of a run folder, with the labels and verdicts that people gave; no model is called.

    Learning uses the settings of the last fit, with `changes`. A run that is changing the folder is waited for. With
    `spare_looks`, a promise is tested for only when enough gold rows have come since the last test, and a model that
    promises less than the one in use is kept as a version, but not put in use. `ledger` says where the run's answers
    are now, if that has changed.
    """
    folder = Run.open(path).folder  # raises if this is not a run folder, before a lock is put there
    people, tally = people or FromPeople(), Tally()
    with lock_ledger(folder.ledger, say=say), Watch(folder, "fit", tally) as watch:
        watch.begin()
        clear_leftovers(path)
        run = Run.open(path, ledger)
        tally.rows_expected = len(run.dataset.items)
        settings = replace(run.settings, **(changes or {}))
        shown = {"by": settings.by, "gold_sample": settings.gold_sample}
        run = run.having(config=replace(run.config, learn=settings), **shown)
        in_use = _in_use(run) if spare_looks else None
        if people.gold is not None:
            run = run.with_gold(people)
        learned = run.learn(settings, spare_looks=spare_looks, say=say)
        fits = {**settings_of_fits(folder), **(changes or {})}
        if in_use is not None and promises_less(learned.model, in_use):
            run.write_learned(learned, settings, fits, use=False)
            return open_run(path)
        if run.sampled:
            learned = relabel_whole(run, learned, spreadsheet_safe=spreadsheet_safe)
            run.write_learned(learned, settings, fits)
            outcomes = list(learned.model.judge(run.votes))
        else:
            outcomes = run.write(learned, settings, fits, spreadsheet_safe=spreadsheet_safe)
        tally.rows = tally.rows_expected
        return _reported(run.result(learned, outcomes, to_label=run.hand_out(learned, people.to_label)))


def _in_use(run: Run) -> Model | None:
    try:
        return run.model_in_force()
    except (TableError, MismatchError):
        return None


def _reported(result: RunResult) -> RunResult:
    report_or_warn(result)
    return result


def use_version(path: Path, number: int, say: Say = warn_user) -> RunResult:
    """Go back, or forward, to a version of a run: its model labels the rows, and whatever comes."""
    folder = Run.open(path).folder
    with lock_ledger(folder.ledger, say=say):
        take_version(folder, number)
        run = Run.open(path)
        run = run.having(config=replace(run.config, learn=run.settings))
        learned = learned_from(run.model_in_force(), run.figures())
        if run.sampled:
            relabel_whole(run, learned, spreadsheet_safe=False)
            outcomes = list(learned.model.judge(run.votes))
        else:
            outcomes = run.write_labels(learned.model)
        return _reported(run.result(learned, outcomes, to_label=run.hand_out(learned, ROWS_TO_LABEL)))


def open_run(path: Path, version: int = 0) -> RunResult:
    """Return the result of a run from its folder; a run that was stopped before it learned is fitted.

    If model or figures are damaged or of different fits, what they would say is learned for this command alone: a
    command that only reads leaves files as they are, and `pcs fit` puts them right.
    """
    run = Run.open(path, version=version)
    run = run.having(config=replace(run.config, learn=run.settings))
    figures = run.folder.evaluation
    try:
        with expecting(figures, REFIT):
            learned = learned_from(run.model_in_force(), run.figures())
        return run.result(learned, list(learned.model.judge(run.votes)))
    except (TableError, MismatchError) as error:
        if not run.folder.model.exists() or not figures.exists():
            return fit_run(path)
        warn_user(f"{error}; learned again for this command alone")
        learned = run.learn(run.settings)
    return run.result(learned, list(learned.model.judge(run.votes)))
