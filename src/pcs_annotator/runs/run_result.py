"""The result of a run: votes, what was learned, outcomes, counts and costs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.display import Columns, Frame, Page, html_table
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.arrays import CODE, Codes, Mask
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.events import Reviewed
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes, labels_of_texts, settled
from pcs_annotator.core.identity import same_texts
from pcs_annotator.core.outcome import FINAL_LABEL, LABEL, Counts, Outcome, result_names
from pcs_annotator.core.variant import VariantCount
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.relations.language import LIMITS
from pcs_annotator.relations.limits import MANY
from pcs_annotator.runs.certificate_text import promised, without_gold
from pcs_annotator.runs.columns import result_columns, with_columns
from pcs_annotator.runs.drawing import HandedOut
from pcs_annotator.runs.learn import Learned, counted_once
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.paths import RunFolder, WholeTable
from pcs_annotator.runs.review_state import ReviewVerdicts
from pcs_annotator.runs.settings import Config
from pcs_annotator.tables import chunks
from pcs_annotator.tables.arrow import pa

__all__ = ["SILENCES", "Certificate", "Model", "RunResult"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Facts:
    """What findings are made from."""

    votes: Votes  # those of annotators that were asked for a label only
    outcomes: Sequence[Outcome]  # the label of every item
    gold: Sequence[str | None]  # the gold label of every item or None; empty if none has one
    learned: Learned  # the model, and its figures
    rewrites: Sequence[VariantCount] = ()  # how rewrites ended, per relation and reason; empty if that is unknown
    cut: Mapping[str, int] = field(default_factory=dict)  # annotator → texts that did not fit into its model's context
    texts: Sequence[str] | None = None  # the text of every item; None if unknown
    random_sample: Mask | None = None  # which gold rows were drawn at random or may be assumed to be; None for all
    candidates: str = ""  # how many labels each text was asked about; empty if it was all of them

    @cached_property
    def gold_codes(self) -> Codes:
        """The gold labels that are known, one for every text, as positions in the labels."""
        return self._gold_codes(None)

    @cached_property
    def random_gold_codes(self) -> Codes:
        """Those of rows drawn at random, which tell how common labels are."""
        return self._gold_codes(self.random_sample)

    @cached_property
    def language_limits(self) -> dict[str, int]:
        """Relation → texts to which it did not apply because of their language, where these are many."""
        counts = Counter[str]()
        for count in self.rewrites:
            if count.status == "not_applicable" and count.reason.endswith(LIMITS):
                counts[count.relation] += count.times
        return {name: times for name, times in counts.items() if times > MANY * len(self.votes)}

    def _gold_codes(self, among: Mask | None) -> Codes:
        codes = gold_codes(self.votes, self.gold or [None] * len(self.votes))
        codes = codes if among is None else np.where(among, codes, UNLABELLED).astype(CODE)
        return codes[(codes != UNLABELLED) & counted_once(self.votes, codes, self.texts).distinct]

    @property
    def label_counts(self) -> Counter[str]:
        """How often each label was given, every text counted once."""
        nothing = np.full(len(self.votes), UNLABELLED, dtype=CODE)
        counted = counted_once(self.votes, nothing, self.texts).distinct.tolist()
        pairs = zip(self.outcomes, counted, strict=True)
        return Counter(outcome.leaf for outcome, counts in pairs if counts and outcome.leaf is not None)


def percent(share: float) -> str:
    """Return a share as text."""
    return f"{100 * share:.0f} %"


SILENCES = {  # kinds of missing votes
    "not_applicable": "rewrites did not apply",
    "rejected": "rewrites were rejected by a check",
    "unreadable": "answers were unreadable",
}


@dataclass(frozen=True, kw_only=True)
class RunResult(Facts, Frame):
    """The result of a run; `to_pandas()` and `to_polars()` give `labels.csv`, of a large table a sample's rows.

    Attributes:
        folder: The run folder.
        config: The complete settings.
        dataset: The texts; its gold includes labels that people added after the run.
        tally: Counts of calls, answers and failures.
        bills: The cost of all calls that commands in this folder made, per model; with a shared ledger, `used`.
        used: The cost of all answers behind the votes, also of those that others paid for in a shared ledger.
        seconds: The duration of each step.
    """

    folder: RunFolder
    config: Config
    dataset: chunks.Dataset
    tally: Tally
    bills: Sequence[Bill]
    used: Sequence[Bill] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    unreadable: Mapping[str, int] = field(default_factory=dict)  # reasons why answers have no label
    hard: Mapping[str, int] = field(default_factory=dict)  # reasons why answers that should be graded count as hard
    bounded: int = 0  # answers in which a label that the server did not list may have more than 1 %
    to_label: HandedOut | None = None  # rows written for a person to label; None when the run was only opened
    verdicts: ReviewVerdicts = field(default_factory=ReviewVerdicts)  # what people said in a review
    gold_with_shown: Sequence[str | None] = ()  # gold with that of rows in prompts, if there are some
    assumed: Mask | None = None  # which rows of the random sample came with the data; None for all
    whole: WholeTable | None = None  # about all rows of a large table, of which all else is about a sample
    own: OwnObjects = field(default_factory=OwnObjects, repr=False)  # models and relations that were given as objects
    plotter: "Callable[[RunResult, str], Any] | None" = field(default=None, repr=False)  # draws its charts

    @property
    def model(self) -> Model:
        """What was learned: weights, calibrator and certificate."""
        return self.learned.model

    @property
    def weights(self) -> Weights:
        """The weight of every annotator and every relation."""
        return self.model.weights

    @property
    def certificate(self) -> Certificate | None:
        """What is promised about accepted labels, or why nothing is; None if no promise was requested."""
        return self.model.certificate

    def report(self) -> Page:
        """Return the page of the run, which a notebook shows."""
        return Page(self.folder.report)

    def plot(self, kind: str = "risk") -> Any:
        """Return a chart on held-out gold rows, which a notebook shows and `save("chart.svg")` writes.

        Args:
            kind: `risk` (error against coverage), `calibration`, `roc` or `confusion`.
        """
        if self.plotter is None:
            raise ConfigError("this result has no charts: load the run with pcs_annotator.load_run")
        return self.plotter(self, kind)

    def columns(self, people: Sequence[Reviewed | None]) -> dict[str, pa.Array]:
        """Return the columns of results, with those of `people` who have reviewed rows."""
        model, votes = self.labelling, self.votes
        return result_columns(model, votes, model.judged(votes), people, self.all_gold)

    def labels_table(self) -> pa.Table:
        """Return the user's columns with those of results, as `labels.csv` of a run with one variable has them."""
        people = self.verdicts.by_place(len(self.votes))
        return with_columns(self.dataset.table, self.columns(people), result_names(self.votes.labels))

    def _columns(self) -> Columns:
        return self.labels_table().to_pydict()

    def __repr__(self) -> str:
        counts = self.counts
        return f"{type(self).__name__}({str(self.folder.home)!r}, {counts.rows:,} rows, {self._decided()})"

    def _repr_html_(self) -> str:
        counts = self.counts
        promise = "no promise was requested" if self.certificate is None else promised(self.certificate).headline
        rows = ((label, rows, rows / counts.rows) for label, rows in counts.labels.items())
        note = f"{promise if self.gold else without_gold(counts).headline} · report: {self.folder.report}"
        return html_table(f"{counts.rows:,} rows · {self._decided()}", ("label", "rows", "share"), rows, note)

    def _decided(self) -> str:
        decisions = self.counts.decisions.items()
        return " · ".join(f"{rows:,} {decision}" for decision, rows in decisions) or "no decisions"

    @cached_property
    def counts(self) -> Counts:
        """How many rows have which label, of all rows."""
        if self.whole is not None:  # it knows the copies of gold texts, and the sample has all rows with gold
            gold_rows = self.settled & np.array([label is not None for label in self.all_gold])
            return self.whole.counts.plus(Counts(settled=int(gold_rows.sum())))
        return Counts.of(self.outcomes, self.texts or (), int(self.settled.sum()))

    @cached_property
    def settled(self) -> Mask:
        """Which of the rows left for review have gold, or a text that people have labelled."""
        review = np.array([outcome.decision == "review" for outcome in self.outcomes], dtype=np.bool_)
        return review & settled(same_texts([item.text for item in self.dataset.items]), self._all_gold_codes)

    @property
    def all_gold(self) -> Sequence[str | None]:
        """The gold label of every row, or None."""
        return self.gold_with_shown or self.gold or [None] * len(self.votes)

    @property
    def label_column(self) -> str:
        """The column of `labels.csv` to use."""
        return FINAL_LABEL if any(self.all_gold) else LABEL

    @property
    def labelling(self) -> Model:
        """The model with the gold labels of the run's texts, if there are any, for copies of them."""
        texts = [item.text for item in self.dataset.items]
        return replace(self.model, gold_labels=labels_of_texts(texts, self._all_gold_codes, self.votes.labels))

    @cached_property
    def _all_gold_codes(self) -> Codes:
        return gold_codes(self.votes, self.all_gold)

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return self.counts.unlabelled

    @property
    def silences(self) -> Mapping[str, Mapping[str, int]]:
        """Why votes are missing: kind of silence → reason → how often."""
        kinds: dict[str, Counter[str]] = {kind: Counter() for kind in SILENCES}
        for count in self.rewrites:
            if count.status in kinds:
                kinds[count.status][f"{count.relation}: {count.reason}"] += count.times
        return {**kinds, "unreadable": self.unreadable}
