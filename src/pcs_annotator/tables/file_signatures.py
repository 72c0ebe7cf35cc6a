"""What the first bytes of a file say about its format."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pcs_annotator.tables.encodings import BOMS

HEAD = 4096
"""How many of its first bytes tell the format of a file."""
_PLAIN = ".csv"
_MAGIC: Mapping[bytes, str] = {
    b"\x1f\x8b": ".gz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"SQLite format 3\0": ".sqlite",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ".xls",
    b"FEA1": ".arrow",
    b"%PDF": ".pdf",
}
_RENAME: Mapping[str, str] = {
    ".gz": "compressed with gzip",
    ".zst": "compressed with Zstandard",
    ".parquet": "a Parquet file",
    ".xls": "an old Excel workbook, or an Excel workbook with a password",
    ".xlsx": "an Excel workbook",
    ".ods": "an OpenDocument spreadsheet",
    ".json": "a list in JSON",
    ".jsonl": "JSON with one object per line",
    ".csv": "a text file",
}
"""Kinds that are read under another extension."""
_CONVERT: Mapping[str, str] = {
    ".arrow": "an Arrow or Feather file: write it as Parquet: df.to_parquet('texts.parquet')",
    ".sqlite": "an SQLite database: export its table: sqlite3 -header -csv FILE 'SELECT * FROM name' > texts.csv",
    ".duckdb": "a DuckDB database: export its table: duckdb FILE \"COPY name TO 'texts.parquet'\"",
    ".zip": "a ZIP archive: unpack it, and name a file in it",
    ".pdf": "a PDF document: save its table as .xlsx or .csv",
    ".html": "a web page, whatever its extension says: open it in a spreadsheet and save it as .xlsx",
}
_FAMILIES = (
    {".xlsx", ".xlsm"},
    {".parquet", ".pq"},
    {".jsonl", ".ndjson"},
    {".csv", ".tsv", ".tab", ".txt"},
)
_KNOWN = {*_RENAME, *(ending for family in _FAMILIES for ending in family)}


def kind_of(head: bytes) -> str:
    """Return the extension that suits the first bytes of a file; `.csv` for a text that is nothing else.

    >>> kind_of(b"PAR1"), kind_of(b'{"text": "Hello"}'), kind_of(b"id;text")
    ('.parquet', '.jsonl', '.csv')
    """
    found = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")
    if found:
        return found
    if head[8:12] == b"DUCK":
        return ".duckdb"
    if head.startswith(b"PK\x03\x04"):
        if b"opendocument.spreadsheet" in head[:200]:
            return ".ods"
        return ".xlsx" if b"xl/" in head or b"[Content_Types].xml" in head else ".zip"
    return _kind_of_text(head)


def _kind_of_text(head: bytes) -> str:
    encoding = next((name for bom, name in BOMS if head.startswith(bom)), "latin-1")
    text = head.decode(encoding, "ignore").lstrip("\ufeff \t\r\n")
    if re.match(r"\[\s*[{\]]", text):
        return ".json"
    if re.match(r'\{\s*["}]', text):
        return ".jsonl"
    return ".html" if re.match(r"<(!doctype html|html|table|\?xml)", text, re.IGNORECASE) else _PLAIN


def other_kind(kind: str, ending: str) -> str:
    """Return what a file of some kind is, and what to do, if its extension says otherwise; empty if not."""
    if kind in _CONVERT:
        return _CONVERT[kind]
    if kind == ending or any({kind, ending} <= family for family in _FAMILIES):
        return ""
    if (kind == _PLAIN and ending in (".json", ".jsonl", ".ndjson")) or ending not in _KNOWN:  # then it is damaged
        return ""
    return f"{_RENAME[kind]}, not what its extension says: rename it so that it ends in {kind}"
