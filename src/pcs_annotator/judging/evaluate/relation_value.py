"""What each relation adds: class AUROC with one more question per text beside the original, and without it.

As values, as a table, and in plain sentences that say what to keep.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pcs_annotator.base.display import Columns, Frame
from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Mask
from pcs_annotator.core.gold_codes import refuse_without_gold
from pcs_annotator.core.result_table import Content, ResultTable
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluate import scored
from pcs_annotator.judging.evaluate.methods import OnCells, calls_of, original_of, ready
from pcs_annotator.judging.evaluate.scored import about_intervals, adjusted, cell_of, test_json
from pcs_annotator.judging.fit_weights import any_graded
from pcs_annotator.judging.metrics.significance import BootstrapTest, rows_to_tell
from pcs_annotator.judging.solver import one_thread

WORTH = 0.01  # a gain in class AUROC that is surely smaller than this is not worth another question
SIGNIFICANT = 0.05
LEAST_COVERED = 10
TOLD = 0.02  # the gain for which the number of gold rows that it takes is named

Advice = Literal["keep", "drop", "unknown"]
ADVICE: dict[Advice, str] = {"keep": "keep", "drop": "drop", "unknown": "cannot tell"}
POINTS = "points of class AUROC"
COLUMNS = ("Relation", "Applies to", "Calls", "Per question", "On all", "Advice")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationValue:
    """What one relation adds beside the original; gains are differences in class AUROC."""

    relation: str  # its name
    covered: int  # gold rows with an answer under it
    calls: float  # calls per gold row that it takes: questions to all models, and the rewrite if a model wrote it
    gain: BootstrapTest  # what it adds over all gold rows, also those that it does not apply to
    # what it adds on covered rows, where the question is asked; None if there are too few of them, or they have a
    # single class
    per_question: BootstrapTest | None
    p_holm: float | None  # p-value of `per_question`, adjusted for the number of relations; None without it

    @property
    def advice(self) -> Advice:
        """Drop what surely adds less than a point where it applies; keep what surely adds anything else."""
        if self.per_question is None or self.p_holm is None:
            return "unknown"
        if self.per_question.interval.high < WORTH:
            return "drop"
        return "keep" if self.p_holm < SIGNIFICANT else "unknown"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        asked = self.per_question
        return {
            "relation": self.relation,
            "covered": self.covered,
            "calls_per_text": self.calls,
            "per_question": None if asked is None else {**test_json(asked), "p_holm": self.p_holm},
            "over_all_texts": test_json(self.gain),
            "advice": self.advice,
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RelationValues(Frame):
    """What all relations add; `to_pandas()` and `to_polars()` give a row per relation."""

    n: int  # number of gold rows
    original: str  # the relation that stands for the unchanged text
    optimiser: str  # how weights were learned
    graded: bool  # whether votes have log-probabilities
    auroc: float  # class AUROC of the original alone
    together: BootstrapTest  # what all relations together add to it
    relations: Sequence[RelationValue]  # the largest gain first
    absent: Sequence[str]  # relations without an answer on any gold row
    how: scored.EvaluationOptions  # splits, seeds and resamples

    def _about(self) -> str:
        return f"class AUROC that each relation adds, from {self.n:,} gold rows"

    def _columns(self) -> Columns:
        columns: dict[str, list[object]] = {
            "relation": [value.relation for value in self.relations],
            "covered": [value.covered for value in self.relations],
            "calls_per_text": [value.calls for value in self.relations],
        }
        for name, tests in (
            ("per_question", [value.per_question for value in self.relations]),
            ("over_all_texts", [value.gain for value in self.relations]),
        ):
            columns[name] = [value and value.difference for value in tests]
            columns[f"{name}_low"] = [value and value.interval.low for value in tests]
            columns[f"{name}_high"] = [value and value.interval.high for value in tests]
        return {**columns, "advice": [value.advice for value in self.relations]}

    @property
    def conclusions(self) -> list[str]:
        """What to keep, what to drop and what cannot be told, and what all relations add together."""
        by_advice = {advice: [value for value in self.relations if value.advice == advice] for advice in ADVICE}
        sentences = []
        if keep := by_advice["keep"]:
            sentences.append(f"Keep {_named(keep)}: that is more than chance would add.")
        if drop := by_advice["drop"]:
            sentences.append(f"Drop {_named(drop)}: that is less than one point per question.")
        if unknown := by_advice["unknown"]:
            sentences.append(f"{self.n:,} gold rows cannot tell about {_named(unknown)}.{_needed(unknown, self.n)}")
        if self.absent:
            sentences.append(f"Nothing is known about {', '.join(self.absent)}: no gold row has an answer under it.")
        return [
            *sentences,
            f"All together add {points(self.together)} {POINTS} to the {self.auroc:.3f} of the original alone.",
        ]

    @property
    def table(self) -> ResultTable:
        """A line per relation, the largest gain first; gains are in points of class AUROC."""
        rows: list[list[Content]] = [
            [
                value.relation,
                f"{100 * value.covered / self.n:.0f} % ({value.covered:,})",
                value.calls,
                cell_of(value.per_question, 100),
                cell_of(value.gain, 100),
                ADVICE[value.advice],
            ]
            for value in self.relations
        ]
        return ResultTable(
            name="relation-value",
            title=f"What each relation adds beside {self.original!r} on {self.n:,} gold rows ({POINTS})",
            columns=COLUMNS,
            rows=rows,
            notes=self._notes(),
            digits={"Calls": 2, "Per question": 1, "On all": 1},
        )

    def _notes(self) -> list[str]:
        """Return how the gains were computed."""
        votes = "graded votes" if self.graded else "labels only"
        return [
            "Calls are per text. Per question: gain on the texts that the relation applies to. On all: gain on all "
            f"texts. Both compare {self.original!r} and the relation with {self.original!r} alone, by {self.optimiser} "
            f"on {votes}; {self.how.folds}-fold cross-validation, seeds {', '.join(map(str, self.how.seeds(self.n)))}.",
            "Gains of several relations do not add up. Advice follows the gain per question: drop if its interval ends "
            "below one point, else keep if it is above 0 after adjustment for the number of relations (Holm).",
            about_intervals(self.how.resamples),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; gains are differences in class AUROC, not points."""
        return {
            "n": self.n,
            "original": self.original,
            "optimiser": self.optimiser,
            "graded": self.graded,
            **self.how.to_dict(self.n),
            "auroc": self.auroc,
            "together": test_json(self.together),
            "relations": [value.to_dict() for value in self.relations],
            "absent": list(self.absent),
            "conclusions": self.conclusions,
        }


def relation_values(
    votes: Votes,
    gold: Codes,
    how: scored.EvaluationOptions | None = None,
    optimiser: str = "auto",
    name: str = "these votes",
) -> RelationValues:
    """Return what each relation adds on gold rows that the fits did not see, all on the same splits and resamples.

    `name` is what error messages call the votes.
    """
    how = how or scored.EvaluationOptions()
    refuse_without_gold(gold, name, "gains")
    votes, gold = scored.labelled_rows(votes.plain(), gold, how.folds)
    original = original_of(votes)
    answered: Mask = np.asarray((votes.codes >= 0).any(axis=(1, 3)))  # `[item, relation]`
    covered = {name: answered[:, at] for at, name in enumerate(votes.relations) if name != original}
    others = [name for name, rows in covered.items() if rows.any()]
    if not others:
        raise UndefinedMetric(
            f"no gold row has an answer beside that to {original!r}: ask with more relations, for example "
            "--relations original,order,wording"
        )

    def panel(*names: str) -> scored.Scored:
        chosen = OnCells(name=optimiser, optimiser=optimiser, relations=[original, *names])
        return scored.Scored.of(ready(chosen, votes), gold, how)

    with one_thread():
        alone, panels = panel(), {name: panel(name) for name in others}
        together, *gains = _gains([panel(*others), *panels.values()], alone)
        asked = [
            gain if covered[name].all() else _gain_on(covered[name], panels[name], alone)
            for name, gain in zip(others, gains, strict=True)
        ]
    values = [
        RelationValue(
            relation=name,
            covered=int(covered[name].sum()),
            calls=calls_of(votes.select(relations=[name]), how.rewritten).total,
            gain=gain,
            per_question=test,
            p_holm=p_holm,
        )
        for name, gain, test, p_holm in zip(others, gains, asked, adjusted(asked), strict=True)
    ]
    return RelationValues(
        n=len(gold),
        original=original,
        optimiser=optimiser,
        graded=any_graded(votes),
        auroc=float(alone.aurocs(np.ones((len(gold), 1)))[0]),
        together=together,
        relations=sorted(values, key=lambda value: -value.gain.difference),
        absent=[name for name in covered if name not in others],
        how=how,
    )


def _gains(panels: Sequence[scored.Scored], alone: scored.Scored) -> list[BootstrapTest]:
    """Return by how much the class AUROC of each panel is higher than that of the original alone."""
    methods, gold = [alone, *panels], alone.gold
    measured = scored.measure(
        lambda counts: {position: method.aurocs(counts) for position, method in enumerate(methods)},
        gold,
        alone.how.resamples,
        alone.how.seed,
    )
    before, *after = measured.values()
    return [method.minus(before, len(gold)) for method in after]


def _gain_on(rows: Mask, panel: scored.Scored, alone: scored.Scored) -> BootstrapTest | None:
    """Return what a relation adds on the rows that it applies to; None if they cannot show it."""
    if rows.sum() < LEAST_COVERED or len(np.unique(alone.gold[rows])) < 2:
        return None
    return _gains([panel.on(rows)], alone.on(rows))[0]


def _named(values: Sequence[RelationValue]) -> str:
    return ", ".join(
        f"{value.relation} ({points(value.per_question) or f'applies to {value.covered}'})" for value in values
    )


def _needed(values: Sequence[RelationValue], rows: int) -> str:
    """Return how many gold rows it takes to tell; nothing if there are as many, so that the gain is small if any."""
    # a relation that applies to one text in ten needs ten times as many gold rows as rows that it applies to
    needed = {
        value.relation: rows_to_tell(value.per_question, TOLD) * rows / value.covered
        for value in values
        if value.per_question
    }
    more = [f"{two_digits(count):,} for {name}" for name, count in needed.items() if count > rows]
    return f" Gold rows to tell a gain of {100 * TOLD:.0f} points: about {', '.join(more)}." if more else ""


def two_digits(rows: float) -> int:
    """Return a number of rows with two digits, because more would look surer than it is."""
    step = 10 ** max(len(str(int(rows))) - 2, 0)
    return int(-(-rows // step) * step)


def points(test: BootstrapTest | None, metric: str = "") -> str:
    """Return a gain in points, if need be with the name of its metric, and its interval; nothing if there is none."""
    if test is None:
        return ""
    figures = (test.difference, *test.interval.rounded(3))
    value, low, high = (f"{round(100 * figure, 1) + 0:+.1f}" for figure in figures)  # + 0: there is no minus zero
    unit = f" points of {metric}" if metric else ""
    return f"{value}{unit} [{low.lstrip('+')}, {high.lstrip('+')}]".replace("-", "−")
