"""All labels of a variable together: what was learned about whole sets of labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.judging.early_stop import Frugal
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import no_promise
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.sets import SetResult, WholeSets, fit_whole_sets, whole_rows
from pcs_annotator.runs.fits import REFIT
from pcs_annotator.runs.learn import learning_of
from pcs_annotator.runs.levels import Claimed, note_test, read_levels
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.tables.files import expecting, read_json, write_json

__all__ = ["SetResult", "WholeSets"]


def whole_sets(
    variables: Mapping[str, TaskSettings],
    outcomes: Mapping[str, Sequence[Outcome]],
    learned: Callable[[Sequence[str]], WholeSets],
) -> dict[str, SetResult]:
    """Return the whole sets of every variable with any number of labels; `learned` says what is known of its parts."""
    sets = {}
    for name, task in variables.items():
        if task.kind == "many":
            parts = [f"{name}={label}" for label in task.labels]
            sets[name] = SetResult.of(learned(parts), [outcomes[part] for part in parts])
    return sets


def sets_in_force(labels: Sequence[RunFolder], frugal: Sequence[Frugal | None] = ()) -> WholeSets:
    """Return what was learned about all labels together, given their folders, and how questions are saved."""
    runs = [Run.of(folder) for folder in labels]
    return recorded_sets([(run.folder, run.model_in_force()) for run in runs], [way and way.trial for way in frugal])


def learn_sets(parts: Sequence[RunResult]) -> WholeSets:
    """Learn about all labels of a text together from the fits of each, and store it."""
    promise = learning_of(replace(parts[0].config.learn, per_label=False, by="")).promise
    folder = _whole(parts[0].folder)
    fits = [read_json(part.folder.model, REFIT)["fit_id"] for part in parts]
    sets, tested = _tested(folder, [part.learned.trial for part in parts], promise, " ".join(fits))
    write_json(folder.whole_set, {"fits": fits, "tested": tested, **to_plain(sets)})
    return sets


def _whole(label: RunFolder) -> RunFolder:
    """Return the part that stands for all labels of a variable, given that of one of them."""
    return label.of(label.part.partition("=")[0])


def _tested(
    folder: RunFolder, trials: Sequence[HeldOut | None], promise: Promise | None, key: str
) -> tuple[WholeSets, str | None]:
    """Return what gold rows say about whole sets, and the key of the test, which the ledger of levels then has."""
    ids, judged = whole_rows(trials)
    levels = read_levels(folder, ids, key)
    sets = fit_whole_sets(judged, promise, levels.spent_before(key, "sets"), levels.refused)
    return sets, note_test(folder, levels, Claimed("sets", key, sets.certificate), ids)


def recorded_sets(labels: Sequence[tuple[RunFolder, Model]], trials: Sequence[HeldOut | None] = ()) -> WholeSets:
    """Return what was learned about all labels together, given their folders and models in force.

    `trials` are of gold rows that are asked about as little as new texts, for which confidence and promise then are.
    """
    path = _whole(labels[0][0]).whole_set
    if not path.exists():  # learned by an earlier version
        return WholeSets()
    values = read_json(path, REFIT)
    with expecting(path, REFIT):
        sets, fits = from_plain(WholeSets, values), values["fits"]
    if (before := sets.certificate) is not None and (why := _why_void(labels, fits)):
        sets = sets._replace(certificate=no_promise(before.promise, before.gold_rows, why))
    if sets.calibrator is None or None in trials or not trials:
        return sets
    if before is None or sets.certificate is not before or not before.holds:
        return fit_whole_sets(whole_rows(trials)[1], None)._replace(certificate=sets.certificate)
    # asked about with fewer questions, sets are tested anew
    return _tested(_whole(labels[0][0]), trials, before.promise, f"{' '.join(fits)} fewer")[0]


def _why_void(labels: Sequence[tuple[RunFolder, Model]], fits: Sequence[str]) -> str:
    """Return why a promise about sets is void: a label has another model, or another promise; empty if it is not."""
    for (folder, model), fit in zip(labels, fits, strict=True):
        then, now = read_json(folder.model, REFIT), model.certificate
        if then["fit_id"] != fit or now is None or now.revoked or now.why_not != then["certificate"]["why_not"]:
            return f"model or promise of {folder.home} changed since: pcs fit of all labels makes this promise again"
    return ""
