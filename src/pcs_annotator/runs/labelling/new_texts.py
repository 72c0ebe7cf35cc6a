"""New texts for a fitted run: a table in memory, or a stream that is labelled in chunks."""

from __future__ import annotations

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
from pcs_annotator.judging.model import Model
from pcs_annotator.runs.executors import ask_job
from pcs_annotator.runs.files.runs import keep_earlier
from pcs_annotator.runs.labelling.fitted import FittedRun, job_of
from pcs_annotator.runs.labelling.label_files import note_written, refuse_in_the_way, style_of
from pcs_annotator.runs.labelling.rows import OutFiles, RowMaker, RowWriter, joined, label_all
from pcs_annotator.runs.labelling.run_table import data_hash_of, is_large
from pcs_annotator.runs.labelling.sampling import sampled_rows
from pcs_annotator.runs.labelling.whole import with_counted_coverage
from pcs_annotator.runs.run_folder import Recorded
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.tables import tables
from pcs_annotator.tables.table_files import STDIO
from pcs_annotator.tables.table_stream import TableStream


def without_gold(request: RunRequest) -> RunRequest:
    """Return the request for new texts: they need no gold column, even if the settings name one for the run's data."""
    config = request.config
    return replace(request, config=replace(config, data=replace(config.data, gold_column="")))


def open_texts(request: RunRequest, out: Path | str | None) -> TextsInMemory | TextsInStream:
    """Open new texts, and say where their labels go; None for nowhere."""
    request = without_gold(request)
    stream = request.open_data()
    if not is_large(stream):
        return TextsInMemory(request, stream, out)
    if out is None:
        raise ConfigError(f"{stream.name} is too large to be labelled in memory: name a file with out=…")
    return TextsInStream(request, stream, out)


class TextsInMemory:
    """New texts that are all in memory."""

    def __init__(self, request: RunRequest, stream: TableStream, out: Path | str | None) -> None:
        self._request, self._stream, self._out = request, stream, out
        self._dataset = request.read_data(stream)
        self._in_the_way = False

    def check(self) -> int:
        """Return the number of rows; a file of labels that must not be overwritten is an error."""
        rows = len(self._dataset.items)
        if self._out is not None:
            self._in_the_way = refuse_in_the_way(self._out, self._request, rows, self._dataset)
        return rows

    def ask(self, fitted: FittedRun) -> tuple[tables.Dataset, Votes]:
        """Ask a run about all texts; return them and the votes."""
        items = self._dataset.items
        return self._dataset, run_sync(
            partial(ask_job, fitted.job, items, fitted.ledger, fitted.settings, fitted.strategy)
        )

    def write(self, recorded: Recorded, fitted: FittedRun, votes: Votes) -> tuple[Model, Counts]:
        """Write the labels; return the model, whose promise is about these rows, and how many have which label."""
        model, out = fitted.model.with_coverage(votes), self._out
        rows = RowMaker(model=model).rows(self._dataset, votes)
        if out is not None:
            if self._in_the_way:
                self._request.say(f"{out} is kept as {keep_earlier(out)}")
            tables.write_table(out, rows.labels, style_of(self._request, self._stream, out, model))
            note_written(recorded.folder, out)
        return model, rows.counts


class TextsInStream:
    """New texts of a table that is larger than memory.

    Labels are written while asking, as if the texts were like those of the run. Whether they are is looked for in a
    sample. If they are not, the table is gone through once more for other decisions, with the answers in the ledger.
    """

    def __init__(self, request: RunRequest, stream: TableStream, out: Path | str) -> None:
        self._request, self._stream, self._out = request, stream, out
        self._rows, self._data, self._in_the_way = 0, "", False
        self._first: tuple[Model, Counts] | None = None

    def check(self) -> int:
        """Return the number of rows; a file of labels that must not be overwritten is an error."""
        self._rows, self._data = self._stream.check_ids(), data_hash_of(self._stream)
        self._in_the_way = refuse_in_the_way(self._out, self._request, self._rows, self._data)
        return self._rows

    def ask(self, fitted: FittedRun) -> tuple[tables.Dataset, Votes]:
        """Ask a run about all texts, and write labels; return a sample of the texts, and the votes on it."""
        out = self._out
        if self._in_the_way:
            self._request.say(f"{out} is kept as {keep_earlier(out)}")
        if out == STDIO and fitted.on_drift == "review":  # what is on standard output cannot be taken back
            with TemporaryDirectory() as scratch:
                written = self._write(fitted, Path(scratch, "labels.csv"))
        else:
            written = self._write(fitted, out)
            self._first = fitted.model, written.counts
        return joined(written.sample)

    def write(self, recorded: Recorded, fitted: FittedRun, votes: Votes) -> tuple[Model, Counts]:
        """Write other labels if the model is another now; return it, and how many rows have which label."""
        if self._first is None or self._first[0] is not fitted.model:
            settings = replace(
                fitted.settings, tally=Tally(), budget=Budget(calls=0), batches=None, cluster=None, progress=False
            )
            again = replace(fitted, job=job_of(recorded, settings), settings=settings)
            self._first = fitted.model, self._write(again, self._out).counts
        model, counts = self._first
        note_written(recorded.folder, self._out, self._data)
        return with_counted_coverage(model, counts), counts

    def _write(self, fitted: FittedRun, to: Path | str) -> RowWriter:
        maker = RowMaker(model=fitted.model, is_sampled=partial(sampled_rows, of=self._rows))
        files = OutFiles(to, None, style_of(self._request, self._stream, self._out, fitted.model))
        return label_all(self._stream, self._data, fitted, maker, files)
