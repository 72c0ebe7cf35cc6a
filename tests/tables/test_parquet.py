from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.chunks import Columns, open_stream
from pcs_annotator.tables.find import read_file


def test_rows_before_the_damaged_place_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    texts = [f"text {number}" for number in range(3_000)]
    parquet.write_table(pa.table({"text": texts}), path, row_group_size=1_000, compression="zstd")
    start = parquet.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    damaged = bytearray(path.read_bytes())
    damaged[start + 30 : start + 60] = b"\xff" * 30
    path.write_bytes(damaged)
    seen: list[str] = []
    with pytest.raises(TableError, match=r"t\.parquet"):
        seen.extend(item.text for chunk in open_stream(path, Columns()).chunks(500) for item in chunk.items)
    assert seen == texts[:2_000]


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"text": pa.array(["one", "two", "tree"])})
    parquet.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"tree", b"tr\xbc\xbc"))
    with pytest.raises(TableError, match=r"t\.parquet cannot be read .*UTF8 sequence at string index 2.*save it again"):
        read_file(path)
