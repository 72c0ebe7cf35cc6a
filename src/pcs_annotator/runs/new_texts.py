"""New texts for a fitted run, in memory or labelled in chunks; the files of labels."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.outcome import Counts
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Predictions
from pcs_annotator.runs.columns import check_column, groups_of
from pcs_annotator.runs.executors import ask_job
from pcs_annotator.runs.label_table import RowWriter, label_all, with_counted_coverage
from pcs_annotator.runs.labeller import FittedRun, job_of
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.run_table import data_hash_of, is_large, joined
from pcs_annotator.runs.stream import Stream
from pcs_annotator.tables import chunks
from pcs_annotator.tables.chunks import TableStream
from pcs_annotator.tables.source_files import STDIO, WORKBOOK, Dialect, name_parts
from pcs_annotator.tables.workbook import refuse_too_many_rows
from pcs_annotator.tables.write import OutputPolicy


def without_gold(request: RunRequest, pair: tuple[str, ...]) -> RunRequest:
    """Return the request for new texts: they need no gold column, even if the settings name one for the run's data.

    Pairs are in columns that are called as in the run, if others are not named.
    """
    config = request.config
    data = replace(config.data, gold_column="", coders=(), pair=config.data.pair or pair)
    return replace(request, config=replace(config, data=data))


class NewTexts:
    """New texts, and where their labels go; None for nowhere.

    A small table is in memory: it is asked about, then written. The labels of a larger one are written while asking;
    if a sample then differs from the run's texts, it is gone through once more, with the answers in the ledger.
    """

    def __init__(self, request: RunRequest, out: Path | None, pair: tuple[str, ...] = ()) -> None:
        self._request, self._out = without_gold(request, pair), out
        self._stream = stream = self._request.open_data()
        self._all = None if is_large(stream) else stream.read()
        if self._all is None and out is None:
            raise ConfigError(f"{stream.name} is too large to be labelled in memory: name a file with out=…")
        self._rows, self._data, self._policy = 0, "", output_policy(self._request, stream, out)
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
        """Write labels, unless that is done; return the model, whose promise is about these rows, and counts of them.

        Those of a large table are written again if the model is another now.
        """
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


def output_policy(request: RunRequest, stream: TableStream, out: Path | None) -> OutputPolicy:
    """Return how a file of labels may be written: a CSV file like the data."""
    dialect = stream.dialect or Dialect()
    if dialect.delimiter == "\t" and name_parts(stream.name).suffix.lower() != name_parts(str(out)).suffix.lower():
        dialect = replace(dialect, delimiter=",")  # the tabs of .tsv are not expected in .csv
    safe = request.spreadsheet_safe
    return OutputPolicy(replace=request.replace, dialect=dialect, spreadsheet_safe=safe, kind=request.format)
