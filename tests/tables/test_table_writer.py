from __future__ import annotations

import gzip
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import fsspec
import openpyxl
import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet
from python_calamine import CalamineWorkbook

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables import table_writer
from pcs_annotator.tables.files import set_aside
from pcs_annotator.tables.table_files import Dialect
from pcs_annotator.tables.table_writer import WRITTEN, TableStyle, writing_table
from pcs_annotator.tables.tables import write_table

TABLE = pa.table({"text": ['says "no",\nthen yes', None, "=1+1"], "number": [1.5, None, float("nan")]})
CSV = 'text,number\n"says ""no"",\nthen yes",1.5\n,\n=1+1,nan\n'
TSV = 'text\tnumber\n"says ""no"",\nthen yes"\t1.5\n\t\n=1+1\tnan\n'
JSON_LINES = (
    '{"text":"says \\"no\\",\\nthen yes","number":1.5}\n{"text":null,"number":null}\n{"text":"=1+1","number":null}\n'
)


def rows_of(path: Path, sheet: str = "rows") -> list[list[Any]]:
    return CalamineWorkbook.from_path(path).get_sheet_by_name(sheet).to_python()


def unpacked_zst(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


UNPACKED: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".zst": unpacked_zst}


@pytest.mark.parametrize("ending", WRITTEN)
def test_pieces_make_the_same_file_as_the_whole(tmp_path: Path, ending: str) -> None:
    with writing_table(tmp_path / f"pieces{ending}") as writer:
        for row in range(3):
            writer.write(TABLE.slice(row, 1))
    write_table(tmp_path / f"whole{ending}", TABLE)
    if ending in (".parquet", ".pq"):
        assert parquet.read_table(tmp_path / f"pieces{ending}").to_pylist()[:2] == TABLE.to_pylist()[:2]
        return
    if ending == ".xlsx":
        pieces, whole = (rows_of(tmp_path / f"{name}{ending}") for name in ("pieces", "whole"))
        assert pieces == whole == [["text", "number"], ['says "no",\nthen yes', 1.5], ["", ""], ["=1+1", ""]]
        return
    texts = [
        UNPACKED.get(path.suffix, bytes)(path.read_bytes()).decode()
        for path in (tmp_path / f"pieces{ending}", tmp_path / f"whole{ending}")
    ]
    kind = ending.removesuffix(".gz").removesuffix(".zst")
    assert texts == [{".csv": CSV, ".tsv": TSV, ".jsonl": JSON_LINES}[kind]] * 2


def test_parquet_has_groups_of_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_writer, "GROUP_ROWS", 1_000)
    with writing_table(tmp_path / "t.parquet") as writer:
        for start in range(0, 2_500, 100):
            writer.write(pa.table({"id": list(range(start, start + 100))}))
    file = parquet.ParquetFile(tmp_path / "t.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(3)] == [1_000, 1_000, 500]
    assert file.read()["id"].to_pylist() == list(range(2_500))


def test_values_that_json_lacks_are_texts(tmp_path: Path) -> None:
    write_table(tmp_path / "t.jsonl", pa.table({"day": [date(2026, 1, 2)], "raw": [b"x"], "list": [[1, 2]]}))
    assert (tmp_path / "t.jsonl").read_text(encoding="utf-8") == '{"day":"2026-01-02","raw":"b\'x\'","list":[1,2]}\n'


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".jsonl.zst", ".parquet", ".xlsx"])
def test_after_an_error_the_earlier_file_is_still_there_and_nothing_else(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    write_table(path, TABLE)
    before = path.read_bytes()

    def interrupted() -> None:
        with writing_table(path) as writer:
            writer.write(TABLE)
            raise ValueError("stopped")

    with pytest.raises(ValueError, match="stopped"):
        interrupted()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".jsonl.zst", ".parquet", ".xlsx"])
def test_when_there_is_no_room_the_earlier_file_stays(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    write_table(path, TABLE)
    before = path.read_bytes()
    large = pa.table({"text": [f"{number * 7919 % 100_003} text" for number in range(60_000)]})
    with no_file_larger_than(20_000), pytest.raises(TableError, match=rf"cannot write .*t{ending}: .*make room"):
        write_table(path, large)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_when_there_is_no_room_for_a_file_to_be_sent_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    large = pa.table({"text": ["text"] * 100_000})
    address = "memory://full/t.csv"
    with no_file_larger_than(20_000), pytest.raises(TableError, match=r"memory://full/t\.csv was not written.*TMPDIR"):
        write_table(address, large)
    assert not fsspec.filesystem("memory").exists("/full")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_sent_leaves_the_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    system = fsspec.filesystem("memory")
    address = "memory://refused/t.csv"
    write_table(address, TABLE)

    def refuses(*_: object, **__: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(type(system), "mv", refuses)
    with pytest.raises(TableError, match=r"memory://refused/t\.csv cannot be reached \(not yours\)"):
        write_table(address, TABLE.slice(0, 1))
    assert system.cat("/refused/t.csv").decode() == CSV
    assert system.ls("/refused", detail=False) == ["/refused/t.csv"]
    system.rm("/refused", recursive=True)


@pytest.mark.parametrize("place", ["t.ods", "t.xls", "t.gz", "t.parquet.gz", "t.xlsx.gz", "memory://a/t.ods"])
def test_other_kinds_of_files_are_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(TableError, match=r"cannot be written: use \.csv or \.tsv or \.jsonl or \.parquet"):
        write_table(place if "://" in place else tmp_path / place, TABLE)


def test_the_web_is_not_written_to() -> None:
    with pytest.raises(TableError, match=r"https://example\.org/t\.csv cannot be written"):
        write_table("https://example.org/t.csv?key=secret", TABLE)


def test_a_compressed_table_set_aside_is_still_known_as_one(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv.gz", TABLE)
    kept = set_aside(tmp_path / "t.csv.gz")
    assert kept.name.startswith("t-20")
    assert kept.name.endswith(".csv.gz")


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (Dialect(delimiter=";", line_end="\r\n"), b"text;number\r\nna\xc3\xafve;1.5\r\n"),
        (Dialect(bom=True, quote_all=True), b'\xef\xbb\xbf"text","number"\n"na\xc3\xafve","1.5"\n'),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_csv_is_written_in_a_dialect(tmp_path: Path, dialect: Dialect, expected: bytes, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    write_table(path, pa.table({"text": ["naïve"], "number": [1.5]}), TableStyle(dialect=dialect))
    assert UNPACKED.get(path.suffix, bytes)(path.read_bytes()) == expected


def test_workbook_has_one_sheet_and_numbers_as_numbers(tmp_path: Path) -> None:
    table = pa.table({"decision": ["mine"] * 2, "id": ["7", "8"], "pcs_decision": ["accept", "review"]})
    write_table(tmp_path / "t.xlsx", table)
    assert openpyxl.load_workbook(tmp_path / "t.xlsx").sheetnames == ["rows"]
    assert rows_of(tmp_path / "t.xlsx")[1] == ["mine", 7.0, "accept"]
