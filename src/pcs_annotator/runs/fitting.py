"""Learning again in a run folder from the votes it has; and opening what was learned."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pcs_annotator.asking.ledger.lock import Say, lock_ledger
from pcs_annotator.base.errors import MismatchError, TableError, warn_user
from pcs_annotator.judging.fit_model import Trial
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.certificate import no_promise
from pcs_annotator.judging.whole_sets import WholeSets, fit_whole_sets, whole_rows
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.gold import ROWS_TO_LABEL, FromPeople
from pcs_annotator.runs.labelling.rows import relabel_whole
from pcs_annotator.runs.learn import learned_from, learning_of
from pcs_annotator.runs.looks import read_looks, write_looks
from pcs_annotator.runs.run import REFIT, Run
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.versions import settings_of_fits, take_version
from pcs_annotator.tables.files import clear_leftovers, expecting, read_json, write_json


def fit_again(  # noqa: PLR0913  # options of pcs fit
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
    `spare_looks`, a promise is tested for only when enough gold rows have come since the last test without one.
    `ledger` says where the run's answers are now, if that has changed.
    """
    folder = Run.open(path).folder  # raises if this is not a run folder, before a lock is put there
    people = people or FromPeople()
    with lock_ledger(folder.ledger, say=say):
        clear_leftovers(path)
        run = Run.open(path, ledger)
        settings = replace(run.settings, **(changes or {}))
        run = run.having(config=replace(run.config, learn=settings), by=settings.by)
        if people.gold is not None:
            run = run.with_gold(people)
        learned = run.learn(settings, spare_looks=spare_looks)
        fits = {**settings_of_fits(folder), **(changes or {})}
        if run.sampled:
            learned = relabel_whole(run, learned, spreadsheet_safe=spreadsheet_safe)
            run.write_learned(learned, settings, fits)
            outcomes = list(learned.model.judge(run.votes))
        else:
            outcomes = run.write(learned, settings, fits, spreadsheet_safe=spreadsheet_safe)
        return run.result(learned, outcomes, to_label=run.hand_out(learned, people.to_label))


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
        return run.result(learned, outcomes, to_label=run.hand_out(learned, ROWS_TO_LABEL))


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
        outcomes = list(learned.model.judge(run.votes))
    except (TableError, MismatchError) as error:
        if not run.folder.model.exists() or not figures.exists():
            return fit_again(path)
        warn_user(f"{error}; learned again for this command alone")
        learned = run.learn(run.settings)
        outcomes = list(learned.model.judge(run.votes))
    return run.result(learned, outcomes)


def learn_sets(parts: Sequence[RunResult]) -> WholeSets:
    """Learn about all labels of a text together from the fits of each, and write it into the folder of the first."""
    ids, judged = whole_rows([one.learned.trial for one in parts])
    promise = learning_of(replace(parts[0].config.learn, per_label=False, by="")).promise
    folder = RunFolder(parts[0].folder.whole_set)
    fits = [read_json(one.folder.model, REFIT)["fit_id"] for one in parts]
    looks = read_looks(folder, ids, key := " ".join(fits))
    found = fit_whole_sets(judged, promise, looks.spent_before(key), looks.refused)
    folder.path.mkdir(exist_ok=True)
    if found.certificate is not None:
        write_looks(folder, looks.with_look(key, found.certificate, ids))
    write_json(folder.model, {"fits": fits, **found.to_dict()})
    return found


def recorded_sets(labels: Sequence[tuple[RunFolder, Model]], trials: Sequence[Trial | None] = ()) -> WholeSets:
    """Return what was learned about all labels together, given their folders and models in force.

    `trials` are of gold rows that are asked about as little as new texts, for which confidence and promise then are.
    """
    path = RunFolder(labels[0][0].whole_set).model
    if not path.exists():  # learned by an earlier version
        return WholeSets()
    values = read_json(path, REFIT)
    with expecting(path, REFIT):
        found, fits = WholeSets.from_dict(values), values["fits"]
    if (before := found.certificate) is not None and (why := _why_void(labels, fits)):
        found = found._replace(certificate=no_promise(before.promise, before.gold_rows, why))
    if found.calibrator is None or None in trials or not trials:
        return found
    if before is None or found.certificate is not before or not before.holds:
        return fit_whole_sets(whole_rows(trials)[1], None)._replace(certificate=found.certificate)
    return fit_whole_sets(whole_rows(trials)[1], before.promise, before.spent)


def _why_void(labels: Sequence[tuple[RunFolder, Model]], fits: Sequence[str]) -> str:
    """Return why a promise about sets is void: a label has another model, or another promise; empty if it is not."""
    for (folder, model), fit in zip(labels, fits, strict=True):
        then, now = read_json(folder.model, REFIT), model.certificate
        if then["fit_id"] != fit or now is None or now.revoked or now.why_not != then["certificate"]["why_not"]:
            return f"model or promise of {folder.path} changed since: pcs fit of all labels makes this promise again"
    return ""
