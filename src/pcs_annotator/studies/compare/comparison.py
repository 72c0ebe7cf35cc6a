"""Two sides compared: where their labels differ, who is right more often, and what each costs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import Columns, Frame
from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.base.text import counted, listed
from pcs_annotator.core.arrays import CODE, Codes, Integers
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.votes import NOT_ASKED, Votes
from pcs_annotator.judging.evaluate.harness import PairFigures, compare_pair
from pcs_annotator.judging.evaluate.scored import EvaluationOptions, Splitting
from pcs_annotator.judging.metrics.coefficients import Agreement, cohens_kappa
from pcs_annotator.runs.learn import about_copies, counted_once
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.toml import config_to_dict
from pcs_annotator.showing.report.summary import flat_settings, setting_text
from pcs_annotator.showing.report.view import certainty
from pcs_annotator.studies.compare.sides import Matched, Side, SideCost

SURE = 0.8
NOT_COMPARED = "ask · ledger"  # a setting


class DifferingRow(NamedTuple):
    """A row on which two sides differ."""

    rows: tuple[int, int]  # its position in each run
    outcomes: tuple[Outcome, Outcome]  # what each side says
    gold: str | None  # its gold label; None if unknown

    @property
    def certainty(self) -> float:
        """How sure the less certain side is: its confidence, or its score if it has none."""
        return min(map(certainty, self.outcomes))

    @property
    def marks(self) -> tuple[str, ...]:
        """The filters that it matches."""
        sure = ("sure",) if self.certainty >= SURE else ()
        if self.gold is None:
            return sure
        right = [outcome.leaf == self.gold for outcome in self.outcomes]
        return (*sure, "a-right" if right[0] else "b-right" if right[1] else "none-right")


class SettingDifference(NamedTuple):
    """A setting that differs, as text."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Frame):
    """Two runs, or parts of runs, on the same rows, which `to_pandas()` and `to_polars()` list."""

    a: Side  # the first
    b: Side  # the second
    matched: Matched  # which rows are in both, and the IDs of the others
    labels: Sequence[str]  # the labels; those of the two sides have the same names
    # number of rows by the label of A and of B, `[label of A, label of B]`; the last row and column are rows without
    # a label
    table: Integers
    kappa: Agreement  # Cohen's κ between the two, on rows that both have labelled
    examples: Sequence[DifferingRow]  # the rows to which they give different labels, those first on which both are sure
    gold_rows: int  # how many rows have gold, in either folder
    contradictory: Sequence[str]  # IDs of rows with other gold labels in the other folder; they do not count
    figures: PairFigures | None  # held-out figures of both, and paired tests; None with too little gold
    no_figures: str  # why there are none
    costs: tuple[SideCost, SideCost]  # what each side costs per 1,000 rows
    settings: Sequence[SettingDifference]  # the settings that differ
    notes: Sequence[str]  # what readers need to know

    @property
    def rows(self) -> int:
        """How many rows are compared."""
        return len(self.matched.first)

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides."""
        return self.a, self.b

    @property
    def differing(self) -> int:
        """On how many rows the labels differ; a missing label is not another label."""
        return len(self.examples)

    @property
    def labelled(self) -> int:
        """How many rows have a label in both."""
        return int(self.table[:-1, :-1].sum())

    def _about(self) -> str:
        return f"{self.a.name} and {self.b.name}, {self.differing:,} of {counted(self.labelled, 'row')} differ"

    def _columns(self) -> Columns:
        rows = list(zip(self.matched.first, self.matched.second, strict=True))
        items, first, second = self.a.result.dataset.items, self.a.result.outcomes, self.b.result.outcomes
        golds = [side.result.dataset.gold or [None] * len(side.result.outcomes) for side in self.sides]
        return {
            "id": [items[row].id for row, _ in rows],
            "text": [items[row].text for row, _ in rows],
            "a": [first[row].label for row, _ in rows],
            "a_confidence": [first[row].confidence for row, _ in rows],
            "b": [second[row].label for _, row in rows],
            "b_confidence": [second[row].confidence for _, row in rows],
            "gold": [golds[0][row] or golds[1][other] for row, other in rows],
        }

    def accepted(self, side: Side) -> int:
        """Return how many of the compared rows a side accepts."""
        rows = self.matched.first if side is self.a else self.matched.second
        return sum(side.result.outcomes[row].decision == "accept" for row in rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        fields = ("label", "confidence", "decision")
        examples = [
            {
                "id": row.outcomes[0].id,
                **{
                    side: {name: getattr(out, name) for name in fields}
                    for side, out in zip("ab", row.outcomes, strict=True)
                },
                "gold": row.gold,
            }
            for row in self.examples
        ]
        return {
            "a": self.a.name,
            "b": self.b.name,
            "rows": self.rows,
            "only_a": list(self.matched.only_first),
            "only_b": list(self.matched.only_second),
            "labels": [*self.labels, None],
            "table": self.table.tolist(),
            "differing": self.differing,
            "kappa": self.kappa.value,
            "gold_rows": self.gold_rows,
            "contradictory_gold": list(self.contradictory),
            "figures": self.figures and self.figures.to_dict(),
            "no_figures": self.no_figures,
            "accepted": [self.accepted(side) for side in self.sides],
            "cost_per_1000_rows": [cost.to_dict() for cost in self.costs],
            "settings": [setting._asdict() for setting in self.settings],
            "examples": examples,
            "notes": list(self.notes),
        }


def compare_sides(a: Side, b: Side, splitting: Splitting) -> Comparison:
    """Compare two runs, or parts of runs, on the rows that they have in common."""
    matched = Matched.of(a, b)
    (votes, ours), (others, theirs) = a.on(matched.first), b.on(matched.second)
    labels, codes = votes.labels, []
    for side, rows in ((a, matched.first), (b, matched.second)):
        code_of: dict[str | None, int] = {None: UNLABELLED, **{label: code for code, label in enumerate(labels)}}
        codes.append(np.array([code_of[side.result.outcomes[row].leaf] for row in rows], dtype=CODE))
    table = np.zeros((len(labels) + 1, len(labels) + 1), dtype=np.intp)
    np.add.at(table, tuple(codes), 1)  # -1, for no label, is the last place
    wrong = (ours != UNLABELLED) & (theirs != UNLABELLED) & (ours != theirs)
    gold = np.where(wrong, UNLABELLED, np.where(ours != UNLABELLED, ours, theirs)).astype(CODE)
    contradictory = [votes.ids[contradictory_row] for contradictory_row in np.flatnonzero(wrong).tolist()]
    figures, why, about = _figures((a, votes), (b, others), gold, splitting)
    truth = {name: None if code < 0 else labels[code] for name, code in zip(votes.ids, gold.tolist(), strict=True)}
    return Comparison(
        a=a,
        b=b,
        matched=matched,
        labels=labels,
        table=table,
        kappa=cohens_kappa(codes[0], codes[1]),
        examples=_examples(a, b, matched, truth),
        gold_rows=int((gold != UNLABELLED).sum()),
        contradictory=contradictory,
        figures=figures,
        no_figures=why,
        costs=(a.cost(votes), b.cost(others)),
        settings=_settings(a.result, b.result),
        notes=[*_notes(a, b, matched, contradictory), *about],
    )


def _figures(
    a: tuple[Side, Votes], b: tuple[Side, Votes], gold: Codes, splitting: Splitting
) -> tuple[PairFigures | None, str, list[str]]:
    """Return held-out figures of both, or why there are none, and what readers need to know."""
    votes = a[1]
    texts = {item.id: item.text for item in a[0].result.dataset.items}
    once = counted_once(votes, gold, [texts[name] for name in votes.ids])
    gold_once = np.where(once.distinct, gold, UNLABELLED).astype(CODE)
    asked = np.logical_and(*((part.codes != NOT_ASKED).any(axis=(1, 2, 3)) for _, part in (a, b)))
    about = [f"{flag.detail}." for flag in about_copies(once, votes)]
    if count := int(((gold != UNLABELLED) & ~asked).sum()):
        about.append(f"{counted(count, 'gold row')} that only one of the two was asked about count for neither.")
    contenders = [side.contender(part, gold_once, splitting.seed) for side, part in (a, b)]
    usable = np.where(asked, gold_once, UNLABELLED).astype(CODE)
    if (usable == UNLABELLED).all():
        return None, "no compared row has a gold label", about
    try:
        figures = compare_pair(contenders, usable, EvaluationOptions(**asdict(splitting)))
    except UndefinedMetric as error:
        return None, str(error), about
    about += [
        f"{side.name} also reads texts, but these gold rows are too few to learn that: its figures are of votes alone."
        for (side, _), contender in zip((a, b), contenders, strict=True)
        if side.result.model.text is not None and contender.votes.text_log_probs is None
    ]
    return figures, "", about


def _examples(a: Side, b: Side, matched: Matched, truth: dict[str, str | None]) -> list[DifferingRow]:
    ours, theirs = a.result.outcomes, b.result.outcomes
    pairs = zip(matched.first, matched.second, strict=True)
    rows = [
        DifferingRow((row, other_row), (ours[row], theirs[other_row]), truth[a.ids[row]]) for row, other_row in pairs
    ]
    differing = [row for row in rows if len({outcome.leaf for outcome in row.outcomes} - {None}) > 1]
    return sorted(differing, key=lambda row: -row.certainty)


def _settings(ours: RunResult, theirs: RunResult) -> list[SettingDifference]:
    """Return the settings that differ; names of relations and models among them."""
    first, second = (
        {name.replace("_", " "): setting_text(value) for name, value in flat_settings(config_to_dict(run.config))}
        for run in (ours, theirs)
    )
    none = setting_text(None)
    names = [name for name in dict.fromkeys([*first, *second]) if name != NOT_COMPARED]
    pairs = [SettingDifference(name, first.get(name, none), second.get(name, none)) for name in names]
    return [pair for pair in pairs if pair.first != pair.second]


def _notes(a: Side, b: Side, matched: Matched, contradictory: Sequence[str]) -> list[str]:
    notes = []
    for side, ids in ((a, matched.only_first), (b, matched.only_second)):
        if ids:
            rows = "1 row is" if len(ids) == 1 else f"{len(ids):,} rows are"
            notes.append(f"{rows} only in {side.name}, and not compared: {listed(map(repr, ids), len(ids))}.")
        if side.run.counts.rows > len(side.run.votes):
            rows = f"{side.run.counts.rows:,} rows, of which the folder keeps a sample of {len(side.run.votes):,}"
            notes.append(f"{side.name} has {rows}: only those are compared.")
    if count := len(contradictory):
        rows = f"{count:,} rows have other gold labels in the two folders and count for neither"
        notes.append(f"{rows}: {listed(map(repr, contradictory), count)}.")
    return notes
