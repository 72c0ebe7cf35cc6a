import gzip
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet
from python_calamine import CalamineWorkbook

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables import parquet as parquet_files
from pcs_annotator.tables.files import set_aside
from pcs_annotator.tables.find import as_arrow
from pcs_annotator.tables.source_files import STDIO, Dialect
from pcs_annotator.tables.write import PAGES, WRITTEN, OutputPolicy, write_table, writing_table

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
    monkeypatch.setattr(parquet_files, "GROUP_ROWS", 1_000)
    with writing_table(tmp_path / "t.parquet") as writer:
        for start in range(0, 2_500, 100):
            writer.write(pa.table({"id": list(range(start, start + 100))}))
    file = parquet.ParquetFile(tmp_path / "t.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(3)] == [1_000, 1_000, 500]
    assert file.read()["id"].to_pylist() == list(range(2_500))


def test_values_that_json_lacks_are_texts(tmp_path: Path) -> None:
    write_table(tmp_path / "t.jsonl", pa.table({"day": [date(2026, 1, 2)], "raw": [b"x"], "list": [[1, 2]]}))
    assert (tmp_path / "t.jsonl").read_text(encoding="utf-8") == '{"day":"2026-01-02","raw":"b\'x\'","list":[1,2]}\n'


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".jsonl.zst", ".parquet", ".xlsx"])
def test_after_an_error_or_without_room_the_earlier_file_is_still_there_and_nothing_else(
    tmp_path: Path, ending: str
) -> None:
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
    large = pa.table({"text": [f"{number * 7919 % 100_003} text" for number in range(60_000)]})
    with no_file_larger_than(20_000), pytest.raises(TableError, match=rf"cannot write .*t{ending}: .*make room"):
        write_table(path, large)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("place", ["t.ods", "t.gz", "t.parquet.gz", "t.xlsx.gz"])
def test_other_kinds_of_files_are_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(TableError, match=r"cannot be written: use \.csv or \.tsv or \.jsonl or \.parquet"):
        write_table(tmp_path / place, TABLE)


def test_an_address_is_not_written_to_and_standard_output_is_never_in_the_way() -> None:
    OutputPolicy().check(Path(STDIO))
    assert OutputPolicy().make_way(Path(STDIO)) is None
    for write in (lambda path: write_table(path, TABLE), OutputPolicy().check):
        with pytest.raises(TableError, match=r"s3:/bucket/t\.csv is an address: name a file here to write"):
            write(Path("s3://bucket/t.csv"))


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
    write_table(path, pa.table({"text": ["naïve"], "number": [1.5]}), OutputPolicy(dialect=dialect))
    assert UNPACKED.get(path.suffix, bytes)(path.read_bytes()) == expected


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_line_ends_of_any_kind_stay_in_their_cell(tmp_path: Path, line_end: str) -> None:
    table, path = pa.table({"id": ["1", "2", "3"], "text": ["a\rb", "a\r\nb", "a\nb\r\n"]}), tmp_path / "t.csv"
    write_table(path, table, OutputPolicy(dialect=Dialect(line_end=line_end)))
    assert as_arrow(path).to_pydict() == table.to_pydict()


def test_workbook_has_one_sheet_and_numbers_as_numbers(tmp_path: Path) -> None:
    table = pa.table({"decision": ["mine"] * 2, "id": ["7", "8"], "pcs_decision": ["accept", "review"]})
    write_table(tmp_path / "t.xlsx", table)
    assert openpyxl.load_workbook(tmp_path / "t.xlsx").sheetnames == ["rows"]
    assert rows_of(tmp_path / "t.xlsx")[1] == ["mine", 7.0, "accept"]


FORMULA = pa.table({"text": ["=1+1"]})


def test_a_file_that_exists_is_an_error_before_and_when_it_is_written(tmp_path: Path) -> None:
    policy, out = OutputPolicy(), tmp_path / "page.html"
    policy.check(out, PAGES)
    policy.write_page(out, "first")
    for again in (lambda: policy.check(out, PAGES), lambda: policy.write_page(out, "second")):
        with pytest.raises(TableError, match=r"page\.html exists: name another file with -o, or add --replace"):
            again()
    assert out.read_text() == "first"


def test_with_replace_the_earlier_file_is_kept_under_a_dated_name(tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    out.write_text("mine")
    OutputPolicy(replace=True, spreadsheet_safe=True).write_table(out, FORMULA)
    assert out.read_text().split() == ["text", "'=1+1"]
    assert [kept.read_text() for kept in tmp_path.glob("table-20*.csv")] == ["mine"]


def test_a_file_that_is_read_is_not_written_even_with_replace(tmp_path: Path) -> None:
    out = tmp_path / "data.csv"
    out.write_text("text\n")
    with pytest.raises(TableError, match=r"data\.csv is read here"):
        OutputPolicy(replace=True).check(out, inputs=[None, out])


def test_labels_are_faithful_unless_they_are_to_be_safe_in_a_spreadsheet(tmp_path: Path) -> None:
    table = pa.table({"=name": ["=1+1", "plain", None], "number": [-1.5, 2.0, None]})
    path = tmp_path / "labels.csv"
    write_table(path, table)
    assert path.read_text(encoding="utf-8") == "=name,number\n=1+1,-1.5\nplain,2.0\n,\n"
    write_table(path, table, OutputPolicy(spreadsheet_safe=True))
    assert path.read_text(encoding="utf-8") == "'=name,number\n'=1+1,-1.5\nplain,2.0\n,\n"
