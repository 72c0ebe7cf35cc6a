import functools
import http.server
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from pyarrow import parquet

from pcs_annotator.base.errors import MissingPackage, TableError
from pcs_annotator.tables.chunks import Columns, open_stream, read_source
from pcs_annotator.tables.find import as_arrow
from pcs_annotator.tables.write import write_table
from tests.runs.invented_files import PLAIN, cells, parquet_bytes, workbook


def rows(first: int, last: int) -> pa.Table:
    numbers = range(first, last + 1)
    return pa.table({"id": [str(number) for number in numbers], "text": [f"text {number}" for number in numbers]})


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    folder = tmp_path / "parts"
    for number in (1, 2, 3):
        write_table(folder / f"part-{number}.parquet", rows(10 * number - 9, 10 * number))
    (folder / "_SUCCESS").touch()
    (folder / ".part-1.parquet.crc").write_bytes(b"crc")
    (folder / "README.md").write_text("about", encoding="utf-8")
    return folder


@pytest.fixture
def memory() -> Iterator[str]:
    """An address in memory that is empty before and after."""
    system = fsspec.filesystem("memory")
    yield "memory://bucket"
    system.rm("/bucket", recursive=True) if system.exists("/bucket") else None


def ids(spec: Path | str) -> list[str]:
    return [item.id for item in read_source(spec, Columns()).items]


WHOLE = [str(number) for number in range(1, 31)]


def test_a_folder_or_a_pattern_is_one_table_in_the_order_of_names(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ids(parts) == WHOLE
    assert ids(parts / "*.parquet") == WHOLE
    assert ids(parts.parent / "**" / "part-?.parquet") == WHOLE
    assert ids(parts / "part-[23].parquet") == WHOLE[10:]
    assert ids(f"file://{parts}/part-1.parquet") == WHOLE[:10]
    assert ids(f"file://{parts}") == WHOLE
    monkeypatch.chdir(parts)
    assert ids(Path("*.parquet")) == WHOLE
    stream = open_stream(parts, Columns())
    assert (stream.name, stream.rows) == ("parts", 30)
    assert [len(chunk.items) for chunk in stream.chunks(12)] == [12, 12, 6]


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    write_table(tmp_path / "part[1].csv", rows(1, 3))
    write_table(tmp_path / "part1.csv", rows(7, 9))
    assert ids(tmp_path / "part[1].csv") == ["1", "2", "3"]


def test_columns_may_be_in_another_order_and_without_a_type_where_they_are_empty(parts: Path) -> None:
    more = rows(11, 20).select(["text", "id"]).append_column("note", pa.array(["x"] * 10))
    parquet.write_table(rows(1, 10).append_column("note", pa.nulls(10)), parts / "part-1.parquet")
    parquet.write_table(more, parts / "part-2.parquet")
    numbered = rows(21, 30).set_column(0, "id", pa.array(WHOLE[20:], pa.large_string()))
    parquet.write_table(numbered.append_column("note", pa.nulls(10)), parts / "part-3.parquet")
    assert ids(parts) == WHOLE
    chunks = list(open_stream(parts, Columns()).chunks(4))
    assert len({tuple(chunk.table.schema) for chunk in chunks}) == 1
    assert chunks[0].table.column_names == ["id", "text", "note"]


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_parts_with_other_columns_are_refused_with_both_names(tmp_path: Path, ending: str) -> None:
    write_table(tmp_path / f"a{ending}", rows(1, 10))
    write_table(tmp_path / f"b{ending}", rows(11, 20).rename_columns(["key", "text"]))
    first, second = f"{tmp_path.name}/a{ending}", f"{tmp_path.name}/b{ending}"
    message = f"{first} and {second} have different columns .only {first} has 'id'; only .* 'key'"
    with pytest.raises(TableError, match=message):
        open_stream(tmp_path, Columns())


def test_rows_of_json_parts_may_lack_columns(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}', encoding="utf-8")
    (tmp_path / "b.jsonl").touch()  # engines write such parts
    (tmp_path / "c.jsonl").write_text('{"id": "x", "text": "two"}', encoding="utf-8")
    assert ids(tmp_path) == ["1", "x"]


def test_a_damaged_part_and_types_that_cannot_be_reconciled_are_refused_with_their_names(parts: Path) -> None:
    damaged = parts / "part-2.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(TableError, match=r"parts/part-2\.parquet cannot be read"):
        open_stream(parts, Columns())
    parquet.write_table(rows(11, 20).set_column(0, "id", pa.array(range(10))), damaged)
    message = r"part-1\.parquet and parts/part-2\.parquet .*Field id has incompatible types: string vs int64"
    with pytest.raises(TableError, match=message):
        open_stream(parts, Columns())


def test_rows_before_a_part_that_was_removed_or_damaged_meanwhile_are_read(parts: Path) -> None:
    for problem in ("cannot be read", "is no longer there"):
        stream = open_stream(parts, Columns())
        chunks = stream.chunks(4)
        first = next(chunks)
        if problem == "cannot be read":
            whole = (parts / "part-3.parquet").read_bytes()
            (parts / "part-3.parquet").write_bytes(b"PAR1" + b"\xff" * 100 + whole[104:])
        else:
            (parts / "part-3.parquet").unlink()
        found = [item.id for item in first.items]
        found += [item.id for _ in range(4) for item in next(chunks).items]
        assert found == WHOLE[:20]
        with pytest.raises(TableError, match=rf"parts/part-3\.parquet {problem}"):
            next(chunks)
    with pytest.raises(TableError, match=r"parts/part-3\.parquet cannot be read"):
        stream.fingerprint()


def test_several_kinds_of_files_in_a_folder_are_refused_with_a_pattern_to_choose(parts: Path) -> None:
    write_table(parts / "more.csv", rows(1, 2))
    with pytest.raises(TableError, match=r"csv and .parquet files \(parts/more\.csv, .*'.*/parts/\*\.csv'"):
        open_stream(parts, Columns())
    with pytest.raises(TableError, match=r"csv and .parquet files .*'.*/parts/\*\.csv'"):
        open_stream(parts / "*[vt]", Columns())


def test_a_folder_or_pattern_without_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match=r"empty is a folder without tables: .*empty/\*\*/\*\.parquet"):
        open_stream(tmp_path / "empty", Columns())
    with pytest.raises(TableError, match=r"no file matches .*\*\.csv: check"):
        open_stream(tmp_path / "*.csv", Columns())


def put(address: str, table: pa.Table, folder: Path) -> None:
    """Write a table to an address."""
    write_table(folder / Path(address).name, table)
    fsspec.filesystem("memory").put_file(str(folder / Path(address).name), address.removeprefix("memory:/"))


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl.zst", ".parquet"])
def test_tables_at_an_address_are_read_like_files(memory: str, ending: str, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        put(f"{memory}/parts/part-{number}{ending}", rows(10 * number - 9, 10 * number), tmp_path)
    assert ids(f"{memory}/parts") == WHOLE
    assert ids(f"{memory}/parts/*{ending}") == WHOLE
    assert ids(f"{memory}/parts/part-2{ending}") == WHOLE[10:20]
    stream = open_stream(f"{memory}/parts", Columns())
    assert [len(chunk.items) for chunk in stream.chunks(12)] == [12, 12, 6]
    before = stream.fingerprint()
    assert before == open_stream(f"{memory}/parts", Columns()).fingerprint()
    put(f"{memory}/parts/part-3{ending}", rows(41, 45), tmp_path)
    assert before != open_stream(f"{memory}/parts", Columns()).fingerprint()


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("memory://bucket/none.csv", r"there is no file memory://bucket/none\.csv"),
        ("memory://bucket/*.csv", r"no file matches memory://bucket/\*\.csv"),
        ("nowhere://bucket/a.csv", r"nowhere://bucket/a\.csv is not a usable address \(Protocol not known: nowhere"),
    ],
)
def test_an_address_without_a_table_is_refused(address: str, problem: str) -> None:
    with pytest.raises(TableError, match=problem):
        open_stream(address, Columns())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingPackage, match=r"s3://bucket/a\.csv needs another package \(Install s3fs"):
        open_stream("s3://bucket/a.csv", Columns())
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingPackage, match=r"pip install 'perceived-confidence\[remote\]'"):
        open_stream("s3://bucket/a.csv", Columns())


def test_a_failure_of_the_server_while_reading_names_the_address(
    memory: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(f"{memory}/a.csv", rows(1, 10), tmp_path)
    stream = open_stream(f"{memory}/a.csv", Columns())

    def fails(*_: object) -> bytes:
        raise RuntimeError("the server has gone\nfor good")

    monkeypatch.setattr(type(fsspec.filesystem("memory").open(f"{memory}/a.csv")), "read", fails)
    with pytest.raises(TableError, match=r"memory://bucket/a\.csv cannot be reached \(the server has gone\)"):
        next(stream.chunks())


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_file_is_read_from_the_web_and_its_key_is_not_shown(tmp_path: Path, web: str, name: str) -> None:
    write_table(tmp_path / name, rows(1, 30))
    dataset = read_source(f"{web}/{name}?key=secret", Columns())
    assert [item.id for item in dataset.items] == WHOLE
    assert dataset.name == f"{web}/{name}"
    with pytest.raises(TableError, match=r"there is no file [^?]*none\.csv: check the address"):
        read_source(f"{web}/none.csv?key=secret", Columns())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"%PDF-1.7 \0\1\2", "a PDF document: save its table"),
        ("t.xlsx", b"PK\x03\x04" + bytes(40) + b"notes.txt", "a ZIP archive: unpack it"),
        ("t.xls", b"<html><table><tr><td>text</td></tr></table></html>", "a web page"),
        ("t.xlsx", b"id\ttext\n1\tone\n", r"a text file.*ends in \.csv"),
        ("t.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(90), "an old Excel workbook"),
        ("t.ods", b"PK\x03\x04" + bytes(40) + b"opendocument.spreadsheet", "save it as .xlsx or .csv"),
        ("t.csv", b'{"text": "one"}\n', r"one object per line.*\.jsonl"),
        ("t.jsonl", b'[{"text": "one"}]', r"a list in JSON.*\.json"),
        ("t.csv", b"\x1f\x8b\x08" + bytes(20), r"compressed with gzip.*\.gz"),
        ("t.feather", b"FEA1" + bytes(100), "Arrow or Feather file: write it as Parquet"),
        ("t.duckdb", b"12345678DUCK" + bytes(4000), "a DuckDB database.*COPY name TO"),
        ("t.csv", b"SQLite format 3\0" + bytes(4000), "an SQLite database.*sqlite3 -header -csv"),
        ("t.parquet", b"ARROW1" + bytes(40), "an Arrow or Feather file"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_to_do(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=words):
        as_arrow(tmp_path / name)


def test_a_file_with_an_unknown_extension_is_what_it_begins_like(tmp_path: Path) -> None:
    path = tmp_path / "export.2026"
    rows = [[str(cell) for cell in row.values()] for row in PLAIN]
    text = "".join(";".join(row) + "\n" for row in [list(PLAIN[0]), *rows[2:]])
    makers: list[Callable[[Path], object]] = [
        lambda path: path.write_bytes(parquet_bytes(PLAIN)),
        workbook(("A", cells(PLAIN))),
        lambda path: path.write_text(text, encoding="utf-8"),
    ]
    for make in makers:
        make(path)
        assert as_arrow(path).to_pylist()[-1]["text"] == "The end"
