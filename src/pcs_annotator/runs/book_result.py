"""The result of a run: one for each of its variables, one table of labels, and all labels of a variable together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core import outcome as names
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.passages import YES
from pcs_annotator.judging.early_stop import Frugal
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import no_promise
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.sets import SetResult, WholeSets, fit_whole_sets, whole_rows
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.columns import SCORE_DECIMALS, with_columns
from pcs_annotator.runs.fits import REFIT
from pcs_annotator.runs.learn import learning_of
from pcs_annotator.runs.levels import note_test, read_levels
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import PassageResult
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.tables import write
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.files import expecting, read_json, write_json
from pcs_annotator.tables.find import as_arrow
from pcs_annotator.tables.write import OutputPolicy

__all__ = ["SetResult", "WholeSets"]
SHAPED = (names.WITHIN_ONE, names.LOW, names.HIGH, names.LEVEL)
ResultColumns = Mapping[str, pa.Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookResult:
    """The labels of all variables of a run.

    Attributes:
        book: The variables.
        results: Part → its result; of a variable with any number of labels, each has a part, `variable=label`.
        sets: Variable with any number of labels → all labels of a text together.
    """

    book: Book
    results: Mapping[str, RunResult]
    sets: Mapping[str, SetResult] = field(default_factory=dict)

    def __repr__(self) -> str:
        results = (f"  {name}: {result!r}" for name, result in self.results.items())
        return "\n".join([f"{type(self).__name__}({str(self.folder)!r})", *results])

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.book.path

    @property
    def variables(self) -> Mapping[str, TaskSettings]:
        """The variables, and what is asked about each."""
        return self.book.variables

    @property
    def only(self) -> RunResult:
        """The result of the only variable."""
        (result,) = self.results.values()
        return result

    @property
    def labels(self) -> Path:
        """The table with all labels."""
        return RunFolder(self.folder).labels

    @property
    def report(self) -> Path:
        """The page."""
        return RunFolder(self.folder).report


def write_labels(result: BookResult, *, spreadsheet_safe: bool = False) -> None:
    """Write the user's rows with the labels of all variables and, after a review, what people said; and passages."""
    results, policy = result.results, OutputPolicy(spreadsheet_safe=spreadsheet_safe)
    for each in results.values():
        if isinstance(each, PassageResult):
            write.write_table(each.folder.passages, each.passages_table(), policy)
    if result.book.named:
        people = {part: each.verdicts.by_place(len(each.votes)) for part, each in results.items()}
        if any(people.values()):
            people = {part: said or [None] * len(results[part].votes) for part, said in people.items()}
        by_part = {part: each.columns(people[part]) for part, each in results.items()}
        columns = book_columns(result.variables, by_part, result.sets)
        table = with_columns(as_arrow(RunFolder(result.folder).items), columns, frozenset(columns))
    else:
        table = result.only.labels_table()
    write.write_table(result.labels, table, policy)


def book_columns(
    variables: Mapping[str, TaskSettings], by_part: Mapping[str, ResultColumns], sets: Mapping[str, SetResult]
) -> dict[str, pa.Array]:
    """Return the columns of results for all variables; those of a run with one variable keep their names.

    Of a variable with any number of labels there are those that apply, how probable it is that all of them are right,
    `accept` where every one is accepted, the same for the whole set, and the probability and decision of each label.
    """
    if "" in by_part:
        return {**by_part[""]}
    columns: dict[str, pa.Array] = {}
    for name, task in variables.items():
        parts = [by_part[f"{name}={label}"] for label in task.labels] if task.kind == "many" else [by_part[name]]
        of = _many(parts, task.labels, sets[name]) if task.kind == "many" else _single(parts[0])
        if task.extraction:
            of = {**by_part[name]}
        columns |= {f"pcs_{name}{end}": values for end, values in of.items()}
    return columns


def _single(part: ResultColumns) -> dict[str, pa.Array]:
    ends = {names.LABEL: "", **{name: name.removeprefix("pcs") for name in (names.CONFIDENCE, names.DECISION, *SHAPED)}}
    return {end: part[name] for name, end in {**ends, names.FINAL_LABEL: "_final"}.items() if name in part}


def _many(parts: Sequence[ResultColumns], labels: Sequence[str], whole: SetResult) -> dict[str, pa.Array]:
    """Return the end of a column's name → its values, of a variable with any number of labels."""

    def rows_of(name: str) -> Iterator[tuple[str | None, ...]]:
        return zip(*(part.get(name, part[names.LABEL]).to_pylist() for part in parts), strict=True)

    def sets_of(name: str) -> pa.Array:
        return pa.array([_set_of(row, labels) for row in rows_of(name)], pa.string())

    columns = {
        "": sets_of(names.LABEL),
        "_confidence": pa.array([sure and round(sure, SCORE_DECIMALS) for sure in whole.confidence], pa.float64()),
        "_decision": pa.array([_decided(row) for row in rows_of(names.DECISION)], pa.string()),
        "_set_decision": pa.array([*whole.decisions], pa.string()),
    }
    probability = names.probability_name(YES)
    for label, part in zip(labels, parts, strict=True):
        columns[f"={label}"] = part.get(probability, pa.nulls(len(part[names.LABEL]), pa.float64()))
        columns[f"={label}_decision"] = part[names.DECISION]
    final = any(names.FINAL_LABEL in part for part in parts)
    return columns | ({"_final": sets_of(names.FINAL_LABEL)} if final else {})


def _set_of(row: Sequence[str | None], labels: Sequence[str]) -> str | None:
    if None in row:
        return None
    return ";".join(label for label, answer in zip(labels, row, strict=True) if answer == YES) or "none"


def _decided(row: Sequence[str | None]) -> str | None:
    return next((decision for decision in ("review", None) if decision in row), row[0])


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


def learn_sets(parts: Sequence[RunResult]) -> WholeSets:
    """Learn about all labels of a text together from the fits of each, and store it."""
    promise = learning_of(replace(parts[0].config.learn, per_label=False, by="")).promise
    folder = _whole(parts[0].folder)
    fits = [read_json(part.folder.model, REFIT)["fit_id"] for part in parts]
    sets, tested = _tested(folder, [part.learned.trial for part in parts], promise, " ".join(fits))
    write_json(folder.whole_set, {"fits": fits, "tested": tested, **to_plain(sets)})
    return sets


def _whole(label: RunFolder) -> RunFolder:
    return label.of(label.part.partition("=")[0])


def _tested(
    folder: RunFolder, trials: Sequence[HeldOut | None], promise: Promise | None, key: str
) -> tuple[WholeSets, str | None]:
    """Return what gold rows say about whole sets, and the key of the test, which the ledger of levels then has."""
    ids, judged = whole_rows(trials)
    levels = read_levels(folder, ids, key)
    sets = fit_whole_sets(judged, promise, levels.spent_before(key, "sets"), levels.refused)
    return sets, note_test(folder, levels, "sets", key, sets.certificate, ids)


def sets_in_force(labels: Sequence[RunFolder], frugal: Sequence[Frugal | None] = ()) -> WholeSets:
    """Return what was learned about all labels together, with gold rows asked about as little as new texts."""
    runs, trials = [Run.of(folder) for folder in labels], [way and way.trial for way in frugal]
    models = [(run.folder, run.model_in_force()) for run in runs]
    path = _whole(labels[0]).whole_set
    if not path.exists():  # learned by an earlier version
        return WholeSets()
    values = read_json(path, REFIT)
    with expecting(path, REFIT):
        sets, fits = from_plain(WholeSets, values), values["fits"]
    if (before := sets.certificate) is not None and (why := _why_void(models, fits)):
        sets = sets._replace(certificate=no_promise(before.promise, before.gold_rows, why))
    if sets.calibrator is None or None in trials or not trials:
        return sets
    if before is None or sets.certificate is not before or not before.holds:
        return fit_whole_sets(whole_rows(trials)[1], None)._replace(certificate=sets.certificate)
    # asked about with fewer questions, sets are tested anew
    return _tested(_whole(labels[0]), trials, before.promise, f"{' '.join(fits)} fewer")[0]


def _why_void(labels: Sequence[tuple[RunFolder, Model]], fits: Sequence[str]) -> str:
    """Return why a promise about sets is void: a label has another model, or another promise; empty if it is not."""
    for (folder, model), fit in zip(labels, fits, strict=True):
        then, now = read_json(folder.model, REFIT), model.certificate
        if then["fit_id"] != fit or now is None or now.revoked or now.why_not != then["certificate"]["why_not"]:
            return f"model or promise of {folder.home} changed since: pcs fit of all labels makes this promise again"
    return ""
