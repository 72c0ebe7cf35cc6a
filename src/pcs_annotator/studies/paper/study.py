"""What all experiments share: recorded votes, how figures are computed, and the tables and tests around them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric, UserError
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.result_table import Content, Pair, ResultTable, best_in_rows
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluate import methods
from pcs_annotator.judging.evaluate import scored as figures
from pcs_annotator.judging.evaluate.scored import EvaluationOptions, Scored, labelled_rows
from pcs_annotator.judging.metrics import significance
from pcs_annotator.judging.metrics.bootstrap import WIDENING
from pcs_annotator.judging.metrics.figures import Estimate

T = TypeVar("T")

LISTED_GAPS = 8
NO_TEST = "no test"
ABOUT_TESTS = (
    "p: test of the mean difference in class AUROC from resampled rows; a row moves all models and combinations on its "
    f"dataset at once, so that what they share is not counted twice. Its standard error is {WIDENING:g} times as large "
    "because other gold rows would also have learned other weights. Two-sided, with Holm's adjustment over all "
    "comparisons; stars are of this p: *** p < 0.001, ** p < 0.01, * p < 0.05. It is about new rows of these datasets, "
    "with these models: a few datasets cannot show what another one would give."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to run experiments."""

    how: EvaluationOptions = field(default_factory=EvaluationOptions)  # splits, seeds, resamples, who rewrote
    optimiser: str = "lr"  # learns the weights of PCS; the paper's is `lr`
    relations: Sequence[str] | None = None  # relations that PCS uses, of those recorded; None for all
    baselines: Sequence[methods.Method] = ()  # methods to compare with in RQ2
    # numbers of gold rows for the learning curve
    sizes: Sequence[int] = (10, 20, 30, 50, 75, 100, 150, 200, 250, 300, 400, 600, 1000)
    draws: int = 20  # random draws of gold rows for every point of that curve

    def to_dict(self) -> dict[str, Any]:
        """Return what is needed to reproduce the figures, as plain values."""
        splitting = {name: getattr(self.how, name) for name in ("folds", "repeats", "seed", "resamples")}
        return {
            **splitting,
            "optimiser": self.optimiser,
            "baselines": [methods.method_name(method) for method in self.baselines],
            "relations": None if self.relations is None else list(self.relations),
            "rewritten": sorted(self.how.rewritten),
            "gold_sizes": list(self.sizes),
            "draws_per_size": self.draws,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExperimentBench:
    """One dataset's labelled rows; caches scores, because the questions share many panels."""

    dataset: str  # its name
    votes: Votes  # all votes on the labelled rows
    plain: Votes  # those of annotators that gave plain labels, on the relations that PCS uses
    gold: Codes  # label code of every row
    settings: Settings  # how to run experiments
    _seen: dict[tuple[object, ...], Scored] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, votes: Votes, gold: Codes, settings: Settings) -> "ExperimentBench":
        """Return the labelled rows of a dataset.

        Raises:
            UndefinedMetric: There is too little gold, or there are no votes.
        """
        votes, gold = labelled_rows(votes, gold, settings.how.folds)
        wanted = settings.relations
        relations = [one for one in votes.relations if wanted is None or one in wanted]
        plain = votes.plain().select(relations=relations)
        methods.original_of(plain)  # raises for an empty panel
        return cls(dataset=name, votes=votes, plain=plain, gold=gold, settings=settings)

    def on_cells(
        self, optimiser: str, annotators: Sequence[str], relations: Sequence[str] | None = None, *, hard: bool = False
    ) -> Scored:
        """Return the results of an optimiser on the first draw of some cells, or on their labels alone."""
        key = (optimiser, tuple(annotators), tuple(relations or self.plain.relations), hard)
        if key not in self._seen:
            part = self.plain.select(annotators=annotators, relations=relations, draws=1)
            if part.silent.all():
                where = f" on {', '.join(relations)}" if relations else ""
                raise UndefinedMetric(f"{self.dataset}: {' + '.join(annotators)} never gave a label{where}")
            method = methods.OnCells(name=optimiser, optimiser=optimiser, annotators=annotators, hard=hard)
            self._seen[key] = self.score(method, part)
        return self._seen[key]

    def score(self, method: methods.Method, votes: Votes | None = None) -> Scored:
        """Return the results of a method on all votes, or on those given."""
        how = self.settings.how
        entrant = methods.ready(method, self.votes if votes is None else votes, how.rewritten)
        return Scored.of(entrant, self.gold, how, self.dataset)

    def pcs(self, notes: list[str], annotators: Sequence[str], optimiser: str = "") -> Scored | None:
        """Return the results of PCS, or of another optimiser, on all relations; if undefined, None and a note why."""
        return attempt(notes, lambda: self.on_cells(optimiser or self.settings.optimiser, annotators))

    def alone(self, notes: list[str], annotators: Sequence[str], relation: str = "") -> Scored | None:
        """Return those of the share of labels on one relation, by default the unchanged text; None as in `pcs`."""
        views = [relation or self.original]
        return attempt(notes, lambda: self.on_cells("uniform", annotators, views, hard=True))

    @property
    def original(self) -> str:
        """The relation that stands for the unchanged text."""
        return methods.original_of(self.plain)

    def gaps(self) -> list[str]:
        """Return which models have no votes on which relations."""
        missing: Mask = np.asarray((self.plain.codes < 0).all(axis=(0, 3)))
        names = np.array(self.plain.relations, dtype=object)
        return [
            f"{self.dataset}: {annotator} has no votes on {', '.join(names[gone])}."
            for annotator, gone in zip(self.plain.annotators, missing, strict=True)
            if gone.any()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """Datasets prepared for the paper's experiments, and the notes about them."""

    benches: Sequence[ExperimentBench]  # datasets that can be evaluated
    refused: Mapping[str, str]  # dataset → why it cannot be
    settings: Settings  # how to run experiments

    @classmethod
    def of(cls, sets: Mapping[str, tuple[Votes, Codes]], settings: Settings | None = None) -> "Replication":
        """Return some recorded votes, prepared; datasets with too little gold go into `refused`."""
        settings = settings or Settings()
        benches, refused = [], {}
        for name, (votes, gold) in sets.items():
            try:
                benches.append(ExperimentBench.of(name, votes, gold, settings))
            except UserError as error:
                refused[name] = str(error)
        return cls(benches=benches, refused=refused, settings=settings)

    def notes(self) -> list[str]:
        """Return how figures were computed, on how many rows, and what was missing."""
        how = self.settings.how
        sizes = ", ".join(f"{bench.dataset} {len(bench.gold)}" for bench in self.benches) or "none"
        return [
            f"Class AUROC: macro one-vs-rest, scores learned on other folds ({how.folds}-fold stratified "
            f"cross-validation), mean over {how.repeats or 'up to 3'} random splits; weights by "
            f"{self.settings.optimiser}. Rows: {sizes}.",
            figures.about_intervals(how.resamples),
            *self.trouble(),
        ]

    def trouble(self) -> list[str]:
        """Return what was missing in the votes."""
        gaps = [gap for bench in self.benches for gap in bench.gaps()]
        more = [f"… and {len(gaps) - LISTED_GAPS} more gaps like these."] if len(gaps) > LISTED_GAPS else []
        return [*(f"{name}: {reason}." for name, reason in self.refused.items()), *gaps[:LISTED_GAPS], *more]

    def refused_rows(self, columns: int) -> list[list[Content]]:
        """Return a row of dashes for every dataset that cannot be evaluated."""
        return [[name, *[None] * (columns - 1)] for name in self.refused]


def attempt(notes: list[str], compute: Callable[[], T]) -> T | None:
    """Return what the function returns; if undefined, None and a note with the reason."""
    try:
        return compute()
    except UndefinedMetric as error:
        if (sentence := f"{error}.") not in notes:
            notes.append(sentence)
        return None


class PanelRow(NamedTuple):
    """A row of a table: which panel of models it is about, and the results of every method."""

    names: Sequence[str]
    scored: Sequence[Scored | None]


@dataclass(frozen=True, slots=True)
class PanelTable:
    """Panels of models by method."""

    study: Replication  # the datasets
    name: str  # short name, used for files
    title: str  # what is compared
    methods: Sequence[str]  # headings of the columns with figures
    notes: list[str]  # how the numbers were computed, and what is missing
    leading: Sequence[str] = ("Dataset", "LLM")  # headings of the columns that say which panel a row is about
    rows: list[PanelRow] = field(default_factory=list)  # the panels

    def add(self, *names: str, scored: Sequence[Scored | None]) -> None:
        """Add a panel: its names, and the results of every method."""
        self.rows.append(PanelRow(names, scored))

    def by_method(self, method: str) -> list[Scored | None]:
        """Return the results of a method on every panel."""
        return [row.scored[self.methods.index(method)] for row in self.rows]

    def table(self, summary: Sequence[tuple[str, str]] = (), best: Sequence[str] = ()) -> ResultTable:
        """Return the class AUROC of every method; `best` names those that compete for it, by default all."""
        about = {"name": self.name, "title": f"{self.title} (class AUROC)", "notes": self.notes, "summary": summary}
        return self._shown(self.methods, lambda one: one.auroc, best or self.methods, about)

    def confidence(self, without: Sequence[str] = ()) -> ResultTable:
        """Return the confidence AUROC of every method but some."""
        shown = [name for name in self.methods if name not in without]
        undefined = any(one and one.confidence is None for name in shown for one in self.by_method(name))
        notes = [
            "Confidence AUROC: right labels against wrong ones, by the probability of the chosen label, calibrated "
            f"on other folds; rows, splits and intervals as for {self.name}.",
            *([figures.NO_CONFIDENCE_AUROC] if undefined else []),
            *(note for note in self.notes[1:] if note not in (figures.HARD_AND_GRADED, ABOUT_TESTS)),
        ]
        about = {"name": f"{self.name}-confidence", "title": f"{self.title} (confidence AUROC)", "notes": notes}
        return self._shown(shown, lambda one: one.confidence, shown, about)

    def _shown(
        self,
        methods: Sequence[str],
        figure: Callable[[Scored], Estimate | None],
        best: Sequence[str],
        about: Mapping[str, Any],
    ) -> ResultTable:
        """Return a figure of some methods on every panel, the best of each row in bold."""
        columns = [*self.leading, *methods]
        found = zip(*map(self.by_method, methods), strict=True)
        rows: list[list[Content]] = [
            [*row.names, *(one and figures.cell_of(figure(one)) for one in results)]
            for row, results in zip(self.rows, found, strict=True)
        ]
        marked = best_in_rows(rows, [len(self.leading) + methods.index(name) for name in best])
        return ResultTable(columns=columns, rows=[*rows, *self.study.refused_rows(len(columns))], best=marked, **about)

    def pairs(self, ours: str, theirs: str) -> list[Pair]:
        """Return the points of a plot: one method against another on every panel."""
        both = zip(self.rows, self.by_method(ours), self.by_method(theirs), strict=True)
        return [
            Pair(row.names[0], row.names[1], one.auroc.value, other.auroc.value)
            for row, one, other in both
            if one is not None and other is not None
        ]


class Compared(NamedTuple):
    """Two methods over all their pairs of figures; None without a pair."""

    pairs: int  # number of pairs
    improvement: float | None = None  # average relative improvement
    test: significance.BootstrapTest | None = None  # of the mean difference


def compared(ours: Sequence[Scored | None], theirs: Sequence[Scored | None]) -> Compared:
    """Return two methods on the panels that both have results for.

    The test takes pairs on the same rows together: resamples of a dataset are the same for all of its panels.
    """
    pairs = [(one, other) for one, other in zip(ours, theirs, strict=True) if one is not None and other is not None]
    if not pairs:
        return Compared(0)
    values = [[one.auroc.value for one in side] for side in zip(*pairs, strict=True)]
    moved: dict[str, Floats] = {}
    for one, other in pairs:
        change = (one.measured.resampled - other.measured.resampled) / len(pairs)
        moved[one.dataset] = moved.get(one.dataset, 0.0) + change
    spread = float(np.sqrt(sum(change.var() for change in moved.values())))
    rows = sum({one.dataset: len(one.gold) for one, _ in pairs}.values())
    difference = float(np.mean(values[0]) - np.mean(values[1]))
    test = significance.bootstrap_test(difference, spread, rows, WIDENING)
    return Compared(len(pairs), significance.average_relative_improvement(*values), test)


def summaries(comparisons: Mapping[str, Compared]) -> list[tuple[str, str]]:
    """Return a line below a table for every comparison by name: improvement and p-value."""
    lines = []
    p_values = figures.adjusted([one.test for one in comparisons.values()])
    for (name, one), p_value in zip(comparisons.items(), p_values, strict=True):
        improvement = "–" if one.improvement is None else f"{100 * one.improvement:+.1f} %"
        test = NO_TEST if p_value is None else f"{significance.p_text(p_value)} {significance.stars(p_value)}"
        lines.append((f"{name}: average relative improvement", f"{improvement}, {test}"))
    return lines
