"""`pcs fit`: learn again in a run folder from the votes it has; and open what was learned."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pcs_annotator.asking.ledger.lock import Say, lock_ledger, warn_user
from pcs_annotator.base.errors import MismatchError, PcsWarning, TableError
from pcs_annotator.runs import audit_file, human_review, learn
from pcs_annotator.runs.files.runs import RunFolder, clear_leftovers, expecting
from pcs_annotator.runs.labelling.whole import relabel_whole
from pcs_annotator.runs.run_folder import REFIT, Recorded, settings_of_fits, started
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.showing.report.page import write_report


def fit_run(  # noqa: PLR0913  # options of pcs fit
    path: Path,
    changes: Mapping[str, Any] | None = None,
    people: human_review.FromPeople | None = None,
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
    folder = RunFolder(path)
    started(folder)  # raises if this is no run folder, before a lock is put there
    with lock_ledger(folder.ledger, say=say):
        clear_leftovers(folder.path)
        how = {"spreadsheet_safe": spreadsheet_safe, "spare_looks": spare_looks}
        return _fit_run(Recorded.read(folder, ledger), changes, people or human_review.FromPeople(), **how)


def _fit_run(
    recorded: Recorded,
    changes: Mapping[str, Any] | None,
    people: human_review.FromPeople,
    *,
    spreadsheet_safe: bool,
    spare_looks: bool,
) -> RunResult:
    settings = replace(recorded.settings, **(changes or {}))
    recorded = replace(recorded, config=replace(recorded.config, learn=settings))
    items = recorded.dataset.items
    if people.gold is not None:
        recorded = recorded.with_gold(people)
    learned = recorded.learn(settings, spare_looks=spare_looks)
    if people.verdicts is not None:
        outcomes = list(learned.model.judge(recorded.votes))
        model = audit_file.with_verdicts(learned.model, people, recorded.folder, items, outcomes)
        learned = replace(learned, model=model)
        if not (learned.model.certificate and learned.model.certificate.holds):
            learned = replace(learned, model=learned.model.with_coverage(recorded.votes))
    fits = {**settings_of_fits(recorded.folder), **(changes or {})}
    if recorded.sampled:
        learned = relabel_whole(recorded, learned, spreadsheet_safe=spreadsheet_safe)
        recorded.write_learned(learned, settings, fits)
        outcomes = list(learned.model.judge(recorded.votes))
    else:
        outcomes = recorded.write(learned, settings, fits, spreadsheet_safe=spreadsheet_safe)
    audited = 0
    if people.audit:
        audited = audit_file.hand_out_audit(recorded.folder, items, outcomes, recorded.gold, people.audit)
    to_label = recorded.hand_out(learned, people.to_label)
    result = recorded.result(learned, outcomes, to_label=to_label, to_audit=audited)
    write_report(result)
    return result


def open_run(path: Path) -> RunResult:
    """Return the result of a run from its folder; a run that was stopped before it learned is fitted.

    If model or figures are damaged or of different fits, what they would say is learned for this command alone: a
    command that only reads leaves files as they are, and `pcs fit` puts them right.
    """
    recorded = Recorded.read(RunFolder(path))
    recorded = replace(recorded, config=replace(recorded.config, learn=recorded.settings))
    figures = recorded.folder.evaluation
    try:
        with expecting(figures, REFIT):
            learned = learn.learned_from(recorded.model_in_force(), recorded.figures())
        outcomes = list(learned.model.judge(recorded.votes))
    except (TableError, MismatchError) as error:
        if not recorded.folder.model.exists() or not figures.exists():
            return fit_run(path)
        warnings.warn(f"{error}; learned again for this command alone", PcsWarning, stacklevel=2)
        learned = recorded.learn(recorded.settings)
        outcomes = list(learned.model.judge(recorded.votes))
    return recorded.result(learned, outcomes)
