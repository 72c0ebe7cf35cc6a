"""The files of a run folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple

from pcs_annotator.tables.files import read_json, set_aside
from pcs_annotator.version import __version__


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The paths of a run's files: one step, one file.

    >>> RunFolder(Path("runs/news")).votes.as_posix()
    'runs/news/votes.parquet'
    """

    path: Path

    @property
    def settings(self) -> Path:
        """Settings, annotators and version of the run."""
        return self.path / "run.json"

    @property
    def items(self) -> Path:
        """Texts and gold labels."""
        return self.path / "items.parquet"

    @property
    def gold(self) -> Path:
        """Gold labels that people added after the run."""
        return self.path / "gold.csv"

    @property
    def coders(self) -> Path:
        """Labels that several people gave after the run, a column for each of them."""
        return self.path / "coders.csv"

    @property
    def to_label(self) -> Path:
        """Rows that a person should label next."""
        return self.path / "to_label.csv"

    @property
    def drawn(self) -> Path:
        """Which rows were written out for people so far, and how they were chosen."""
        return self.path / "drawn.csv"

    @property
    def audit(self) -> Path:
        """Accepted rows for a person to check."""
        return self.path / "audit.csv"

    @property
    def ledger(self) -> Path:
        """Every paid call."""
        return self.path / "ledger.db"

    @property
    def paid(self) -> Path:
        """What commands in this folder paid for, if it shares a ledger with others."""
        return self.path / "paid.json"

    @property
    def batches(self) -> Path:
        """Batches at their providers, open and ended."""
        return self.path / "batches.json"

    @property
    def variants(self) -> Path:
        """Every rewrite, or the reason why there is none."""
        return self.path / "variants.parquet"

    @property
    def votes(self) -> Path:
        """Every vote."""
        return self.path / "votes.parquet"

    @property
    def model(self) -> Path:
        """The fitted model."""
        return self.path / "model.json"

    @property
    def evaluation(self) -> Path:
        """How good the labels are, on rows that the fit did not see."""
        return self.path / "evaluation.json"

    @property
    def methods(self) -> Path:
        """How good other methods are on the same votes."""
        return self.path / "evaluation-methods.json"

    @property
    def labels(self) -> Path:
        """The user's rows with their labels; those of a large Parquet table are Parquet too."""
        packed = self.path / "labels.parquet"
        return packed if packed.exists() else self.path / "labels.csv"

    @property
    def whole(self) -> Path:
        """Exact counts of a large table, of which the other files have a sample."""
        return self.path / "whole.json"

    @property
    def all_votes(self) -> Path:
        """Every vote on a large table; `votes` has those on a sample."""
        return self.path / "all-votes.parquet"

    @property
    def report(self) -> Path:
        """The report page."""
        return self.path / "report.html"

    @property
    def labelled(self) -> Path:
        """Files of labels for new texts that this run made."""
        return self.path / "labelled.json"

    @property
    def looks(self) -> Path:
        """Looks at the gold labels, each of which may have shown a promise."""
        return self.path / "looks.json"

    @property
    def review(self) -> Path:
        """Draws and verdicts of a review, in the order in which they happened."""
        return self.path / "review.jsonl"

    @property
    def has_results(self) -> bool:
        """Whether there is something to lose: results, or labels that people gave."""
        return self.labels.exists() or self.gold.exists() or self.review.exists()

    def set_results_aside(self) -> Path:
        """Move all results and gold labels into one dated folder within this one; the ledger stays where it is."""
        results = (self.items, self.to_label, self.audit, self.drawn, self.variants, self.votes, self.model)
        shown = (self.evaluation, self.methods, self.report, self.labelled, self.looks, self.whole, self.all_votes)
        place = self.path / "earlier"
        if place.exists():  # left by an interruption
            set_aside(place)
        place.mkdir()
        # What says that there are results, and of what data, moves last: an interruption must not look like no results.
        for path in (*results, *shown, self.review, self.coders, self.gold, self.labels, self.settings):
            if path.exists():
                path.rename(place / path.name)
        return set_aside(place)


class Origin(NamedTuple):
    """Where a run comes from.

    Attributes:
        version: Version of the package that made it.
        data: Name of the user's file; empty if unknown.
    """

    version: str
    data: str


def read_origin(folder: RunFolder) -> Origin:
    """Return where the run in a folder comes from."""
    if not folder.settings.exists():
        return Origin(__version__, "")
    start = read_json(folder.settings)
    return Origin(start.get("version", __version__), PurePath(start.get("data", "")).name)
