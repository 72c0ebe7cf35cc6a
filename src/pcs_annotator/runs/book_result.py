"""The result of a run: one for each of its variables, and one table of labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pcs_annotator.asking.annotators.reply import YES
from pcs_annotator.core import outcome as names
from pcs_annotator.judging.promise.sets import SetResult
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.columns import SCORE_DECIMALS, with_columns
from pcs_annotator.runs.passage_run import PassageResult
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.tables import write
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.find import as_arrow
from pcs_annotator.tables.write import OutputPolicy

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
    """Return the end of a column's name → its values, of a variable with one label per text."""
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
