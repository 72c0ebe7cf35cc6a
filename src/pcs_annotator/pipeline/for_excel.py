"""The files of a run that people open, as Excel workbooks: labels, rows to label, and rows to check."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pcs_annotator.core.tabular import as_arrow
from pcs_annotator.errors import PcsWarning
from pcs_annotator.files import runs, sources, tables
from pcs_annotator.files.cells import original_cell
from pcs_annotator.files.human_files import RIGHT, WRONG
from pcs_annotator.files.result_columns import with_outcomes
from pcs_annotator.files.table_writer import TableStyle, writing_table
from pcs_annotator.files.workbook import MOST_ROWS, Sheet, write_workbook
from pcs_annotator.pipeline.human_review import keep_filled
from pcs_annotator.pipeline.label_files import about_labels, is_ours, note_written
from pcs_annotator.pipeline.run_folder import started
from pcs_annotator.pipeline.run_result import RunResult

if TYPE_CHECKING:
    import pyarrow as pa

VERDICTS = (RIGHT[0], WRONG[0])


def write_workbooks(result: RunResult, *, wanted: bool) -> None:
    """Write the labels of a run and the rows for people as workbooks beside the CSV files.

    If they are not `wanted`, those that an earlier command made are kept up to date.
    """
    folder = result.folder
    if not (wanted or runs.workbook_of(folder.labels).exists()):
        return
    _write_labels(result)
    write_to_label(folder, result.dataset, result.votes.labels)
    if result.to_audit:
        keep_filled(runs.workbook_of(folder.audit), "verdict")
        _write_sheet(folder.audit, {"verdict": VERDICTS})


def write_to_label(folder: runs.RunFolder, dataset: tables.Dataset, labels: Sequence[str]) -> None:
    """Write the rows to label as a workbook, if the run has workbooks; `dataset` has all gold that is known."""
    if runs.workbook_of(folder.labels).exists():
        gold = {(item.id, label) for item, label in zip(dataset.items, dataset.gold, strict=False)}
        keep_filled(runs.workbook_of(folder.to_label), "gold", gold)
        _write_sheet(folder.to_label, {"gold": labels})


def _write_labels(result: RunResult) -> None:
    folder, path = result.folder, runs.workbook_of(result.folder.labels)
    if result.counts.rows > MOST_ROWS:
        warnings.warn(
            f"{path.name} was not written, because an Excel sheet has at most {MOST_ROWS:,} rows: use {folder.labels}",
            PcsWarning,
            stacklevel=4,
        )
        return
    if not is_ours(path, folder):
        kept = runs.set_aside(path)
        warnings.warn(f"{path.name} was changed: it is kept as {kept.name}", PcsWarning, stacklevel=4)
    _, start = started(folder)
    style = TableStyle(about=list(about_labels(result.model, folder.path, start["data"])))
    with writing_table(path, style) as writer:
        for table in _labelled(result):
            writer.write(table)
    note_written(folder, path)


def _labelled(result: RunResult) -> Iterator[pa.Table]:
    """Yield the rows with their labels; those of a large table from its file."""
    if result.whole is None:
        people = result.verdicts.by_place(len(result.outcomes))
        dataset = result.dataset
        yield with_outcomes(dataset.table, result.outcomes, result.votes.labels, people, dataset.gold)
        return
    columns = tables.Columns(text=next(iter(result.whole.columns)), numbered=True)
    for chunk in sources.open_stream(result.folder.labels, columns).chunks():
        yield chunk.table


def _write_sheet(path: Path, choices: Mapping[str, Sequence[str]]) -> None:
    """Write a CSV file for people as a workbook, with lists to choose from."""
    if not path.exists():
        runs.workbook_of(path).unlink(missing_ok=True)
        return
    table = as_arrow(path)
    rows = ([original_cell(cell or "") for cell in row.values()] for row in table.to_pylist())
    sheet = Sheet(name=path.stem, header=table.column_names, rows=rows, choices=choices)
    write_workbook(runs.workbook_of(path), [sheet])
