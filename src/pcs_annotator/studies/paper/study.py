"""What all experiments share: recorded votes, how figures are computed, and the tables and tests around them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric, UserError
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.result_table import Content, Pair, ResultTable, best_in_rows
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluate import methods
from pcs_annotator.judging.evaluate import scored as figures
from pcs_annotator.judging.evaluate.scored import EvaluationOptions, Scored, labelled_rows
from pcs_annotator.judging.metrics import significance
from pcs_annotator.judging.metrics.significance import WIDENING

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
        return {
            **{name: getattr(self.how, name) for name in ("folds", "repeats", "seed", "resamples")},
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
    settings: Settings
    _seen: dict[tuple[object, ...], Scored] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, votes: Votes, gold: Codes, settings: Settings) -> "ExperimentBench":
        """Return the labelled rows of a dataset; too little gold, or no votes, is an `UndefinedMetric`."""
        votes, gold = labelled_rows(votes, gold, settings.how.folds)
        wanted = settings.relations
        plain = votes.plain().select(relations=[name for name in votes.relations if wanted is None or name in wanted])
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

    def pcs(self, annotators: Sequence[str]) -> Scored:
        """Return the results of PCS on all relations."""
        return self.on_cells(self.settings.optimiser, annotators)

    def alone(self, annotators: Sequence[str], relation: str = "") -> Scored:
        """Return those of the share of labels on one relation, by default the unchanged text."""
        return self.on_cells("uniform", annotators, [relation or self.plain.original], hard=True)

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
    settings: Settings

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

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Content]], **about: Any) -> ResultTable:
        """Return a table, with a row of dashes for every dataset that cannot be evaluated."""
        dashes = [[name, *[None] * (len(columns) - 1)] for name in self.refused]
        return ResultTable(columns=columns, rows=[*rows, *dashes], **about)


class PanelRow(NamedTuple):
    """A row of a table: which panel of models it is about, and the results of every method."""

    dataset: str
    models: str
    scored: Sequence[Scored | None]


@dataclass(frozen=True, slots=True)
class PanelTable:
    """Panels of models by method."""

    study: Replication
    name: str  # short name, used for files
    title: str  # what is compared
    # heading of a column → its results for some models; `UndefinedMetric` leaves a dash, and a note why
    methods: Mapping[str, Callable[[ExperimentBench, Sequence[str]], Scored]]
    notes: list[str]  # how the numbers were computed, and what is missing
    leading: Sequence[str] = ("Dataset", "LLM")  # headings of the columns that say which panel a row is about
    rows: list[PanelRow] = field(default_factory=list)

    def add(self, bench: ExperimentBench, models: Sequence[str], suffix: str = "") -> None:
        """Add a panel of models."""
        scored: list[Scored | None] = []
        for method in self.methods.values():
            try:
                scored.append(method(bench, models))
            except UndefinedMetric as error:
                scored.append(None)
                if f"{error}." not in self.notes:
                    self.notes.append(f"{error}.")
        self.rows.append(PanelRow(bench.dataset, " + ".join(models) + suffix, scored))

    def by_method(self, method: str) -> list[Scored | None]:
        """Return the results of a method on every panel."""
        position = [*self.methods].index(method)
        return [row.scored[position] for row in self.rows]

    def compared(self, ours: str, theirs: str) -> "Compared":
        """Return two of the methods over all panels."""
        return compared(self.by_method(ours), self.by_method(theirs))

    def tables(self, against: str = "", *, best: Sequence[str] = (), unsure: Sequence[str] = ()) -> list[ResultTable]:
        """Return a table of the class AUROC and one of the confidence AUROC.

        The first ends with tests of the methods `against` one of them. `best` names those that compete for its bold
        figures, by default all; `unsure` those without a confidence of their own.
        """
        others = [name for name in self.methods if against and name != against]
        rival = against if against.isupper() else against.lower()
        others = [name for name in others if any(self.by_method(name)) or not self.rows]
        summary = _summary({f"{name} against {rival}": self.compared(name, against) for name in others})
        shown = [name for name in self.methods if name not in unsure]
        undefined = any(scored and scored.confidence is None for name in shown for scored in self.by_method(name))
        notes = [
            "Confidence AUROC: right labels against wrong ones, by the probability of the chosen label, calibrated "
            f"on other folds; rows, splits and intervals as for {self.name}.",
            *([figures.NO_CONFIDENCE_AUROC] if undefined else []),
            *(note for note in self.notes[1:] if note not in (figures.HARD_AND_GRADED, ABOUT_TESTS)),
        ]
        return [
            self._shown([*self.methods], "auroc", best or [*self.methods], notes=self.notes, summary=summary),
            self._shown(shown, "confidence", shown, notes=notes),
        ]

    def _shown(self, shown: Sequence[str], figure: str, best: Sequence[str], **about: Any) -> ResultTable:
        """Return a figure of some methods on every panel, the best of each row in bold."""
        results = zip(*map(self.by_method, shown), strict=True)
        rows: list[list[Content]] = [
            [row.dataset, row.models, *(scored and figures.cell_of(getattr(scored, figure)) for scored in cells)]
            for row, cells in zip(self.rows, results, strict=True)
        ]
        marked = best_in_rows(rows, [len(self.leading) + shown.index(name) for name in best])
        kind = {"auroc": "class AUROC", "confidence": "confidence AUROC"}[figure]
        name = self.name if figure == "auroc" else f"{self.name}-confidence"
        columns = [*self.leading, *shown]
        return self.study.table(columns, rows, name=name, title=f"{self.title} ({kind})", best=marked, **about)

    def pairs(self, ours: str, theirs: str) -> list[Pair]:
        """Return the points of a plot: one method against another on every panel."""
        both = zip(self.rows, self.by_method(ours), self.by_method(theirs), strict=True)
        return [
            Pair(row.dataset, row.models, mine.auroc.value, other.auroc.value)
            for row, mine, other in both
            if mine and other
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
    pairs = [(mine, other) for mine, other in zip(ours, theirs, strict=True) if mine and other]
    if not pairs:
        return Compared(0)
    values = [[scored.auroc.value for scored in side] for side in zip(*pairs, strict=True)]
    moved: dict[str, Floats] = {}
    for mine, other in pairs:
        change = (mine.measured.resampled - other.measured.resampled) / len(pairs)
        moved[mine.dataset] = moved.get(mine.dataset, 0.0) + change
    spread = float(np.sqrt(sum(change.var() for change in moved.values())))
    rows = sum({mine.dataset: len(mine.gold) for mine, _ in pairs}.values())
    difference = float(np.mean(values[0]) - np.mean(values[1]))
    test = significance.bootstrap_test(difference, spread, rows, WIDENING)
    return Compared(len(pairs), significance.average_relative_improvement(*values), test)


def _summary(comparisons: Mapping[str, Compared]) -> list[tuple[str, str]]:
    """Return a line below a table for every comparison by name: improvement and p-value."""
    lines = []
    p_values = figures.adjusted([comparison.test for comparison in comparisons.values()])
    for (name, comparison), p_value in zip(comparisons.items(), p_values, strict=True):
        improvement = "–" if comparison.improvement is None else f"{100 * comparison.improvement:+.1f} %"
        test = NO_TEST if p_value is None else f"{significance.p_text(p_value)} {significance.stars(p_value)}"
        lines.append((f"{name}: average relative improvement", f"{improvement}, {test}"))
    return lines
