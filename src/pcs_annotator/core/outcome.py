"""The result for one text, counts of results, and the names of their columns, which are always the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pcs_annotator.base.display import Columns, Frame, html_table
from pcs_annotator.base.text import counted
from pcs_annotator.core.task import MANY_LABELS, is_empty

LABEL, CONFIDENCE, DECISION, REASON = "pcs_label", "pcs_confidence", "pcs_decision", "pcs_reason"
LABEL_SET, ERROR, VERSION = "pcs_set", "pcs_error", "pcs_version"
WITHIN_ONE, LOW, HIGH, LEVEL = "pcs_within_one", "pcs_low", "pcs_high", "pcs_level"
VERDICT, REVIEWER, FINAL_LABEL = "pcs_verdict", "pcs_reviewer", "pcs_final_label"


def score_name(label: str) -> str:
    """Return the column of a label's score."""
    return f"score_{label}"


def probability_name(label: str) -> str:
    """Return the column of a label's calibrated probability."""
    return f"p_{label}"


def with_columns(labels: Sequence[str]) -> Sequence[str]:
    """Return the labels that have columns of their own: all, unless there are very many."""
    return labels if len(labels) <= MANY_LABELS else ()


def result_names(labels: Sequence[str]) -> frozenset[str]:
    """Return all names that columns of results can have."""
    fixed = (LABEL, CONFIDENCE, DECISION, REASON, LABEL_SET, ERROR, VERSION, VERDICT, REVIEWER, FINAL_LABEL)
    shaped = (WITHIN_ONE, LOW, HIGH, LEVEL)
    with_numbers = with_columns(labels)
    return frozenset(fixed + shaped).union(*((score_name(label), probability_name(label)) for label in with_numbers))


def input_names(names: Collection[str], ours: Collection[str]) -> dict[str, str]:
    """Return what the user's columns are called beside ours: `input_<name>` for one of our names."""
    used = {*names, *ours}
    names_now = {}
    for name in names:
        free, number = name, 1
        while name in ours and free in used:
            free, number = f"input_{name}" + (f"_{number}" if number > 1 else ""), number + 1
        used.add(free)
        names_now[name] = free
    return names_now


Decision = Literal["accept", "review", "agree"]
COPY_OF_GOLD = "a copy of a gold text"
UNLIKE_GOLD = "these texts differ from the gold rows the promise was made on"
SHOWN = ("id", "label", "confidence", "decision", "reason")
MOST_SHOWN = 20  # rows of a table in a notebook


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The label of one item, with everything needed to decide whether to believe it.

    Attributes:
        id: The item.
        label: The most probable label, on a scale the median; of the scores when there was too little gold for a
            confidence; in a tree perhaps only its parent, see `details`; of a new text that is a copy of a gold text,
            gold's; None when the item has no votes.
        scores: The Perceived Confidence Score of every label, summing to 1.
        confidence: Probability that `label` is right: calibrated from 50 gold rows on, rough from 10, else None.
        decision: `accept` where a promise allows it, else `review`. Without gold labels `agree` where two or more
            answers all give the same label, which promises nothing, else `review`. None when no decisions were
            requested and the item has votes.
        reason: Why, in plain words; empty when there is nothing to explain.
        label_set: The labels that cannot be ruled out; empty unless requested.
        probabilities: The probability of every label, that of `label` being `confidence`; empty where there is none.
        details: What the kind of the task adds, by the name of its column: `pcs_within_one`, `pcs_low` and `pcs_high`
            on a scale, `pcs_level` in a tree.
    """

    id: str
    label: str | None
    scores: Mapping[str, float]
    confidence: float | None
    decision: Decision | None
    reason: str = ""
    label_set: tuple[str, ...] = ()
    probabilities: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def leaf(self) -> str | None:
        """The label; in a tree, where only its parent is given, the most probable label below that."""
        if LEVEL not in self.details or self.label in self.scores:
            return self.label
        return max(sorted(self.probabilities), key=self.probabilities.__getitem__)

    @property
    def tied(self) -> list[str]:
        """The labels of the highest score, if there are several and no confidence that decides between them."""
        best = [name for name, score in self.scores.items() if score == max(self.scores.values())]
        return best if len(best) > 1 and self.confidence is None and self.label in best else []

    @property
    def for_people(self) -> Outcome:
        """The outcome with the leaf as its label, because people name leaves."""
        leaf = self.leaf
        if leaf is None or leaf == self.label:
            return self
        return replace(self, label=leaf, confidence=self.probabilities[leaf])

    def with_gold(self, label: str | None) -> Outcome:
        """The outcome of a copy of a gold text: with gold's label, and not for people; None for any other text."""
        if label is None:
            return self
        decision = self.decision and "accept"
        sure = self.probabilities.get(label)
        return replace(self, label=label, confidence=sure, decision=decision, reason=COPY_OF_GOLD)

    def is_right(self, gold: str) -> bool:
        """Return whether the label is the gold label, or in a tree a parent of it."""
        return self.label == gold or (LEVEL in self.details and gold.startswith(f"{self.label}/"))

    def __repr__(self) -> str:
        sure = "" if self.confidence is None else f", confidence={self.confidence:.3f}"
        decision = "" if self.decision is None else f", decision={self.decision!r}"
        return f"{type(self).__name__}(id={self.id!r}, label={self.label!r}{sure}{decision}, reason={self.reason!r})"

    def _repr_html_(self) -> str:
        return Outcomes([self])._repr_html_()


class Outcomes(Frame, list[Outcome]):
    """The outcomes of several texts: a list, shown as a table, with `to_pandas()` and `to_polars()`."""

    def _about(self) -> str:
        parts = [f"{count:,} {name}" for name, count in Counts.of(self).decisions.items()]
        return " · ".join([counted(len(self), "outcome"), *parts])

    def _columns(self) -> Columns:
        labels = with_columns([*dict.fromkeys(label for outcome in self for label in outcome.scores)])
        scores = {f"score_{label}": [outcome.scores.get(label) for outcome in self] for label in labels}
        return {**{name: [getattr(outcome, name) for outcome in self] for name in SHOWN}, **scores}

    def _repr_html_(self) -> str:
        rows = ([getattr(outcome, name) for name in SHOWN] for outcome in self[:MOST_SHOWN])
        more = f"the first {MOST_SHOWN} of {len(self):,}" if len(self) > MOST_SHOWN else ""
        return html_table(self._about(), SHOWN, rows, more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many rows there are, and how many of them have each label and each decision."""

    rows: int = 0  # number of rows
    labels: Mapping[str, int] = field(default_factory=dict)  # label → rows; rows without a label are not among them
    decisions: Mapping[str, int] = field(default_factory=dict)  # decision → rows
    empty: int = 0  # rows without a label because their text is empty
    settled: int = 0  # rows left for review whose text people have labelled already

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], texts: Sequence[str] = (), settled: int = 0) -> Counts:
        """Count outcomes, and those without a label whose text is empty, if the texts are known."""
        return cls(
            rows=len(outcomes),
            labels=dict(Counter(outcome.label for outcome in outcomes if outcome.label is not None)),
            decisions=dict(Counter(outcome.decision for outcome in outcomes if outcome.decision is not None)),
            empty=sum(outcome.label is None and is_empty(text) for outcome, text in zip(outcomes, texts, strict=False)),
            settled=settled,
        )

    @property
    def to_review(self) -> int:
        """Number of rows that a person must still see: neither accepted nor labelled by anybody."""
        return self.decisions.get("review", 0) - self.settled

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return self.rows - sum(self.labels.values())

    @property
    def unanswered(self) -> int:
        """Number of rows without a label although they have a text."""
        return self.unlabelled - self.empty

    def plus(self, other: Counts) -> Counts:
        """Return the counts of both."""
        return Counts(
            rows=self.rows + other.rows,
            labels=dict(Counter(self.labels) + Counter(other.labels)),
            decisions=dict(Counter(self.decisions) + Counter(other.decisions)),
            empty=self.empty + other.empty,
            settled=self.settled + other.settled,
        )
