from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pcs_annotator.files.sources import open_stream, read_source
from pcs_annotator.files.table_writer import writing_table
from pcs_annotator.files.tables import Columns

ROWS = 2_345


def table(rows: int = ROWS, first: int = 1) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table(
        {
            "id": [f"row {number}" for number in numbers],
            "text": [f'text {number}, "quoted"\nand so on' if number % 3 else None for number in numbers],
            "gold": ["good" if number % 7 == 0 else "" for number in numbers],
            "stars": [str(number % 5) for number in numbers],
        }
    )


def written(path: Path, rows: pa.Table | None = None) -> Path:
    with writing_table(path) as writer:
        for start in range(0, len(rows or table()), 1_000):
            writer.write((rows or table()).slice(start, 1_000))
    return path


def texts(data: pa.Table) -> list[dict[str, str]]:
    return [{name: value or "" for name, value in row.items()} for row in data.to_pylist()]


ENDINGS = [".csv", ".csv.gz", ".csv.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("rows", [1, 100, 1_000, 5_000])
def test_chunks_are_the_table_in_order(tmp_path: Path, ending: str, rows: int) -> None:
    stream = open_stream(written(tmp_path / f"data{ending}"), Columns())
    assert stream.columns == Columns(text="text", id="id", gold="gold")
    whole = read_source(tmp_path / f"data{ending}", Columns())
    for _ in range(2):
        chunks = list(stream.chunks(rows))
        assert {len(chunk.items) for chunk in chunks[:-1]} <= {rows}
        assert texts(pa.concat_tables([chunk.table for chunk in chunks])) == texts(table())
        assert tuple(item for chunk in chunks for item in chunk.items) == whole.items
        assert tuple(gold for chunk in chunks for gold in chunk.gold) == whole.gold
