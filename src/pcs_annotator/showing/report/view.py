"""The data behind the page: what the sections share, and the rows to list."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.events import Reviewed
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Item, Task, label_lookup
from pcs_annotator.core.variant import Variant
from pcs_annotator.core.votes import Votes
from pcs_annotator.runs.paths import Origin, read_origin
from pcs_annotator.runs.resolve_config import task_of
from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.tables.vote_files import read_variants

MOST_ROWS = 300
# Keeps the page below 400 kB, however long the texts are and however many models voted.
MOST_CELLS = 14_000
MOST_BYTES = 140_000
GRADED_CELL = 4  # a graded vote takes the room of so many hard ones
LEAST_ROOM, MOST_ROOM = 120, 1_500
CERTAIN_SHARE = 0.3
LOW = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the sections show."""

    result: RunResult  # the run
    task: Task  # the question and its labels
    origin: Origin  # version and data file of the run
    gold: tuple[str | None, ...]  # the gold label of every row, spelled as in the task; None where unknown
    prefix: str = ""  # what the ids of elements begin with, where a page has several variables
    parts: int = 1  # how many share the room of the page

    @property
    def data_name(self) -> str:
        """Name of the data file."""
        return self.origin.data or self.result.dataset.name

    @property
    def gold_rows(self) -> int:
        """Number of rows with a gold label."""
        return sum(label is not None for label in self.gold)

    @property
    def graded_answers(self) -> dict[str, int] | None:
        """Model → number of answers with log-probabilities; None if all votes are hard."""
        votes = self.result.votes
        if votes.grades is None:
            return None
        graded_counts = (~np.isnan(votes.grades).any(axis=-1)).sum(axis=(0, 2, 3))
        return dict(zip(votes.annotators, graded_counts.tolist(), strict=True))

    @property
    def confident(self) -> bool:
        """Whether labels have a confidence, not just a score."""
        return any(outcome.confidence is not None for outcome in self.result.outcomes)


def view_of(result: RunResult, prefix: str = "", parts: int = 1) -> View:
    """Return everything that the sections need about one of the parts of a run."""
    labels = tuple(result.votes.labels)
    lookup = label_lookup(labels)
    gold = result.dataset.gold or (None,) * len(result.outcomes)
    return View(
        result=result,
        task=task_of(result.config),
        origin=read_origin(result.folder),
        gold=tuple(None if label is None else labels[lookup[label.casefold()]] for label in gold),
        prefix=prefix,
        parts=parts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One listed row."""

    item: Item
    outcome: Outcome
    gold: str | None
    reviewed: Reviewed | None  # what people said about it in a review; None if nobody has
    votes: Votes  # those of all rows, for their names
    codes: Codes  # its own votes, `[annotator, relation, draw]`
    # the probability that each model gave to each label, `[annotator, relation, label]`, mean over draws; nan where
    # votes are hard, None if all are
    grades: Floats | None
    variants: Mapping[str, Variant]
    certainty: float  # confidence, or the score if there is none; -1 without a label
    marks: tuple[str, ...]  # the filters that it matches


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The listed rows, in file order, and the number of characters to show of each text."""

    rows: tuple[Row, ...]
    room: int
    totals: Mapping[str, int] = field(default_factory=dict)  # filter → all rows that match; listed ones if empty

    def marked(self, mark: str) -> int:
        """Return how many of the listed rows match a filter."""
        return sum(mark in row.marks for row in self.rows)

    def total(self, mark: str) -> int:
        """Return how many of all rows match a filter."""
        return self.totals.get(mark, 0) if self.totals else self.marked(mark)


def select(view: View) -> Selection:
    """Return all rows or, if there are too many, the least certain ones, with some others among them."""
    result = view.result
    cells = len(result.votes.annotators) * len(result.votes.relations)
    cells *= 1 if result.votes.grades is None else GRADED_CELL
    texts = 1 + len({count.relation for count in result.rewrites if count.status != "original"})
    most = max(20, min(MOST_ROWS, MOST_CELLS // max(cells, 1), MOST_BYTES // (LEAST_ROOM * texts)) // view.parts)
    sure = [certainty(outcome) for outcome in result.outcomes]
    chosen = _chosen(sure, [outcome.decision in ("accept", "agree") for outcome in result.outcomes], most)
    totals = dict(Counter(mark for at in range(len(result.outcomes)) for mark in _marks(view, at)))
    if result.whole is not None:  # decisions about all rows are counted, other marks are of the sample
        totals |= {"accept": result.counts.decisions.get("accept", 0), "review": result.counts.to_review}
    return replace(rows_at(view, chosen), totals=totals)


def rows_at(view: View, chosen: Sequence[int]) -> Selection:
    """Return the rows at these positions, with their variants and votes."""
    result = view.result
    variants = read_variants(result.folder.variants, [result.dataset.items[at].id for at in chosen])
    rows = tuple(_row(view, at, variants) for at in chosen)
    rewritten = sum(variant.status != "original" for row in rows for variant in row.variants.values())
    return Selection(rows=rows, room=_room(rows, texts=view.parts * (len(rows) + rewritten)))


def _chosen(sure: Sequence[float], certain: Sequence[bool], most: int) -> list[int]:
    """Return the positions of the least certain rows; some places are reserved for those accepted or agreed on."""
    order = sorted(range(len(sure)), key=sure.__getitem__)
    kept = [at for at in order if certain[at]][: int(CERTAIN_SHARE * most)] if len(order) > most else []
    listed = set(kept)
    others = [at for at in order if at not in listed]
    return sorted([*kept, *others[: most - len(kept)]])


def _room(rows: tuple[Row, ...], texts: int) -> int:
    """Return how many characters of each text fit; a Chinese character takes three bytes, an English one takes one."""
    written = "".join(row.item.text[:MOST_ROOM] for row in rows)
    width = len(written.encode("utf-8", "replace")) / max(len(written), 1)
    return int(min(max(MOST_BYTES / max(texts, 1), LEAST_ROOM) / max(width, 1.0), MOST_ROOM))


def certainty(outcome: Outcome) -> float:
    """Return the confidence of a label, or its score if it has none; -1 without a label."""
    if outcome.label is None:
        return -1.0
    return outcome.scores[outcome.label] if outcome.confidence is None else outcome.confidence


def _row(view: View, at: int, variants: Mapping[tuple[str, str], Variant]) -> Row:
    result = view.result
    item, outcome = result.dataset.items[at], result.outcomes[at]
    return Row(
        item=item,
        outcome=outcome,
        gold=view.gold[at],
        reviewed=result.verdicts.by_row.get(at),
        votes=result.votes,
        codes=result.votes.codes[at],
        grades=_grades(result.votes, at),
        variants={name: variants[item.id, name] for name in result.votes.relations if (item.id, name) in variants},
        certainty=certainty(outcome),
        marks=_marks(view, at),
    )


def _marks(view: View, at: int) -> tuple[str, ...]:
    outcome, gold, verdicts = view.result.outcomes[at], view.gold[at], view.result.verdicts.by_row
    decision = "people" if view.result.settled[at] else "none" if outcome.label is None else outcome.decision or ""
    marks = {
        "wrong": gold is not None and outcome.label is not None and not outcome.is_right(gold),
        "low": outcome.label is not None and certainty(outcome) < LOW,
        decision: True,
        "reviewed" if at in verdicts else "models": bool(verdicts),
    }
    return tuple(name for name, applies in marks.items() if name and applies)


def _grades(votes: Votes, at: int) -> Floats | None:
    if votes.grades is None:
        return None
    graded = (~np.isnan(votes.grades[at])).sum(axis=2)
    total = np.nansum(votes.grades[at], axis=2, dtype=np.float64)
    return np.where(graded > 0, total / np.maximum(graded, 1), np.nan)
