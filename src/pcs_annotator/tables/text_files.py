"""Tables in text files: CSV with any delimiter, JSON and JSON Lines, in any encoding; all cells are texts."""

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.text import first_line
from pcs_annotator.tables import source_files
from pcs_annotator.tables.arrow import arrow_csv, json_cell, pa
from pcs_annotator.tables.label_studio import marked_rows
from pcs_annotator.tables.source_files import Dialect, OpenedTable, SourceFile

UTF8 = "utf-8"
BOMS = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins like the next one
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
GUESSED = [*(f"cp125{number}" for number in "20134567"), "koi8_r", "gb18030", "big5", "cp932", "euc_jp", "cp949"]
SAMPLE = 64 * 1024  # how much of a file tells its delimiter, or its encoding
USUAL = ",;\t|"  # delimiters, the most usual first
RARE = ":^~#!*%&@$\x01\x1e\x1f"  # delimiters only if several rows agree: texts have them, too
NO_DELIMITER = "\x1c"  # what separates the cells of a file with one column: a character that texts do not have
_SEP_LINE = re.compile(r'"?sep=(.)"?(\r\n|\r|\n)', re.IGNORECASE)  # with which files tell Excel their delimiter
_EMPTY_LINES = re.compile(r"[\r\n]*")
_ESCAPED_HALF = re.compile(r"\\u[dD]")  # what may be half of a character


class Encoding(NamedTuple):
    """The encoding of a file."""

    name: str = UTF8  # as Python calls it
    bom: bool = False  # whether the file begins with a byte order mark
    guessed: bool = False  # whether neither the file nor the user says it

    @property
    def note(self) -> str:
        """What users need to know about a guess."""
        return f"is read as {self.name} (guessed; --encoding overrides)" if self.guessed else ""

    def stream(self, file: SourceFile) -> Any:
        """Open a file as a stream of UTF-8."""
        return file.stream() if self.name == UTF8 else pa.transcoding_input_stream(file.stream(), self.name, UTF8)


def find_encoding(file: SourceFile, limit: int | None = None) -> Encoding:
    """Return the encoding: that of the byte order mark, the one the user names, UTF-8 if it fits, or a guess.

    All of a file is looked at; of one at an address, or if `limit` rows are enough, the beginning.
    """
    most = source_files.BLOCK if file.remote or limit is not None else None
    with file.stream() as stream:
        head = stream.read(source_files.HEAD)
    marked = next((name for bom, name in BOMS if head.startswith(bom)), "")
    named = _named_encoding(file, marked)
    if marked or named:
        if misfit := _misfit(file, marked or named, most):
            problem = f"is not in {file.reading.encoding}" if named else f"begins like {marked}, but is not"
            raise TableError(f"{file.name} {problem} (line {misfit.line:,}): {_REMEDY}")
        return Encoding(marked or named, bom=bool(marked))
    if b"\0" in head:
        file.refuse_other_kind()
        raise TableError(f"{file.name} is not a text file: give a CSV, Excel or Parquet file, or name its --encoding")
    misfit = _misfit(file, UTF8, most)
    if misfit is None:
        return Encoding()
    from charset_normalizer import from_bytes

    matches = from_bytes(misfit.sample, cp_isolation=GUESSED)
    best = matches.best()
    # of those that fit equally well, the one that is by far the most common
    alike = [match for match in matches if best is not None and match.chaos <= best.chaos]
    usual = any(GUESSED[0] in match.could_be_from_charset for match in alike)
    name = GUESSED[0] if usual else best.encoding if best else ""
    if not name or _misfit(file, name, most):
        raise TableError(f"{file.name} is not UTF-8, and its encoding cannot be guessed: {_REMEDY}")
    return Encoding(name, guessed=True)


_REMEDY = "name its encoding with --encoding, or save the file as UTF-8"


def _named_encoding(file: SourceFile, marked: str) -> str:
    """Return the encoding that the user names as Python calls it; empty without one."""
    name = file.reading.encoding
    if not name:
        return ""
    try:
        "".encode(name)  # `hex` and the like do not encode texts
        usual = codecs.lookup(name).name.removesuffix("-sig")
    except LookupError:
        raise TableError(
            f"there is no encoding {name!r} (--encoding): use one such as utf-8, windows-1252, latin-1 or shift-jis"
        ) from None
    if marked and not marked.startswith(usual):
        raise TableError(f"{file.name} begins with the mark of {marked}, not of {name}: leave --encoding out")
    return usual


class _Misfit(NamedTuple):
    line: int
    sample: bytes  # words with other letters than ASCII


def _misfit(file: SourceFile, name: str, most: int | None) -> _Misfit | None:
    """Return the first line that is not in an encoding; None if all are."""
    decoder = codecs.getincrementaldecoder(name)()
    lines, left, pending = 1, most, False
    with file.stream() as stream:
        while block := stream.read(source_files.USUAL_BLOCK if left is None else min(source_files.USUAL_BLOCK, left)):
            left = None if left is None else left - len(block)
            if name == UTF8 and not pending and block.isascii():
                lines += block.count(b"\n")  # much faster
                continue
            other = b" ".join(word for word in block.split() if not word.isascii())[:SAMPLE]
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as error:
                return _Misfit(lines + error.object[: error.start].count(b"\n"), other)
            if "\0" in text:
                return _Misfit(lines + text[: text.index("\0")].count("\n"), other)
            lines += text.count("\n")
            pending = bool(decoder.getstate()[0])
    return _Misfit(lines, b"") if pending and most is None else None


class Header(NamedTuple):
    """The beginning of a CSV file."""

    names: list[str]  # its columns
    skip: int  # how many lines come before the first row, the header and empty ones included
    delimiter: str  # what separates cells
    quoted: bool  # whether cells can be in quotes
    dialect: Dialect  # how another file is written alike


def open_csv(file: SourceFile, limit: int | None = None) -> OpenedTable:
    """Return the columns of the header."""
    file.refuse_empty()
    with file.explained():
        file.refuse_other_kind()
        encoding = find_encoding(file, limit)
        header = _header(file, encoding)
        if not header.names:
            raise EOFError("it has no header line")

    def batches(schema: pa.Schema) -> Iterator[pa.Table]:
        rows = 0
        with file.explained():
            try:
                for table in _parsed(file, encoding, header, schema.names, source_files.USUAL_BLOCK):
                    yield table
                    rows += len(table)
            except pa.ArrowInvalid:  # perhaps because a row is longer than a block
                yield from _parsed(file, encoding, header, schema.names, source_files.BLOCK, skip=rows)

    return OpenedTable(source_files.text_schema(header.names, file.name), None, batches, header.dialect, encoding.note)


def _parsed(
    file: SourceFile, encoding: Encoding, header: Header, wanted: Sequence[str], block: int, skip: int = 0
) -> Iterator[pa.Table]:
    ragged: list[Any] = []

    def set_aside(row: Any) -> str:
        ragged.append(row)
        return "skip"

    reading = arrow_csv.ReadOptions(
        use_threads=False,  # with threads, pyarrow does not know the row number
        block_size=block,
        column_names=header.names,
        skip_rows_after_names=header.skip,
    )
    quote = '"' if header.quoted else False
    parsing = arrow_csv.ParseOptions(
        delimiter=header.delimiter, newlines_in_values=True, invalid_row_handler=set_aside, quote_char=quote
    )
    types = dict.fromkeys(header.names, pa.string())
    texts = arrow_csv.ConvertOptions(column_types=types, strings_can_be_null=False, include_columns=wanted)
    with encoding.stream(file) as stream:
        for batch in chain(arrow_csv.open_csv(stream, reading, parsing, texts), [None]):
            if ragged:
                row = ragged[0]
                raise TableError(
                    f"{file.name}, row {row.number}: Expected {row.expected_columns} columns, got "
                    f"{row.actual_columns} ({row.text[:60]!r}): complete the row, and put texts that contain "
                    f"{header.delimiter!r} in quotes"
                )
            if batch is not None and skip < len(batch):
                yield pa.Table.from_batches([batch.slice(skip)])
            skip -= min(skip, len(batch or ()))


def _header(file: SourceFile, encoding: Encoding) -> Header:
    with io.TextIOWrapper(encoding.stream(file), encoding="utf-8-sig", newline="") as lines:
        start = lines.read(SAMPLE)
        if not re.search(r"[\r\n]", start):
            start += lines.readline(source_files.BLOCK) + lines.read(SAMPLE)
        whole = not lines.read(1)
    sep = _SEP_LINE.match(start)
    begin = _EMPTY_LINES.match(start, sep.end() if sep else 0).end()  # type: ignore[union-attr]  # it matches all
    sample = start[begin:]
    delimiter = sep[1] if sep else find_delimiter(sample, whole=whole)
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
    """
    header, splits = next(iter(_lines(sample)), ""), dict[str, list[int]]()
    for sign in (sign for sign in USUAL + RARE if sign in sample):
        widths = [len(row) for row in csv.reader(_lines(sample), delimiter=sign) if row]
        widths = widths if whole else widths[:-1] or widths  # the last row may be cut
        if widths and widths[0] > 1:
            splits[sign] = widths
    agreed = {sign: widths for sign, widths in splits.items() if len({*widths}) == 1}
    usual = [sign for sign in agreed if sign in USUAL]
    rare = [sign for sign, widths in agreed.items() if len(widths) > 2 and f"{sign} " not in header]
    unsure = [sign for sign in splits if sign in USUAL]
    if usual or (rare and not unsure):
        # names of columns of votes have a |: without rows, it says nothing
        return max(usual or rare, key=lambda sign: (len(agreed[sign]) > 1 or sign != "|", agreed[sign][0]))
    return max(unsure, key=lambda sign: splits[sign].count(splits[sign][0]) / len(splits[sign]), default=NO_DELIMITER)


def _quotes_match(sample: str, *, whole: bool) -> bool:
    """Return whether quotes enclose cells, rather than words at the beginning of a text."""
    try:
        list(csv.reader(_lines(sample), delimiter=NO_DELIMITER, strict=True))
    except csv.Error as error:
        return not whole and "unexpected end" in str(error)
    return True


def _lines(text: str) -> list[str]:
    return list(io.StringIO(text, newline=""))


Row = dict[str, Any]


def open_json(file: SourceFile, limit: int | None = None) -> OpenedTable:
    """Return the columns of all rows: one may have a key that none before it had. A list is read at once."""
    with file.explained():
        encoding = find_encoding(file, limit)
    rows_of: Callable[[SourceFile, Encoding], Iterable[tuple[Row, int]]]
    rows_of = _json_list if file.format == source_files.JSON else _json_lines
    names, count = dict[str, None](), 0
    for row, _ in islice(rows_of(file, encoding), limit):
        count += 1
        names.update(dict.fromkeys(row))

    def batches(schema: pa.Schema) -> Iterator[pa.Table]:
        batch, size = list[Row](), 0
        for row, length in chain(rows_of(file, encoding), [({}, -1)]):
            if batch and (length < 0 or len(batch) == source_files.BATCH_ROWS or size > source_files.USUAL_BLOCK):
                yield pa.table([[json_cell(row.get(key)) for row in batch] for key in schema.names], schema=schema)
                batch, size = [], 0
            batch.append(row)
            size += length

    return OpenedTable(source_files.text_schema(list(names), file.name), count, batches, note=encoding.note)


def _json_lines(file: SourceFile, encoding: Encoding) -> Iterator[tuple[Row, int]]:
    """Yield every row with the length of its line."""
    number = 0
    with file.explained(), io.TextIOWrapper(encoding.stream(file), encoding="utf-8-sig") as lines:
        for at, line in enumerate(iter(partial(lines.readline, source_files.BLOCK), ""), 1):
            if not line.isspace():
                number += 1
                row = _from_json(line, file, f"{file.name}, line {at}", check=at == 1)
                if number == 1 and isinstance(row, list):
                    file.refuse_other_kind()
                yield _as_row(row, number, file.name), len(line)


def _json_list(file: SourceFile, encoding: Encoding) -> list[tuple[Row, int]]:
    with file.explained():
        text = file.read_all().decode(encoding.name).removeprefix("\ufeff")
    rows = _from_json(text, file, file.name, check=True)
    if not isinstance(rows, list):
        raise TableError(f"{file.name} holds a {type(rows).__name__}: it must be a list of objects, one per row")
    rows = marked_rows(rows, file.name) or rows
    return [(_as_row(row, number, file.name), 0) for number, row in enumerate(rows, 1)]


def _from_json(text: str, file: SourceFile, where: str, *, check: bool) -> Any:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        if check:
            file.refuse_other_kind()
        if isinstance(error, RecursionError):
            raise TableError(f"{where} is nested too deeply: use one object per row") from None
        raise TableError(f"{where} is not valid JSON ({first_line(error)}): correct it") from None
    if _ESCAPED_HALF.search(text):
        whole = json.dumps(values, ensure_ascii=False)
        cleaned = whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if cleaned != whole:
            warn_user(f"{file.name} has lone surrogates, which are halves of characters: they are replaced by U+FFFD")
            return json.loads(cleaned)
    return values


def _as_row(row: Any, number: int, name: str) -> Row:
    if not isinstance(row, dict):
        raise TableError(f'{name}, row {number} is {row!r:.60}: every row must be an object such as {{"text": "…"}}')
    return row
