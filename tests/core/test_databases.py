from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from pcs_annotator.core.table_files import Reading
from pcs_annotator.core.table_formats import local_file, table_file
from pcs_annotator.core.tabular import as_arrow
from pcs_annotator.errors import MissingPackage, PcsWarning, TableError


def sqlite(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path


def test_names_of_tables_and_columns_may_be_anything(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "a?b%20.db", 'CREATE TABLE "my ""texts""" ("a ""b""" TEXT, "select")')
    sqlite(path, """INSERT INTO "my ""texts\""" VALUES ('one', 2.5), ('two', 3)""")
    assert as_arrow(path).to_pylist() == [{'a "b"': "one", "select": "2.5"}, {'a "b"': "two", "select": "3"}]


def test_a_single_table_is_read_and_its_views_are_named(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "t.db", "CREATE TABLE a (text)", "INSERT INTO a VALUES ('x')", "CREATE VIEW b AS SELECT 1")
    with pytest.warns(PcsWarning, match=r"t\.db has views, too \(b\): the table 'a' is read \(--table names another\)"):
        assert as_arrow(path).to_pylist() == [{"text": "x"}]
    assert as_arrow(path, Reading(table="B")).to_pylist() == [{"1": "1"}]


@pytest.mark.parametrize(
    ("statements", "reading", "words"),
    [
        ((), Reading(), "has no tables"),
        (("CREATE TABLE a (b)",), Reading(table="c"), r"no table 'c' \(--table\); there are a"),
        (("CREATE TABLE a (b)", "INSERT INTO a VALUES (x'00ff')"), Reading(), r"column 'b' holds bytes \(BLOB\)"),
    ],
)
def test_what_is_no_table_of_texts_is_refused(
    tmp_path: Path, statements: tuple[str, ...], reading: Reading, words: str
) -> None:
    path = sqlite(tmp_path / "t.sqlite3", "PRAGMA user_version = 1", *statements)
    with pytest.raises(TableError, match=words):
        as_arrow(path, reading)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.sqlite", b"SQLite format 3\0" + bytes(range(256)) * 9, "cannot be read"),
        ("t.sqlite", b"id,text\n1,one\n", r"a text file.*ends in \.csv"),
        ("t.duckdb", b"SQLite format 3\0" + bytes(500), r"an SQLite database.*ends in \.sqlite"),
        ("t.db", b"", "is empty"),
        ("t.db.gz", b"x", "unpack it"),
    ],
)
def test_a_damaged_database_is_refused(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=words):
        as_arrow(tmp_path / name)


def test_a_database_elsewhere_is_to_be_copied(tmp_path: Path) -> None:
    file = table_file("s3://bucket/t.db", 9, lambda: pa.BufferReader(b""), remote=True)
    with pytest.raises(TableError, match="copy it to this machine"):
        file.contents()


def test_tables_of_duckdb_keep_their_order_and_types(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with closing(duckdb.connect(str(path))) as database:
        database.execute("CREATE TABLE t AS SELECT range AS id, 'text ' || range AS text FROM range(30000)")
    contents = local_file(path).contents()
    assert (contents.rows, contents.schema.field("id").type) == (30_000, pa.int64())
    assert as_arrow(path)["id"].to_pylist() == list(range(30_000))


def test_without_duckdb_its_files_name_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.duckdb").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingPackage, match="pip install duckdb"):
        as_arrow(tmp_path / "t.duckdb")
