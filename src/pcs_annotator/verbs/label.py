"""`pcs label`: labels new texts with a fitted run, asking only the questions that the labels need."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.progress import Tally, bills_of
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.display import Columns, Frame
from pcs_annotator.base.errors import ConfigError, DriftFound
from pcs_annotator.base.text import counted
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.outcome import FINAL_LABEL, LABEL, Counts, Outcomes, result_names
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.early_stop import Frugal
from pcs_annotator.judging.model import Model, Predictions
from pcs_annotator.judging.promise.drift import Drift
from pcs_annotator.judging.promise.sets import SetResult, WholeSets
from pcs_annotator.runs import ask, learn, ledgers
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.book_result import book_columns, sets_in_force, whole_sets
from pcs_annotator.runs.columns import check_column, groups_of, result_columns, with_columns
from pcs_annotator.runs.executors import ask_job
from pcs_annotator.runs.label_table import RowWriter, label_all, with_counted_coverage
from pcs_annotator.runs.labeller import FittedRun, LoadOptions, job_of, open_fitted
from pcs_annotator.runs.ledgers import refuse_lost_ledger
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_table import data_hash_of, is_large, joined
from pcs_annotator.runs.settings import Saving
from pcs_annotator.runs.stream import Stream
from pcs_annotator.runs.watch import Watch
from pcs_annotator.tables import chunks
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.chunks import TableStream
from pcs_annotator.tables.files import check_ending, has_wildcards
from pcs_annotator.tables.find import table_stem
from pcs_annotator.tables.source_files import STDIO, WORKBOOK, Dialect, name_parts
from pcs_annotator.tables.workbook import refuse_too_many_rows
from pcs_annotator.tables.write import WRITTEN, OutputPolicy

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Labelled(Frame):
    """New texts with labels from a fitted run; `to_pandas()` and `to_polars()` give them as rows."""

    dataset: chunks.Dataset  # the texts
    votes: Votes  # the votes on them
    outcomes: Outcomes  # a label for every text
    tally: Tally  # counts of calls, answers and failures
    out: Path | None  # the file with the labels; None if none was written
    model: Model  # the model that judged them; its certificate is about these texts
    counts: Counts  # how many rows have which label; texts, votes and outcomes of a large table are those of a sample
    frugal: Frugal | None = None  # how questions were saved; None when everything was asked
    drift: Drift | None = None  # whether answers differ from the run's; None when it kept nothing to compare with
    bills: Sequence[Bill] = ()  # what was paid for these labels now

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return self.counts.unlabelled

    @property
    def label_column(self) -> str:
        """The column of the file to use."""
        return FINAL_LABEL if self.model.gold_labels else LABEL

    def model_columns(self) -> dict[str, pa.Array]:
        """Return the columns of results."""
        return result_columns(self.model, self.votes, self.model.judged(self.votes))

    def _about(self) -> str:
        decided = [f"{rows:,} {decision}" for decision, rows in self.counts.decisions.items()]
        return " · ".join([counted(self.counts.rows, "row"), *decided, *([] if self.out is None else [str(self.out)])])

    def _columns(self) -> Columns:
        ours = result_names(self.votes.labels)
        return with_columns(self.dataset.table, self.model_columns(), ours).to_pydict()


def default_out(data: Path | str) -> Path:
    """Return the default output file for the labels of a table: beside it, or in this folder if it is elsewhere."""
    name = f"{table_stem(data)}-labels.csv"
    if isinstance(data, str):
        return Path(name)
    return next((path for path in (data, *data.parents) if not has_wildcards(path.name)), data).parent / name


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledBook:
    """New texts with labels of all variables of a run."""

    book: Book
    results: Mapping[str, Labelled]  # part → its labels
    sets: Mapping[str, SetResult] = field(default_factory=dict)  # variable → all labels of a text together

    @property
    def only(self) -> Labelled:
        """The labels of the only variable."""
        (labelled,) = self.results.values()
        return labelled


def label(request: RunRequest, out: Path | None, saving: Saving | None = None) -> LabelledBook:
    """Label new texts with a fitted run, and write them if `out` is given; `request.config` only has columns."""
    book, saving = Book.open(request.folder), saving or Saving()
    if out is not None and out != STDIO:
        check_ending(out, WRITTEN)
    if not book.named:  # of a large table, labels are written while asking
        return LabelledBook(book=book, results={"": _label(request, book.parts[""], out, saving)})
    policy = _output_policy(request, _without_gold(request, ()).open_data(), out)
    if out is not None:
        policy.check(out)
    results = {name: _label(request, folder, None, saving) for name, folder in book.parts.items()}

    def learned(parts: Sequence[str]) -> WholeSets:
        return sets_in_force([book.parts[part] for part in parts], [results[part].frugal for part in parts])

    models = {name: replace(labelled.model, gold_labels=None) for name, labelled in results.items()}
    outcomes = {name: [*model.judge(results[name].votes)] for name, model in models.items()}
    sets = whole_sets(book.variables, outcomes, learned)
    if out is not None:
        added = book_columns(book.variables, {part: each.model_columns() for part, each in results.items()}, sets)
        if kept := policy.make_way(out):
            request.say(f"{out} is kept as {kept}")
        policy.write_table(out, with_columns(next(iter(results.values())).dataset.table, added, added))
    return LabelledBook(book=book, results={part: replace(each, out=out) for part, each in results.items()}, sets=sets)


def _label(request: RunRequest, folder: RunFolder, out: Path | None, saving: Saving) -> Labelled:
    config = Run.of(folder, request.config.ask.ledger).config
    texts = _NewTexts(request, out, config.data.pair)
    ledgers.check_ledger(config)
    refuse_lost_ledger(folder, config)
    tally = Tally()
    watch = Watch(folder, f"label {request.data_name}", tally)
    with ledgers.lock_run(folder, ledgers.ledger_of(folder, config), wait=request.wait, say=request.say), watch:
        recorded = Run.of(folder, request.config.ask.ledger)
        tally.rows_expected = texts.check()
        opened = _opened(replace(request, follow=watch.begin()), recorded, saving, tally)
        dataset, votes = texts.ask(opened)
        drift = learn.check_drift(opened.model, votes, [item.text for item in dataset.items])
        if saving.on_drift == "fail" and drift is not None and drift.found:
            raise DriftFound(f"{opened.texts_differ(drift, request.data)}\nno labels were written (--on-drift fail)")
        opened.warn_if_unlike(drift, request.data)
        if drift is not None and drift.found:
            watch.note = lambda: drift.sentence
        model = opened.model.facing(drift, saving.on_drift)
        model, counts = texts.write(recorded, replace(opened, model=model), votes)
    request.paid.add(tally)
    _LOG.info("%d texts labelled: %s, %d calls", counts.rows, counts.decisions, tally.calls)
    return Labelled(
        dataset=dataset,
        votes=votes,
        outcomes=Outcomes(model.judge(votes)),
        tally=tally,
        out=out,
        model=model,
        counts=counts,
        frugal=opened.frugal,
        drift=drift,
        bills=tuple(bills_of(tally.paid, ask.pricing(opened.settings.prices))),
    )


def _opened(request: RunRequest, recorded: Run, saving: Saving, tally: Tally) -> FittedRun:
    opened = open_fitted(recorded, LoadOptions(saving=saving, environment=request.environment, own=request.own))
    batches = request.batches(saving.executor or recorded.config.ask.executor)
    settings = replace(opened.settings, progress=request.progress, follow=request.follow, tally=tally, batches=batches)
    return replace(opened, settings=replace(settings, budget=settings.budget.after(*request.paid.spent)))


def _without_gold(request: RunRequest, pair: tuple[str, ...]) -> RunRequest:
    """Return the request for new texts: they need no gold column, and pairs are in columns called as in the run."""
    config = request.config
    data = replace(config.data, gold_column="", coders=(), pair=config.data.pair or pair)
    return replace(request, config=replace(config, data=data))


class _NewTexts:
    """New texts, and where their labels go; None for nowhere.

    A small table is in memory: it is asked about, then written. The labels of a larger one are written while asking;
    if a sample then differs from the run's texts, it is gone through once more, with the answers in the ledger.
    """

    def __init__(self, request: RunRequest, out: Path | None, pair: tuple[str, ...] = ()) -> None:
        self._request, self._out = _without_gold(request, pair), out
        self._stream = stream = self._request.open_data()
        self._all = None if is_large(stream) else stream.read()
        if self._all is None and out is None:
            raise ConfigError(f"{stream.name} is too large to be labelled in memory: name a file with out=…")
        self._rows, self._data, self._policy = 0, "", _output_policy(self._request, stream, out)
        self._first: tuple[Model, Counts] | None = None

    def check(self) -> int:
        """Return the number of rows; a file of labels that must not be overwritten is an error."""
        if self._all is None:
            self._rows, self._data = self._stream.check_ids(), data_hash_of(self._stream)
        else:
            self._rows = len(self._all.items)
        if self._out is not None:
            self._policy.check(self._out)
            if name_parts(str(self._out)).format == WORKBOOK:
                refuse_too_many_rows(self._rows, str(self._out))
        return self._rows

    def ask(self, fitted: FittedRun) -> tuple[chunks.Dataset, Votes]:
        """Ask a run about all texts; return them, or a sample of them, and the votes."""
        check_column(fitted.model.by, self._stream.schema.names, self._stream.name)
        if self._all is not None:
            rows = self._all
            asked = run_sync(lambda: ask_job(fitted.job, rows.items, fitted.ledger, fitted.settings, fitted.strategy))
            return rows, replace(asked, groups=groups_of(fitted.model.by, rows.table, asked.texts or ()))
        self._make_way()
        # what is on standard output cannot be taken back
        on_drift = fitted.saving.on_drift
        if on_drift == "fail" or (self._out == STDIO and on_drift == "review"):
            with TemporaryDirectory() as scratch:
                written = self._write_asking(fitted, Path(scratch, "labels.csv"))
        else:
            written = self._write_asking(fitted, self._out)
            self._first = fitted.model, written.counts
        parts, votes = zip(*written.sample, strict=True)
        return joined(parts), Votes.joined(votes)

    def write(self, recorded: Run, fitted: FittedRun, votes: Votes) -> tuple[Model, Counts]:
        """Write labels, unless that is done; return the model, whose promise is about these rows, and counts."""
        if self._all is not None:
            self._make_way()
            model = fitted.model.with_coverage(votes)
            with self._writer(replace(fitted, model=model), self._out) as writer:
                writer.write(self._all, votes)
            return model, writer.counts
        if self._first is None or self._first[0] is not fitted.model:
            quiet = replace(fitted.settings, progress=False, follow=None, tally=Tally(), budget=Budget(calls=0))
            settings = replace(quiet, batches=None, cluster=None)
            again = replace(fitted, job=job_of(recorded, settings), settings=settings)
            self._first = fitted.model, self._write_asking(again, self._out).counts
        return with_counted_coverage(*self._first), self._first[1]

    def _make_way(self) -> None:
        if self._out is not None and (kept := self._policy.make_way(self._out)):
            self._request.say(f"{self._out} is kept as {kept}")

    def _write_asking(self, fitted: FittedRun, to: Path | None) -> RowWriter:
        writer = replace(self._writer(fitted, to), sample_of=self._rows)
        label_all(self._stream, self._data, fitted, writer)
        return writer

    def _writer(self, fitted: FittedRun, to: Path | None) -> RowWriter:
        keep = partial(self._keep, fitted)
        return RowWriter(model=fitted.model, labels=to, policy=self._policy, keep=keep, version=fitted.version)

    def _keep(self, fitted: FittedRun, rows: chunks.Dataset, votes: Votes, model: Model, judged: Predictions) -> None:
        """Put the texts that people should see into the stream of the run, under the name of their table."""
        items = [replace(item, id=f"{rows.name}:{item.id}") for item in rows.items]
        with Stream(fitted.folder.stream) as stream:
            fitted.keep(stream, items, votes, model, judged)


def _output_policy(request: RunRequest, stream: TableStream, out: Path | None) -> OutputPolicy:
    """Return how a file of labels may be written: a CSV file like the data."""
    dialect = stream.dialect or Dialect()
    if dialect.delimiter == "\t" and name_parts(stream.name).suffix.lower() != name_parts(str(out)).suffix.lower():
        dialect = replace(dialect, delimiter=",")  # the tabs of .tsv are not expected in .csv
    safe = request.spreadsheet_safe
    return OutputPolicy(replace=request.replace, dialect=dialect, spreadsheet_safe=safe, kind=request.format)
