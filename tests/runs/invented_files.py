"""Invented files, each made by a real library: how each is written, and what must be read from it or said."""

import codecs
import csv
import gzip
import io
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl
import pyarrow as pa
import zstandard
from pyarrow import parquet

from pcs_annotator.tables.source_files import AS_FOUND, Reading

Row = Mapping[str, str | None]


class Case(NamedTuple):
    """A file."""

    name: str  # which is the name of the test, too
    make: Callable[[Path], object]  # writes it
    rows: Sequence[Row] | None = None  # what is in it; None if it must be refused
    words: Sequence[str] = ()  # of the refusal or the warning; without a comma in a remedy, one per part
    reading: Reading = AS_FOUND  # what the user says about it


GERMAN = [
    {"id": "1", "text": "Der Zug fährt nicht, „schade“ – sagt Jörg.", "gold": "spät"},
    {"id": "2", "text": "Zwei\nZeilen; und ein Strichpunkt", "gold": "gut"},
    {"id": "3", "text": "Größe: 3,5 m", "gold": ""},
]
PLAIN = [
    {"id": "1", "text": "One, two; three", "gold": "good"},
    {"id": "2", "text": 'She said "no"', "gold": "bad"},
    {"id": "3", "text": "The end", "gold": ""},
]
RUSSIAN = [{"id": "1", "text": "Погода сегодня хорошая, но поезд опоздал."}, {"id": "2", "text": "Я не понимаю."}]
JAPANESE = [
    {"id": "1", "text": "今日は天気がいいですが、電車が遅れました。"},
    {"id": "2", "text": "この製品は良いです。"},
]
CHINESE = [{"id": "1", "text": "今天天气很好，但是火车晚点了。"}, {"id": "2", "text": "这个产品非常好。"}]
POLISH = [{"id": "1", "text": "Zażółć gęślą jaźń."}, {"id": "2", "text": "Dziękuję, proszę przyjść później."}]


def nothing(rows: Sequence[Row]) -> list[Row]:
    """Return rows as typed formats read them: an empty cell is no value."""
    return [{name: value or None for name, value in row.items()} for row in rows]


def text_of(rows: Sequence[Row], delimiter: str = ",", end: str = "\n", quoting: Any = csv.QUOTE_MINIMAL) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return text.getvalue()


def table(rows: Sequence[Row], encoding: str = "utf-8", bom: bytes = b"", **dialect: Any) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(bom + text_of(rows, **dialect).encode(encoding))


def raw(data: str | bytes, encoding: str = "utf-8") -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data if isinstance(data, bytes) else data.encode(encoding))


def lines(rows: Sequence[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def workbook(*sheets: tuple[str, Sequence[Sequence[Any]]], change: Any = None) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets:
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(list(row))
        if change is not None:
            change(book)
        book.save(path)

    return make


def cells(rows: Sequence[Row]) -> list[list[Any]]:
    return [list(rows[0]), *(list(row.values()) for row in rows)]


def sqlite(*statements: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()

    return make


def packed(data: bytes, name: str) -> Callable[[Path], object]:
    pack = gzip.compress if name == "gz" else zstandard.compress
    return lambda path: path.write_bytes(pack(data))


def parquet_bytes(rows: Sequence[Row]) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(rows)), file)
    return file.getvalue()


def _merge(book: Any) -> None:
    book["Daten"].merge_cells("A2:A3")


def _far_cell(book: Any) -> None:
    book["Daten"]["XFD1048576"] = "x"


COMPOUND = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(500)  # how old workbooks, and those with a password, begin
GUESSED = "(guessed; --encoding overrides)"
LATE = [{"id": str(number), "text": "plain"} for number in range(30_000)] + [{"id": "last", "text": "café"}]

ENCODINGS = [
    Case("utf-8.csv", table(GERMAN), GERMAN),
    Case("utf-8-bom.csv", table(GERMAN, "utf-8-sig", delimiter=";", end="\r\n"), GERMAN),
    Case("utf-16-le-bom.txt", table(GERMAN, "utf-16-le", codecs.BOM_UTF16_LE, delimiter="\t", end="\r\n"), GERMAN),
    Case("utf-16-be-bom.csv", table(GERMAN, "utf-16-be", codecs.BOM_UTF16_BE), GERMAN),
    Case("utf-16-le.csv", table(GERMAN, "utf-16-le"), None, ["is not a text file", "--encoding"]),
    Case("named-utf-16.tsv", table(CHINESE, "utf-16-be"), CHINESE, reading=Reading(encoding="utf-16-be")),
    Case("windows-1252.csv", table(GERMAN, "cp1252", delimiter=";", end="\r\n"), GERMAN, ["cp1252", GUESSED]),
    Case("mac.csv", table(GERMAN, "mac-roman", delimiter=";", end="\r"), GERMAN, reading=Reading(encoding="mac-roman")),
    Case("windows-1250.csv", table(POLISH, "cp1250", delimiter=";"), POLISH, ["cp1250", GUESSED]),
    Case("shift-jis.csv", table(JAPANESE, "cp932"), JAPANESE, ["cp932", GUESSED]),
    Case("gb18030.csv", table(CHINESE, "gb18030"), CHINESE, ["gb18030", GUESSED]),
    Case("one-late-letter.csv", table(LATE, "cp1252"), LATE, ["cp1252", GUESSED]),
    Case(
        "wrong-encoding.csv",
        table(GERMAN, "cp1252"),
        None,
        ["not in utf-8", "line 2", "--encoding"],
        Reading(encoding="utf-8"),
    ),
    Case(
        "unknown-encoding.csv", table(PLAIN), None, ["no encoding 'utf-9'", "windows-1252"], Reading(encoding="utf-9")
    ),
    Case(
        "against-its-mark.csv",
        table(PLAIN, "utf-16"),
        None,
        ["mark of utf-16-le", "leave --encoding out"],
        Reading(encoding="cp1252"),
    ),
]
DELIMITERS = [
    Case("tab.tsv", table(PLAIN, delimiter="\t"), PLAIN),
    Case("sep-line.csv", raw("sep=;\r\n" + text_of(PLAIN, ";", "\r\n")), PLAIN),
    Case("all-quoted.csv", table(PLAIN, delimiter=";", quoting=csv.QUOTE_ALL), PLAIN),
    Case("carriage-returns.csv", table(GERMAN, end="\r", quoting=csv.QUOTE_ALL), GERMAN),
    Case(
        "one-column.txt",
        raw("text\nWell, well, well; yes: no\nThe end\n"),
        [{"text": "Well, well, well; yes: no"}, {"text": "The end"}],
    ),
    Case("one-column-speech.txt", raw('text\n"Yes," he said.\nNo.\n'), [{"text": '"Yes," he said.'}, {"text": "No."}]),
    Case("trailing-delimiter.csv", raw("id;text;\n1;One, two;\n"), [{"id": "1", "text": "One, two", "column_3": ""}]),
    Case(
        "decimal-commas.csv",
        raw("id;text;price\n1;a, b, c;3,5\n2;d;4,0\n"),
        [{"id": "1", "text": "a, b, c", "price": "3,5"}, {"id": "2", "text": "d", "price": "4,0"}],
    ),
    Case(
        "empty-lines.csv",
        raw("\n\nid,text\n\n1,one\n\n2,two\n\n"),
        [{"id": "1", "text": "one"}, {"id": "2", "text": "two"}],
    ),
    Case(
        "comma-in-rows.csv",
        raw("id,text\n1,one\n2,two, three\n"),
        None,
        ["row 3", "Expected 2 columns, got 3", "in quotes"],
    ),
]
FORMATS = [
    Case(
        "numbers.xlsx",
        workbook(
            (
                "Daten",
                [
                    ["id", "text", "when", "ok"],
                    [1, "One", date(2026, 3, 1), True],
                    [2.5, " two ", datetime(2026, 3, 1, 14, 30), False],
                ],
            )
        ),
        [
            {"id": "1", "text": "One", "when": "2026-03-01", "ok": "TRUE"},
            {"id": "2.5", "text": " two ", "when": "2026-03-01 14:30:00", "ok": "FALSE"},
        ],
    ),
    Case(
        "second-sheet.xlsx",
        workbook(("Notes", [["only a remark"]]), ("Daten", cells(PLAIN))),
        nothing(PLAIN),
        ["2 sheets", "'Daten' is read", "--sheet"],
    ),
    Case(
        "sheet-by-name.xlsm", workbook(("A", cells(PLAIN)), ("B", cells(RUSSIAN))), RUSSIAN, reading=Reading(sheet="b")
    ),
    Case(
        "gaps.xlsx",
        workbook(("Daten", [[], [None, "id", None, "text", None], [], [None, 1, "a", "one"], [None, 2, None, "two"]])),
        [{"id": "1", "column_3": "a", "text": "one"}, {"id": "2", "column_3": None, "text": "two"}],
    ),
    Case("lines.jsonl", raw(lines(GERMAN)), GERMAN),
    Case("list.json.gz", packed(json.dumps(GERMAN).encode(), "gz"), GERMAN),
    Case("rows.parquet", raw(parquet_bytes(GERMAN)), GERMAN),
    Case("windows-1252.csv.zst", packed(text_of(GERMAN, ";").encode("cp1252"), "zst"), GERMAN, ["cp1252", GUESSED]),
]
DAMAGE = [
    Case(
        "letters.ods",
        raw(b"PK\x03\x04" + bytes(40) + b"opendocument.spreadsheet"),
        None,
        ["OpenDocument", "save it as .xlsx"],
    ),
    Case("old.xls", raw(COMPOUND), None, ["an old Excel workbook", "save it as .xlsx"]),
    Case(
        "title.xlsx",
        workbook(("Daten", [["Survey of 2026"], [], *cells(PLAIN)])),
        None,
        ["'Survey of 2026'", "title", "delete the rows above"],
    ),
    Case("merged.xlsx", workbook(("Daten", cells(PLAIN)), change=_merge), None, ["A2:A3 are merged", "split them"]),
    Case(
        "formula.xlsx",
        workbook(("Daten", [["id", "text"], [1, '=CONCATENATE("a","b")']])),
        None,
        ["formula in cell B2", "save it again"],
    ),
    Case(
        "far-cell.xlsx",
        workbook(("Daten", cells(PLAIN)), change=_far_cell),
        None,
        ["row 1,048,576, column 16,384", "delete the rows"],
    ),
    Case(
        "cut-off.xlsx",
        lambda path: (workbook(("Daten", cells(PLAIN)))(path), path.write_bytes(path.read_bytes()[:3000])),
        None,
        ["damaged", "save it again"],
    ),
    Case(
        "password.xlsx",
        raw(COMPOUND + "EncryptedPackage".encode("utf-16-le")),
        None,
        ["protected with a password", "save a copy without one"],
    ),
    Case("rows.feather", raw(b"ARROW1" + bytes(40)), None, ["an Arrow or Feather file", "Parquet"]),
    Case("really-excel.csv", workbook(("Daten", cells(PLAIN))), None, ["an Excel workbook", "ends in .xlsx"]),
    Case("really-lines.json", raw(lines(GERMAN)), None, ["one object per line", "ends in .jsonl"]),
    *(
        Case(name, sqlite("CREATE TABLE texts (id, text)"), None, ["an SQLite database", "sqlite3 -header -csv"])
        for name in ("texts.sqlite", "texts.db", "really-a-database.csv")
    ),
    Case(
        "texts.duckdb", raw(b"12345678DUCK" + bytes(4000)), None, ["a DuckDB database", "COPY name TO 'texts.parquet'"]
    ),
    Case(
        "cut-off.csv.gz",
        lambda path: path.write_bytes(gzip.compress(text_of(GERMAN * 99).encode())[:-40]),
        None,
        ["cannot be read", "runcated"],
    ),
]
CASES = [*ENCODINGS, *DELIMITERS, *FORMATS, *DAMAGE]
