"""Two sides compared: where their labels differ, who is right more often, and what each costs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import Columns, Frame
from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.base.text import counted, listed
from pcs_annotator.core.arrays import CODE, Codes, Integers
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import NOT_ASKED, Votes
from pcs_annotator.judging.evaluate.harness import Contender, PairFigures, compare_pair
from pcs_annotator.judging.evaluate.scored import EvaluationOptions, Splitting
from pcs_annotator.judging.fit_model import read_texts
from pcs_annotator.judging.fit_weights import in_canonical_order
from pcs_annotator.judging.metrics.coefficients import Agreement, cohens_kappa
from pcs_annotator.runs.learn import about_copies, counted_once
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.toml import config_to_dict
from pcs_annotator.showing.report.sections.summary import flat_settings, setting_text
from pcs_annotator.showing.report.view import certainty
from pcs_annotator.studies.compare.sides import Matched, Side

SURE = 0.8
PER_ROWS = 1_000
NOT_COMPARED = ("ask · ledger",)


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
        found = ["sure"] if self.certainty >= SURE else []
        if self.gold is not None:
            right = [one.leaf == self.gold for one in self.outcomes]
            found.append("a-right" if right[0] else "b-right" if right[1] else "none-right")
        return tuple(found)


class SettingDifference(NamedTuple):
    """A setting that differs, as text."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCost:
    """What one side costs per 1,000 rows if every question is paid for, whoever has paid for it."""

    bills: tuple[Bill, ...]  # per model and purpose; models of which no call is recorded are not among them
    complete: bool  # whether all models are among them

    @property
    def calls(self) -> int:
        """All calls."""
        return sum(bill.calls for bill in self.bills)

    @property
    def tokens(self) -> tuple[int, int]:
        """All tokens, in and out."""
        return sum(bill.input_tokens for bill in self.bills), sum(bill.output_tokens for bill in self.bills)

    @property
    def usd(self) -> float | None:
        """Dollars; None when a price is unknown."""
        prices = [bill.usd for bill in self.bills]
        return None if None in prices or not self.complete else sum(price or 0.0 for price in prices)


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


def compare_sides(a: Side, b: Side, splitting: Splitting) -> Comparison:
    """Compare two runs, or parts of runs, on the rows that they have in common."""
    matched = Matched.of(a, b)
    (votes, ours), (others, theirs) = (_votes_and_gold(*one) for one in ((a, matched.first), (b, matched.second)))
    wrong = (ours != UNLABELLED) & (theirs != UNLABELLED) & (ours != theirs)
    gold = np.where(wrong, UNLABELLED, np.where(ours != UNLABELLED, ours, theirs)).astype(CODE)
    ids, labels = votes.ids, votes.labels
    contradictory = [ids[place] for place in np.flatnonzero(wrong).tolist()]
    codes = [_codes(side, rows, labels) for side, rows in ((a, matched.first), (b, matched.second))]
    table = np.zeros((len(labels) + 1, len(labels) + 1), dtype=np.intp)
    np.add.at(table, tuple(codes), 1)  # -1, for no label, is the last place
    texts = {item.id: item.text for item in a.result.dataset.items}
    once = counted_once(votes, gold, [texts[name] for name in ids])
    asked = np.logical_and(*((one.codes != NOT_ASKED).any(axis=(1, 2, 3)) for one in (votes, others)))
    known = np.where(once.distinct, gold, UNLABELLED).astype(CODE)
    more = [f"{flag.detail}." for flag in about_copies(once, votes)]
    if count := int(((gold != UNLABELLED) & ~asked).sum()):
        more.append(f"{counted(count, 'gold row')} that only one of the two was asked about count for neither.")
    sides = [_contender(*one, known, splitting.seed) for one in ((a, votes), (b, others))]
    figures, why = _figures(sides, np.where(asked, known, UNLABELLED).astype(CODE), splitting)
    more += [
        f"{side.name} also reads texts, but these gold rows are too few to learn that: its figures are of votes alone."
        for side, one in zip((a, b), sides, strict=True)
        if side.result.model.text is not None and one.votes.read is None and figures is not None
    ]
    truth_of = {name: None if code < 0 else labels[code] for name, code in zip(ids, gold.tolist(), strict=True)}
    return Comparison(
        a=a,
        b=b,
        matched=matched,
        labels=labels,
        table=table,
        kappa=cohens_kappa(codes[0], codes[1]),
        examples=_examples(a, b, matched, [truth_of[a.ids[row]] for row in matched.first]),
        gold_rows=int((gold != UNLABELLED).sum()),
        contradictory=contradictory,
        figures=figures,
        no_figures=why,
        costs=(cost_of(a.run, votes), cost_of(b.run, others)),
        settings=_settings(a.result, b.result),
        notes=[*_notes(a, b, matched, contradictory), *more],
    )


def cost_of(run: RunResult, votes: Votes) -> SideCost:
    """Return what votes cost per 1,000 rows; they are those of a run, or of a part of it, on some of its rows."""
    recorded = {(bill.model, bill.purpose): bill for bill in run.used or run.bills if bill.calls}
    asked = (votes.codes != NOT_ASKED).sum(axis=(0, 2, 3)) / max(len(votes), 1)
    labels = [
        (recorded.get((name, "label")), float(calls)) for name, calls in zip(votes.annotators, asked, strict=True)
    ]
    rewrites = list(_rewrites(run, votes, recorded.values()))
    bills = tuple(_per_rows(bill, calls) for bill, calls in [*labels, *rewrites] if bill is not None and calls)
    return SideCost(bills=bills, complete=all(bill is not None for bill, calls in labels if calls))


def _per_rows(bill: Bill, calls: float) -> Bill:
    """Return a bill for 1,000 rows with so many calls each."""
    part = PER_ROWS * calls / bill.calls
    return bill.scaled(lambda number: round(part * number), lambda usd: part * usd)


def _rewrites(run: RunResult, votes: Votes, bills: Iterable[Bill]) -> Iterator[tuple[Bill, float]]:
    """Yield what a model was paid for rewriting, and its calls per row; a part needs its share of the relations."""
    of_the_question = {ORIGINAL, *(one.relation for one in run.rewrites if one.status == "original")}
    rewritten = [name for name in run.votes.relations if name not in of_the_question]
    share = len({*rewritten} & {*votes.relations}) / max(len(rewritten), 1)
    for bill in bills:
        if bill.purpose == "rewrite":
            yield bill, share * bill.calls / max(run.counts.rows, 1)


def _votes_and_gold(side: Side, rows: Sequence[int]) -> tuple[Votes, Codes]:
    """Return the votes on some rows of a side, and their gold, in an order that does not depend on its table."""
    result = side.result
    gold = gold_codes(result.votes, result.dataset.gold or [None] * len(result.votes))
    return in_canonical_order(result.votes.take(np.array(rows, dtype=np.intp)), gold[rows])


def _codes(side: Side, rows: Sequence[int], labels: Sequence[str]) -> Codes:
    """Return the label of every compared row as a position; `UNLABELLED` if it has none."""
    codes: dict[str | None, int] = {None: UNLABELLED, **{label: code for code, label in enumerate(labels)}}
    return np.array([codes[side.result.outcomes[row].leaf] for row in rows], dtype=CODE)


def _contender(side: Side, votes: Votes, gold: Codes, seed: int) -> Contender:
    """Return the votes of a side as its model sees them: with what the texts say, if it reads them."""
    learn, model = side.result.config.learn, side.result.model
    if model.text is not None:
        votes = read_texts(votes, gold, seed)[0]
    shape = model.shape.mixing(votes, gold)
    return Contender(shape.placed(votes), learn.optimiser, learn.calibration, shape)


def _figures(contenders: Sequence[Contender], gold: Codes, splitting: Splitting) -> tuple[PairFigures | None, str]:
    if (gold == UNLABELLED).all():
        return None, "no compared row has a gold label"
    try:
        return compare_pair(contenders, gold, EvaluationOptions(**asdict(splitting))), ""
    except UndefinedMetric as error:
        return None, str(error)


def _examples(a: Side, b: Side, matched: Matched, gold: Sequence[str | None]) -> list[DifferingRow]:
    rows = zip(matched.first, matched.second, gold, strict=True)
    found = [DifferingRow((i, j), (a.result.outcomes[i], b.result.outcomes[j]), truth) for i, j, truth in rows]
    differing = [one for one in found if len({each.leaf for each in one.outcomes} - {None}) > 1]
    return sorted(differing, key=lambda one: -one.certainty)


def _settings(ours: RunResult, theirs: RunResult) -> list[SettingDifference]:
    """Return the settings that differ; names of relations and models among them."""
    flat = [
        {name.replace("_", " "): setting_text(value) for name, value in flat_settings(config_to_dict(one.config))}
        for one in (ours, theirs)
    ]
    names = dict.fromkeys([*flat[0], *flat[1]])
    pairs = [SettingDifference(name, *(one.get(name, setting_text(None)) for one in flat)) for name in names]
    return [one for one in pairs if one.first != one.second and one.name not in NOT_COMPARED]


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


def comparison_json(found: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values."""
    return {
        "a": found.a.name,
        "b": found.b.name,
        "rows": found.rows,
        "only_a": list(found.matched.only_first),
        "only_b": list(found.matched.only_second),
        "labels": [*found.labels, None],
        "table": found.table.tolist(),
        "differing": found.differing,
        "kappa": found.kappa.value,
        "gold_rows": found.gold_rows,
        "contradictory_gold": list(found.contradictory),
        "figures": found.figures and found.figures.to_dict(),
        "no_figures": found.no_figures,
        "accepted": [found.accepted(side) for side in found.sides],
        "cost_per_1000_rows": [
            {
                "calls": one.calls,
                "tokens": list(one.tokens),
                "usd": one.usd,
                "models": [asdict(bill) for bill in one.bills],
            }
            for one in found.costs
        ],
        "settings": [one._asdict() for one in found.settings],
        "examples": [
            {"id": one.outcomes[0].id, **dict(zip("ab", map(_said, one.outcomes), strict=True)), "gold": one.gold}
            for one in found.examples
        ],
        "notes": list(found.notes),
    }


def _said(outcome: Outcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in ("label", "confidence", "decision")}
