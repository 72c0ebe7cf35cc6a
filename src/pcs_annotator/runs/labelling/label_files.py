"""Files of labels that users name: how they are written, what they explain, and which may be overwritten."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import PcsWarning, TableError
from pcs_annotator.core.result_names import (
    CONFIDENCE,
    DECISION,
    FINAL_LABEL,
    LABEL,
    LABEL_SET,
    REASON,
    REVIEWER,
    VERDICT,
    probability_name,
    score_name,
)
from pcs_annotator.judging.model import Model
from pcs_annotator.runs.certificate_text import about_confidence, promised
from pcs_annotator.runs.files import runs
from pcs_annotator.runs.labelling.run_table import lost_rows
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.tables import sources, tables
from pcs_annotator.tables.table_files import STDIO, Dialect, ending_of
from pcs_annotator.tables.table_stream import TableStream
from pcs_annotator.tables.table_writer import TableStyle
from pcs_annotator.tables.workbook import WORKBOOK, excel_dialect, refuse_too_many_rows
from pcs_annotator.version import __version__


def style_of(request: RunRequest, stream: TableStream, out: Path | str, model: Model) -> TableStyle:
    """Return how a file of labels is written: a CSV file like the data, or for Excel if that was requested."""
    dialect = stream.dialect or Dialect()
    if dialect.delimiter == "\t" and ending_of(stream.name).kind != ending_of(str(out)).kind:
        dialect = replace(dialect, delimiter=",")  # the tabs of .tsv are not expected in .csv
    return TableStyle(
        dialect=excel_dialect() if request.excel else dialect,
        spreadsheet_safe=request.spreadsheet_safe or request.excel,
        about=list(about_labels(model, request.folder, stream.name)),
        kind=request.format,
    )


def about_labels(model: Model, folder: Path, data: str) -> Iterator[tuple[str, str]]:
    """Yield what the sheet of explanations has: where the labels come from, and what columns and decisions mean."""
    yield "data", data
    yield "run", str(folder)
    yield "written", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    yield "software", f"perceived-confidence {__version__}"
    if model.certificate is None:
        yield "promise", "nothing is promised"
    else:
        headline, details = promised(model.certificate)
        yield "promise", "\n".join([headline.removeprefix("promise: "), *details])
    yield LABEL, "the most probable label"
    rough = about_confidence(model)
    yield CONFIDENCE, "probability that the label is right, learned from gold labels" + (rough and f"; {rough}")
    yield DECISION, "whether the label can be used as it is"
    yield "accept", "the label can be used: the promise is about these rows"
    yield "agree", "all answers give this label, which promises nothing, because there were too few gold labels"
    yield "review", "a person should decide"
    yield REASON, "why, in plain words"
    yield LABEL_SET, "the labels that cannot be ruled out, if such sets were requested"
    yield score_name("…"), "Perceived Confidence Score of every label: its share of the weighted answers"
    yield probability_name("…"), "calibrated probability of every label"
    yield f"{VERDICT}, {REVIEWER}, {FINAL_LABEL}", "what people decided, who, and the label to use; only after a review"


def refuse_in_the_way(out: Path | str, request: RunRequest, rows: int, data: tables.Dataset | str) -> bool:
    """Raise for a file that cannot have these rows or must not be overwritten; return whether it is set aside first.

    `data` is the table or, if it is not in memory, a hash of it.
    """
    if ending_of(str(out)).kind == WORKBOOK:
        refuse_too_many_rows(rows, str(out))
    why = _in_the_way(out, runs.RunFolder(request.folder), data)
    if why and not request.replace:
        raise TableError(f"{out} {why}: name another file with -o, or add --replace, which keeps it under a dated name")
    return bool(why)


def _in_the_way(out: Path | str, folder: runs.RunFolder, data: tables.Dataset | str) -> str:
    """Return why a file must not be overwritten; empty if it may be."""
    marks = _marks(out, folder)
    if not marks:
        return ""
    if not marks.items() <= _written(folder).items():
        return "exists, and was not written by this run, or has been changed since"
    if isinstance(data, str):
        known = runs.read_json(folder.labelled).get("data", {})
        return "" if all(known.get(place) == data for place in marks) else "has labels of other data"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)  # the user knows this file, its sheets and its encoding
        before = sources.read_source(out, replace(data.columns, gold=None))
    lost = lost_rows(before.items, data.items, data.name)
    return lost and f"has labels {lost}"


def note_written(folder: runs.RunFolder, out: Path | str, data: str = "") -> None:
    """Note that this run wrote a file of labels, and of what large table."""
    for place, mark in _marks(out, folder).items():
        known = runs.read_json(folder.labelled) if folder.labelled.exists() else {}
        of_data = {**known.get("data", {}), place: data} if data else known.get("data", {})
        values: dict[str, Any] = {"files": {**_written(folder), place: mark}}
        runs.write_json(folder.labelled, {**values, "data": of_data} if of_data else values)


def _marks(out: Path | str, folder: runs.RunFolder) -> Mapping[str, str]:
    return {} if out == STDIO else runs.signature(out, folder.path)


def _written(folder: runs.RunFolder) -> Mapping[str, str]:
    """Return path → hash of the files of labels that a run has written."""
    if not folder.labelled.exists():
        return {}
    remedy = "remove it; files of labels that are there are then not overwritten without --replace"
    with runs.expecting(folder.labelled, remedy):
        return dict(runs.read_json(folder.labelled, remedy)["files"])
