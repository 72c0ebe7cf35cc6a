"""What is known about all rows of a large table, of which a run folder keeps a sample: `whole.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pcs_annotator.core.outcome import Counts
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.tables.files import expecting, read_json, write_json

REMEDY = "pcs run writes it again, from the answers in the ledger"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTable:
    """The rows of a large table with their labels."""

    counts: Counts  # how many rows have which label
    columns: Sequence[str]  # the user's own columns in the file of labels
    made_from: str = ""  # a digest of all that the labels depend on: data, questions and model
    signature: Mapping[str, str] = field(default_factory=dict)  # a hash of the file of labels
    spreadsheet_safe: bool = False  # whether formulas were made safe in it
    tally: Mapping[str, Any] = field(default_factory=dict)  # what was counted while asking
    ledger: Mapping[str, Any] = field(default_factory=dict)  # how many calls the ledger had, and when


def write_whole(folder: RunFolder, whole: WholeTable) -> None:
    """Write what is known about all rows of a large table."""
    write_json(folder.whole, asdict(whole))


def read_whole(folder: RunFolder) -> WholeTable | None:
    """Return what is known about all rows of a large table; None if the folder has none, or is not finished."""
    if not folder.whole.exists():
        return None
    values = read_json(folder.whole, REMEDY)
    values.pop("schema", None)
    with expecting(folder.whole, REMEDY):
        return WholeTable(**{**values, "counts": Counts(**values["counts"])})
