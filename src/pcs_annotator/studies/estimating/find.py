"""`pcs find`: the rows that have a label, with a promised precision or recall."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pcs_annotator.base.errors import ConfigError, UndefinedMetric
from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.result_names import probability_name
from pcs_annotator.judging.promising.acceptance import Target, Threshold, precision_threshold, recall_threshold
from pcs_annotator.runs.run import Run
from pcs_annotator.studies.estimating.evidence import LabelEvidence, evidence_of
from pcs_annotator.tables.result_columns import SCORE_DECIMALS, with_columns
from pcs_annotator.tables.tables import write_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What to find."""

    label: str  # the label
    recall: float | None = None  # the least share of all rows with the label that must be found; None for no promise
    precision: float | None = None  # the least share of the rows found that must have the label; None for no promise
    certainty: float = 0.9  # how often such promises hold


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Rows found."""

    search: Search  # what was wanted
    rows: Integers  # positions of the rows, most probable first
    of: int  # number of all rows
    threshold: float  # the least probability of a row found
    recall: Threshold | None = None  # how recall was tested; None if it was not promised
    precision: Threshold | None = None  # the same for precision

    @property
    def sentence(self) -> str:
        """What is promised."""
        search, said = self.search, []
        if self.recall is not None:
            said.append(
                f"at least {search.recall:g} of all rows that are {search.label} ({self.recall.failures} of "
                f"{self.recall.rows} gold rows are missed)"
            )
        if self.precision is not None:
            said.append(
                f"of those found, at least {search.precision:g} are {search.label} ({self.precision.failures} of "
                f"{self.precision.rows} gold rows are wrong)"
            )
        return f"{len(self.rows):,} of {self.of:,} rows, certainty {search.certainty:g}: {'; '.join(said)}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        tests = {"recall": self.recall, "precision": self.precision}
        return {
            "label": self.search.label,
            "rows": len(self.rows),
            "of": self.of,
            "threshold": self.threshold,
            **{name: None if test is None else test._asdict() for name, test in tests.items()},
            "promise": self.sentence,
        }


def find(path: Path, search: Search, out: Path | None = None) -> SearchResult:
    """Find the rows that have a label, and write them with its probability, most probable first."""
    recorded = Run.open(path)
    evidence = evidence_of(recorded)
    if search.label not in evidence.labels:
        raise ConfigError(f"{search.label!r} is no label; the labels are {', '.join(evidence.labels)}")
    found = _found(evidence, search)
    if out is not None:
        import pyarrow as pa

        chance = evidence.expected[:, evidence.labels.index(search.label)][found.rows]
        column = {probability_name(search.label): pa.array(chance.round(SCORE_DECIMALS))}
        table = evidence.table.take(pa.array(found.rows))
        write_table(out, with_columns(table, column, evidence.labels))
    return found


def _found(evidence: LabelEvidence, search: Search) -> SearchResult:
    if search.recall is None and search.precision is None:
        raise ConfigError("say what to promise: --recall .9, --precision .9, or both")
    sample, code = evidence.sample, evidence.labels.index(search.label)
    if len(np.unique(sample.probability)) > 1:
        raise ConfigError("gold rows were drawn with different probabilities, and this needs a simple random sample")
    both = search.recall is not None and search.precision is not None
    delta = round(1 - search.certainty, 12) / (2 if both else 1)
    known, positive = evidence.held_out[:, code], sample.truth == code
    recall = precision = None
    if search.recall is not None:
        recall = recall_threshold(known, positive, Target(search.recall, delta))
    if search.precision is not None:
        precision = precision_threshold(known, positive, Target(search.precision, delta))
    if recall is not None and precision is not None and precision.least > recall.least:
        raise UndefinedMetric(
            f"no threshold has both: a precision of {search.precision:g} needs rows with a probability of "
            f"{precision.least:.3f} or more, a recall of {search.recall:g} needs all from {recall.least:.3f} on; "
            "promise less, or draw more gold rows"
        )
    # a lower threshold never misses more, so that of precision keeps both
    tested = precision or recall
    assert tested is not None
    chance = evidence.expected[:, code]
    rows = np.flatnonzero(chance >= tested.least)
    rows = rows[np.argsort(-chance[rows], kind="stable")]
    return SearchResult(
        search=search, rows=rows, of=len(chance), threshold=tested.least, recall=recall, precision=precision
    )
