"""`pcs label`: labels new texts with a fitted run, asking only the questions that the labels need."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pcs_annotator.asking.engine.progress import Tally, bills_of
from pcs_annotator.base.display import Columns, Frame
from pcs_annotator.base.errors import DriftFound
from pcs_annotator.base.text import counted
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.outcome import FINAL_LABEL, LABEL, Counts, Outcomes, result_names
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.early_stop import Frugal
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.drift import Drift
from pcs_annotator.judging.promise.sets import SetResult, WholeSets
from pcs_annotator.runs import ask, learn, ledgers
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.book_result import book_columns, sets_in_force, whole_sets
from pcs_annotator.runs.columns import result_columns, with_columns
from pcs_annotator.runs.labeller import FittedRun, LoadOptions, open_fitted
from pcs_annotator.runs.ledgers import refuse_lost_ledger
from pcs_annotator.runs.new_texts import NewTexts, output_policy, without_gold
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Saving
from pcs_annotator.runs.watch import Watch
from pcs_annotator.tables import chunks
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.files import check_ending, has_wildcards
from pcs_annotator.tables.find import table_stem
from pcs_annotator.tables.source_files import STDIO
from pcs_annotator.tables.write import WRITTEN

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
    """Ask the models of a fitted run about new texts and label them; of `request.config`, only columns are used.

    A file that exists is an error; with `request.replace`, it is kept under a dated name. Without `out`, no file is
    written.
    """
    book, saving = Book.open(request.folder), saving or Saving()
    if out is not None and out != STDIO:
        check_ending(out, WRITTEN)
    if not book.named:  # of a large table, labels are written while asking
        return LabelledBook(book=book, results={"": _label(request, book.parts[""], out, saving)})
    policy = output_policy(request, without_gold(request, ()).open_data(), out)
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
    texts = NewTexts(request, out, config.data.pair)
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
