"""CSV files: their delimiter, found by looking at several rows, their header and their rows."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables import table_files
from pcs_annotator.tables.arrow import arrow_csv, pa
from pcs_annotator.tables.encodings import UTF8
from pcs_annotator.tables.table_files import Contents, Dialect, TextFile

USUAL = ",;\t|"  # delimiters, the most usual first
RARE = ":^~#!*%&@$\x01\x1e\x1f"  # delimiters only if several rows agree: texts have them, too
NO_DELIMITER = "\x1c"  # what separates the cells of a file with one column: a character that texts do not have
SAMPLE = 64 * 1024  # how many characters tell the delimiter
_TOLD = re.compile(r'"?sep=(.)"?(\r\n|\r|\n)', re.IGNORECASE)  # the first line of files that tell Excel their delimiter
_EMPTY_LINES = re.compile(r"[\r\n]*")


class Header(NamedTuple):
    """The beginning of a CSV file."""

    names: list[str]  # its columns
    skip: int  # how many lines come before the first row, the header and empty ones included
    delimiter: str  # what separates cells
    quoted: bool  # whether cells can be in quotes
    dialect: Dialect  # how another file is written alike


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFile(TextFile):
    """Rows separated by commas, tabs, semicolons or the like; all cells are texts, whatever they look like."""

    kind: ClassVar[str] = "CSV"

    def contents(self, limit: int | None = None) -> Contents:
        """Return the columns of the header."""
        self._refuse_empty()
        with self._explained():
            self._refuse_other_kind()
            self._encoding(limit)
            header = self._header()
            if not header.names:
                raise EOFError("it has no header line")
        return Contents(table_files.schema_of_texts(header.names, self.name), None, header.dialect, self._note())

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows, about as many at a time as fit into a block."""
        given = 0
        with self._explained():
            try:
                for table in self._parsed(table_files.USUAL_BLOCK, schema.names, skip=0):
                    yield table
                    given += len(table)
            except pa.ArrowInvalid:  # perhaps because a row is longer than a block
                yield from self._parsed(table_files.BLOCK, schema.names, skip=given)

    def _parsed(self, block: int, wanted: Sequence[str], skip: int) -> Iterator[pa.Table]:
        ragged: list[Any] = []
        header = self._header()
        names = header.names

        def set_aside(row: Any) -> str:
            ragged.append(row)
            return "skip"

        with self._utf8() as stream:
            reader = arrow_csv.open_csv(
                stream,
                read_options=arrow_csv.ReadOptions(
                    # with threads, pyarrow does not know the row number
                    use_threads=False,
                    block_size=block,
                    column_names=names,
                    skip_rows_after_names=header.skip,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=header.delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=set_aside,
                    quote_char='"' if header.quoted else False,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, include_columns=wanted
                ),
            )
            for batch in chain(reader, [None]):
                if ragged:
                    raise _ragged(ragged[0], header, self.name)
                if batch is not None and skip < len(batch):
                    yield pa.Table.from_batches([batch.slice(skip)])
                skip -= min(skip, len(batch or ()))

    def _header(self) -> Header:
        encoding = self._encoding()
        with io.TextIOWrapper(self._utf8(), encoding="utf-8-sig", newline="") as lines:
            start = lines.read(SAMPLE)
            if not re.search(r"[\r\n]", start):
                start += lines.readline(table_files.BLOCK) + lines.read(SAMPLE)
            whole = not lines.read(1)
        told = _TOLD.match(start)
        begin = _EMPTY_LINES.match(start, told.end() if told else 0).end()  # type: ignore[union-attr]  # it matches all
        sample = start[begin:]
        delimiter = told[1] if told else find_delimiter(sample, whole=whole)
        names = next(csv.reader(_lines(sample), delimiter=delimiter), [])
        line = next(iter(_lines(sample)), "")
        return Header(
            names=[name if name.strip() else f"column_{number}" for number, name in enumerate(names, 1)],
            skip=len(_lines(start[:begin])) + 1,
            delimiter=delimiter,
            quoted=delimiter != NO_DELIMITER or _quotes_match(sample, whole=whole),
            dialect=Dialect(
                delimiter="," if delimiter == NO_DELIMITER else delimiter,
                bom=encoding.bom or encoding.name != UTF8,
                line_end="\r\n" if line.endswith("\r\n") else "\n",
                quote_all=bool(names) and line.rstrip("\r\n") == delimiter.join(f'"{name}"' for name in names),
            ),
        )


def find_delimiter(sample: str, *, whole: bool = True) -> str:
    r"""Return the character that splits the header and the rows below it into the same number of cells.

    If no character does, it is one that splits the header, so that rows of another length are an error; a file whose
    header cannot be split has one column. `whole` says whether the sample is all of the file.

    >>> find_delimiter("id;text\n1;One, two, three\n"), find_delimiter("text\nOne, two, three\n") == NO_DELIMITER
    (';', True)
    """
    header = next(iter(_lines(sample)), "")
    widths = {one: _widths(sample, one, whole=whole) for one in USUAL + RARE if one in sample}
    splits = {one: found for one, found in widths.items() if found and found[0] > 1}
    agreed = {one: found for one, found in splits.items() if len({*found}) == 1}
    usual = [one for one in agreed if one in USUAL]
    rare = [one for one, found in agreed.items() if len(found) > 2 and f"{one} " not in header]
    unsure = [one for one in splits if one in USUAL]
    if usual or (rare and not unsure):
        # names of columns of votes have a |: without rows, it says nothing
        return max(usual or rare, key=lambda one: (len(agreed[one]) > 1 or one != "|", agreed[one][0]))
    return max(unsure, key=lambda one: splits[one].count(splits[one][0]) / len(splits[one]), default=NO_DELIMITER)


def _widths(sample: str, delimiter: str, *, whole: bool) -> list[int]:
    """Return the number of cells of every row, the header included."""
    found = [len(row) for row in csv.reader(_lines(sample), delimiter=delimiter) if row]
    return found if whole else found[:-1] or found


def _quotes_match(sample: str, *, whole: bool) -> bool:
    """Return whether quotes enclose cells, rather than words at the beginning of a text."""
    try:
        for _ in csv.reader(_lines(sample), delimiter=NO_DELIMITER, strict=True):
            pass
    except csv.Error as error:
        return not whole and "unexpected end" in str(error)
    return True


def _lines(text: str) -> list[str]:
    return list(io.StringIO(text, newline=""))


def _ragged(row: Any, header: Header, name: str) -> TableError:
    number = row.number - header.skip
    return TableError(
        f"{name}, row {number}: Expected {row.expected_columns} columns, got {row.actual_columns} "
        f"({row.text[:60]!r}): complete the row, and put texts that contain {header.delimiter!r} in quotes"
    )
