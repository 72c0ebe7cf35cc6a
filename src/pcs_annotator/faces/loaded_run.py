"""A loaded run: its results, and labels for further texts and Arrow tables, wherever Python runs."""

import os
import pickle
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar, overload

from pcs_annotator.base.concurrency import run_in_thread
from pcs_annotator.base.display import Columns as FrameColumns
from pcs_annotator.base.display import Frame, Page
from pcs_annotator.base.errors import ConfigError, TableError
from pcs_annotator.core.arrays import values_of
from pcs_annotator.core.outcome import ERROR, HIGH, LEVEL, LOW, WITHIN_ONE, Outcome, Outcomes, result_names
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.book_result import ResultColumns, WholeSets, book_columns, sets_in_force, whole_sets
from pcs_annotator.runs.columns import groups_of, result_columns, result_schema, with_columns
from pcs_annotator.runs.fits import REFIT
from pcs_annotator.runs.labeller import LabelledTexts, LoadOptions, RunEngine
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_result import Certificate, Model, RunResult
from pcs_annotator.showing.report.charts import Picture, picture
from pcs_annotator.showing.report.page import write_report
from pcs_annotator.tables.arrow import columns_of, pa, text_column
from pcs_annotator.tables.chunks import PAIR_SIGN, Columns, find_columns, items_of, texts_in
from pcs_annotator.tables.files import read_json
from pcs_annotator.tables.find import as_arrow, place_or_table
from pcs_annotator.verbs.fit import open_book

T = TypeVar("T")
_Text = tuple[str, str]  # a text to label, and why it cannot be; empty if it can
MOST_ROWS = 10_000  # rows that are labelled at a time, so that memory does not grow with the table
NO_TEXT, NOT_TEXT = "no text", "the text is not valid UTF-8"


class LoadedRun(Frame):
    """A fitted run: what it found out, and labels for further texts.

    It can be pickled, so that Ray, Spark and Daft can send it to other processes, and used by several threads. Models
    and ledger are opened when the first text is labelled, in each process once. `close`, the end of a `with` block or
    the end of the process closes them.
    """

    def __init__(self, folder: Path, options: LoadOptions) -> None:
        self.folder, self.options = folder, options
        self._opening = threading.Lock()
        self._engines: dict[str, RunEngine] = {}
        self._sets: dict[str, WholeSets] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    def _columns(self) -> FrameColumns:
        return self.result._columns()

    def _repr_html_(self) -> str:
        return self.result._repr_html_()

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_this_process, (self.folder, self.options)

    def __enter__(self) -> "LoadedRun":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close models and ledger; the next text opens them again."""
        with self._opening:
            for engine in self._engines.values():
                engine.close()
            self._engines = {}

    @cached_property
    def book(self) -> Book:
        """The variables of the run."""
        return Book.open(self.folder)

    @cached_property
    def results(self) -> Mapping[str, RunResult]:
        """The result of every part of the run, by its name, as `run` returned it; read from the folder once."""
        results = open_book(self.folder).results
        return {part: replace(result, own=self.options.own, plotter=picture) for part, result in results.items()}

    @property
    def result(self) -> RunResult:
        """The result of a run with one variable."""
        if self.book.named:
            raise ConfigError(f"{self.folder} has several variables: use .results[{next(iter(self.book.parts))!r}]")
        return self.results[""]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of a run with one variable."""
        return Run.open(self.folder).config.task.labels

    @property
    def votes(self) -> Votes:
        """The votes on the run's own texts."""
        return self.result.votes

    @property
    def model(self) -> Model:
        """What was learned: weights, calibrator and certificate."""
        return self.result.model

    @property
    def weights(self) -> Weights:
        """The weight of every annotator and every relation."""
        return self.result.weights

    @property
    def certificate(self) -> Certificate | None:
        """What is promised about accepted labels, or why nothing is; None if no promise was requested."""
        return self.result.certificate

    def outcomes(self) -> Outcomes:
        """Return the labels of the run's own texts; of a large table, those of a sample."""
        return Outcomes(self.result.outcomes)

    def report(self) -> Page:
        """Return the page of the run, which a notebook shows; it is written if it is missing."""
        path = RunFolder(self.book.path).report
        return Page(path if path.exists() else write_report(open_book(self.folder)))

    def plot(self, kind: str = "risk") -> Picture:
        """Return a chart of the run; see `RunResult.plot`."""
        return picture(self.result, kind)

    @overload
    def label(self, texts: str) -> Outcome: ...  # type: ignore[overload-overlap]  # a str is an object, too
    @overload
    def label(self, texts: object, ids: object = None) -> Outcomes: ...
    def label(self, texts: object, ids: object = None) -> Any:
        """Return the outcome of a text, or those of several; of several variables, part → outcomes.

        A text that cannot be labelled raises nothing: its outcome has no label, and a reason.

        Args:
            texts: A text; or several, in a list, a column, a data frame, another table or the `Path` of a file.
            ids: What the outcomes call the texts; by default the column `id` of a table, or numbers from 1.
        """
        items, labelled = self._items(texts, ids), dict[str, list[Outcome]]()
        for part in self.book.parts:
            chunks = (_outcomes(self._opened(part).label(some), some) for some in _chunks(items))
            labelled[part] = [outcome for outcomes in chunks for outcome in outcomes]
        return self._shaped(labelled, texts)

    def _shaped(self, labelled: Mapping[str, Sequence[Outcome]], texts: object) -> Any:
        """Return outcomes as they are wanted: all variables by name, or those of the only one, or one alone."""
        if self.book.named:
            return {part: Outcomes(outcomes) for part, outcomes in labelled.items()}
        return labelled[""][0] if isinstance(texts, str) else Outcomes(labelled[""])

    @overload
    async def alabel(self, texts: str) -> Outcome: ...  # type: ignore[overload-overlap]  # likewise
    @overload
    async def alabel(self, texts: object, ids: object = None) -> Outcomes: ...
    async def alabel(self, texts: object, ids: object = None) -> Any:
        """Async version of `label`; tasks that label at the same time share models, budget and pace."""
        items, labelled = self._items(texts, ids), dict[str, list[Outcome]]()
        for part in self.book.parts:
            labelled[part] = []
            for some in _chunks(items):
                engine = await run_in_thread(partial(self._opened, part))
                labelled[part] += _outcomes(await engine.alabel(some), some)
        return self._shaped(labelled, texts)

    def _items(self, texts: object, ids: object = None) -> Sequence[Item]:
        items = items_of([texts] if isinstance(texts, str) else texts, self._text_column)
        if ids is None:
            return items
        names = values_of(ids, "ids")
        if len(names) != len(items):
            raise TableError(f"there are {len(items)} texts and {len(names)} ids: give one id per text")
        return [replace(item, id=str(name)) for name, item in zip(names, items, strict=True)]

    @cached_property
    def _text_column(self) -> str | None:
        pair = Run.of(next(iter(self.book.parts.values()))).config.data.pair
        return self.options.text_column or PAIR_SIGN.join(pair) or None

    def label_table(self, table: object, text_column: str | None = None) -> pa.Table:
        """Return the same rows in the same order, with more columns: what the run says about each text.

        The new columns are those of `labels.csv` (`pcs_label`, `pcs_confidence`, …) and `pcs_error`, which says why a
        row has no label and is null otherwise. A column of the table with such a name becomes `input_<name>`. A row
        that cannot be labelled raises nothing, whether its text is missing, too long or refused, the budget is spent,
        or a model does not answer.

        Args:
            table: The rows: a pandas, polars or Arrow table, a dict of columns, a list of texts or a path.
            text_column: The column of texts; by default that of the options, or one with a usual name.

        Raises:
            UserError: No row can be labelled: there is no such column, or a key is missing.
            AccessDenied: A key or a model's name is wrong.
        """
        rows, texts = self._rows(table, text_column)
        schema = self._new_columns()
        groups = zip(*(self._groups(part, rows, texts) for part in self.book.parts), strict=True)
        chunks = _chunks([*zip(texts, groups, strict=True)])
        added = pa.concat_tables([schema.empty_table(), *(self._labelled(some, schema) for some in chunks)])
        return with_columns(rows, columns_of(added), self._our_names())

    def _rows(self, table: object, text_column: str | None) -> tuple[pa.Table, list[_Text]]:
        source = place_or_table(table)
        rows = source if isinstance(source, pa.Table) else as_arrow(source)
        used = find_columns(columns_of(rows), "the table", Columns(text=text_column or self._text_column)).text
        column = rows[used] if used in rows.column_names else pa.chunked_array([texts_in(rows, str(used))])
        return rows, _texts_of(used or "", column)

    def _groups(self, part: str, rows: pa.Table, texts: Sequence[_Text]) -> list[str]:
        by = (self._fitted(part)["certificate"] or {"promise": {"by": ""}})["promise"]["by"]
        return groups_of(by, rows, [text for text, _ in texts]) or [""] * len(texts)

    def _our_names(self) -> Collection[str]:
        return self._new_columns().names if self.book.named else result_names(self.labels)

    def label_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of `label_table` for tables with this schema; engines may ask for it beforehand."""
        added = columns_of(self._new_columns().empty_table())
        return with_columns(schema.empty_table(), added, self._our_names()).schema

    @cached_property
    def _part_schemas(self) -> dict[str, pa.Schema]:
        return {part: self._schema_of(part) for part in self.book.parts}

    def _new_columns(self) -> pa.Schema:
        """Return the columns that `label_table` adds; known from the folder, without opening models."""
        empty = {part: columns_of(schema.empty_table()) for part, schema in self._part_schemas.items()}
        sets = whole_sets(self.book.variables, {part: [] for part in empty}, lambda _: WholeSets())
        columns = book_columns(self.book.variables, empty, sets)
        return pa.table({**columns, ERROR: pa.array([], pa.string())}).schema

    def _schema_of(self, part: str) -> pa.Schema:
        fitted = self._fitted(part)
        kind, sets = (fitted.get("shape") or {}).get("kind"), fitted.get("sets")
        probable = bool(fitted.get("calibrator"))
        ordered = {"scale": (WITHIN_ONE, LOW, HIGH), "number": (LOW, HIGH)} if sets else {}
        details = {**ordered, "tree": (LEVEL,)}.get(str(kind), ())
        listed = bool(sets) and kind not in ("scale", "number")
        labels = Run.of(self.book.parts[part]).config.task.labels
        final = fitted["weights"]["diagnostics"]["gold_rows"] > 0
        return result_schema(labels, probable=probable, sets=listed, details=details, final=final)

    def _fitted(self, part: str) -> Mapping[str, Any]:
        return read_json(self.book.parts[part].model, REFIT)

    def _labelled(self, texts: Sequence[tuple[_Text, tuple[str, ...]]], schema: pa.Schema) -> pa.Table:
        items = [Item(id=str(row), text=text) for row, ((text, _), _) in enumerate(texts)]
        why: list[str | None] = [None] * len(items)
        by_part, outcomes = dict[str, ResultColumns](), dict[str, list[Outcome]]()
        for at, (part, part_schema) in enumerate(self._part_schemas.items()):
            answered = self._opened(part).label(items, [groups[at] for _, groups in texts])
            title = f"{part}: " if part else ""
            reasons = zip(why, texts, answered.why, strict=True)
            why = [said or (reason and (error or f"{title}{reason}")) for said, ((_, error), _), reason in reasons]
            columns: ResultColumns = {}
            if answered.votes is not None and answered.judged is not None:
                columns = result_columns(answered.model, answered.votes, answered.judged)
            nulls = {column.name: pa.nulls(len(items), column.type) for column in part_schema}
            by_part[part] = {name: columns.get(name, none) for name, none in nulls.items()}
            outcomes[part] = _outcomes(answered._replace(model=replace(answered.model, gold_labels=None)), items)
        added = book_columns(self.book.variables, by_part, whole_sets(self.book.variables, outcomes, self._learned))
        added[ERROR] = pa.array(why, pa.string())
        return pa.table([added[column.name].cast(column.type) for column in schema], schema=schema)

    def _learned(self, parts: Sequence[str]) -> WholeSets:
        """Return what was learned about all labels of a variable together; it is read once."""
        if parts[0] not in self._sets:
            fitted = [self._opened(part).fitted for part in parts]
            self._sets[parts[0]] = sets_in_force([run.folder for run in fitted], [run.frugal for run in fitted])
        return self._sets[parts[0]]

    def _opened(self, part: str) -> RunEngine:
        with self._opening:
            engine = self._engines.get(part)
            # threads do not survive a fork, and connections must not be shared after one
            if engine is None or engine.process != os.getpid():
                engine = self._engines[part] = RunEngine.open(self.book.parts[part].home, self.options)
                weakref.finalize(self, engine.close)
            return engine


def _chunks(things: Sequence[T]) -> Iterator[Sequence[T]]:
    return (things[at : at + MOST_ROWS] for at in range(0, len(things), MOST_ROWS))


_OF_THIS_PROCESS: dict[bytes, LoadedRun] = {}


def _of_this_process(folder: Path, options: LoadOptions) -> LoadedRun:
    """Return the same loaded run for the same folder and options: engines unpickle it for every batch."""
    objects = options.own  # functions cannot always be pickled
    key = pickle.dumps((folder, replace(options, own=OwnObjects()), [*objects.models], [*objects.relations]))
    return _OF_THIS_PROCESS.setdefault(key, LoadedRun(folder, options))


def _texts_of(name: str, column: pa.ChunkedArray) -> list[_Text]:
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        column = text_column(name, column)
    try:
        return [*map(_decoded, column.to_pylist())]
    except UnicodeDecodeError:  # Arrow takes the word of other programs for what is UTF-8
        return [*map(_decoded, column.cast(pa.large_binary()).to_pylist())]


def _decoded(value: str | bytes | None) -> _Text:
    try:
        text = value.decode() if isinstance(value, bytes) else value or ""
    except UnicodeDecodeError:
        return ("", NOT_TEXT)
    return (text, "") if text.strip() else ("", NO_TEXT)


def _outcomes(answered: LabelledTexts, items: Sequence[Item]) -> list[Outcome]:
    if answered.votes is None:
        return [
            Outcome(id=item.id, label=None, scores={}, confidence=None, decision="review", reason=why or "")
            for item, why in zip(items, answered.why, strict=True)
        ]
    judged = answered.model.judge(answered.votes, answered.judged)
    return [
        outcome if why is None or outcome.label else replace(outcome, reason=why if item.text.strip() else NO_TEXT)
        for item, outcome, why in zip(items, judged, answered.why, strict=True)
    ]
