import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import parquet

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables import chunks
from pcs_annotator.tables.chunks import Columns, Dataset, IdCheck, TableStream, open_stream, read_source, rechunked
from pcs_annotator.tables.write import writing_table

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
def test_chunks_are_the_table_in_order(tmp_path: Path, ending: str) -> None:
    stream = open_stream(written(tmp_path / f"data{ending}"), Columns())
    assert stream.columns == Columns(text="text", id="id", gold="gold")
    whole = read_source(tmp_path / f"data{ending}", Columns())
    for rows in (100, 1_000, 5_000):
        chunks = list(stream.chunks(rows))
        assert {len(chunk.items) for chunk in chunks[:-1]} <= {rows}
        assert texts(pa.concat_tables([chunk.table for chunk in chunks])) == texts(table())
        assert tuple(item for chunk in chunks for item in chunk.items) == whole.items
        assert tuple(gold for chunk in chunks for gold in chunk.gold) == whole.gold


def ids(chunks: Iterable[Dataset]) -> list[str]:
    return [item.id for chunk in chunks for item in chunk.items]


def test_rows_without_an_id_are_numbered_through_the_table(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", pa.table({"id": ["a", "", "c", ""], "text": list("abcd")}))
    assert ids(open_stream(path, Columns()).chunks(3)) == ["a", "2", "c", "4"]
    stream = open_stream(written(tmp_path / "numbers.csv", table().select(["text"])), Columns())
    assert ids(stream.chunks(100)) == [str(row) for row in range(1, ROWS + 1)]
    assert stream.check_ids() == ROWS


def test_the_number_of_rows_is_known_where_a_file_tells_it(tmp_path: Path) -> None:
    rows = [open_stream(written(tmp_path / f"d{ending}"), Columns()).rows for ending in ENDINGS]
    assert rows == [None, None, None, ROWS, ROWS, ROWS, ROWS]


def test_the_same_id_in_distant_rows_is_an_error_that_names_both(tmp_path: Path) -> None:
    twice = pa.concat_tables([table(), table(1, first=17)])
    path = written(tmp_path / "data.parquet", twice)
    with pytest.raises(TableError, match=rf"data\.parquet, rows 17 and {ROWS + 1} have the same id 'row 17'"):
        open_stream(path, Columns()).check_ids()
    number = pa.table({"id": ["a", None, "2"], "text": ["a", "b", "c"]})  # the number of a row is an id, too
    with pytest.raises(TableError, match=r"rows 2 and 3 have the same id '2'"):
        open_stream(written(tmp_path / "numbers.parquet", number), Columns()).check_ids()


def test_ids_whose_hashes_are_the_same_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = open_stream(written(tmp_path / "data.csv"), Columns())
    monkeypatch.setattr(chunks, "hash", len, raising=False)
    assert stream.check_ids() == ROWS


def test_ids_take_eight_bytes_each() -> None:
    check = IdCheck()
    check.add(f"a rather long id of row {number}" for number in range(10_000))
    assert check._hashes.buffer_info()[1] * check._hashes.itemsize == 80_000


def test_long_texts_make_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = (pa.table({"text": ["x" * 1_000] * 10}) for _ in range(50))
    chunks = list(rechunked(tables, 300, most_bytes=100_000))
    assert sum(map(len, chunks)) == 500
    assert max(chunk.nbytes for chunk in chunks) < 120_000


def test_rows_before_a_failure_come_before_the_error() -> None:
    def tables() -> Iterator[pa.Table]:
        yield pa.table({"text": list("abcde")})
        raise TableError("the rest is damaged")

    found = rechunked(tables(), 3)
    assert [len(next(found)), len(next(found))] == [3, 2]
    with pytest.raises(TableError, match="damaged"):
        next(found)


def test_a_column_of_json_lines_that_comes_late_is_there_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "one"}\n' * 3_000 + '{"text": "two", "gold": "good"}\n', encoding="utf-8")
    stream = open_stream(path, Columns())
    assert stream.columns.gold == "gold"
    chunks = list(stream.chunks(1_000))
    assert {tuple(chunk.table.column_names) for chunk in chunks} == {("text", "gold")}
    assert [chunk.gold[-1] for chunk in chunks] == [None, None, None, "good"]


def test_a_limit_spares_the_rest_of_the_files(tmp_path: Path) -> None:
    written(tmp_path / "data" / "a.jsonl", table(10))
    (tmp_path / "data" / "b.jsonl").write_text("no JSON", encoding="utf-8")
    stream = open_stream(tmp_path / "data", Columns(), limit=8)
    assert (stream.rows, len(ids(stream.chunks()))) == (8, 8)
    with pytest.raises(TableError, match=r"data/b\.jsonl, line 1 is not valid JSON"):
        open_stream(tmp_path / "data", Columns())


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_table_without_rows_or_with_its_header_twice_is_refused(tmp_path: Path, ending: str) -> None:
    names = {"id": "id", "text": "text"}
    path = written(tmp_path / f"data{ending}", pa.table({name: [name, "x"] for name in names}))
    with pytest.raises(TableError, match=rf"row {2 if ending == '.csv' else 1} repeats the header"):
        list(open_stream(path, Columns()).chunks())
    with writing_table(path) as writer:
        writer.write(pa.table({name: pa.array([], pa.string()) for name in names}))
    for read in (lambda: list(open_stream(path, Columns()).chunks()), lambda: read_source(path, Columns())):
        with pytest.raises(TableError, match="no rows"):
            read()


def test_the_fingerprint_changes_with_the_rows_and_not_with_the_name(tmp_path: Path) -> None:
    def fingerprint(path: Path, limit: int | None = None) -> str:
        return open_stream(path, Columns(), limit).fingerprint()

    first = fingerprint(written(tmp_path / "a.csv"))
    assert first == fingerprint(written(tmp_path / "b.csv"))
    other = fingerprint(written(tmp_path / "b.csv", table(ROWS - 1)))
    assert len({first, other, fingerprint(tmp_path / "a.csv", 5)}) == 3


def test_numbers_as_texts_do_not_depend_on_the_chunk(tmp_path: Path) -> None:
    numbers = [12345678.0, 2.0, 0.5, None] * 10
    parquet.write_table(pa.table({"id": pa.array(numbers), "text": ["x"] * 40}), tmp_path / "data.parquet")
    stream: TableStream = open_stream(tmp_path / "data.parquet", Columns())
    assert ids(stream.chunks(1)) == ids(stream.chunks(40))
    assert ids(stream.chunks(2))[:4] == ["12345678", "2", "0.5", "4"]


def dataset_of(folder: Path, content: str, **columns: Any) -> Dataset:
    path = folder / "texts.csv"
    path.write_text(content, encoding="utf-8")
    return read_source(path, Columns(**columns))


def items_of(folder: Path, content: str, **columns: Any) -> list[tuple[str, str]]:
    return [(item.id, item.text) for item in dataset_of(folder, content, **columns).items]


def test_texts_ids_and_gold_are_found_under_their_usual_names(tmp_path: Path) -> None:
    found = dataset_of(tmp_path, "Label,id,Text\nx,a,One\n ,b,Two\n")
    assert [(item.id, item.text) for item in found.items] == [("a", "One"), ("b", "Two")]
    assert found.gold == ("x", None)
    assert found.columns == Columns(text="Text", id="id", gold="Label")


def test_without_ids_rows_are_numbered_and_no_row_is_lost(tmp_path: Path) -> None:
    assert items_of(tmp_path, 'text,stars\nOne,x\n"",y\n') == [("1", "One"), ("2", "")]
    assert items_of(tmp_path, "anything\nOne\n") == [("1", "One")]


def test_columns_can_be_named_and_gold_can_be_missing(tmp_path: Path) -> None:
    found = dataset_of(tmp_path, "key,words,truth\na,One,x\n", text="words", id="key", gold="truth")
    assert (found.items[0].id, found.gold) == ("a", ("x",))
    assert dataset_of(tmp_path, "text\nOne\n").gold == ()


@pytest.mark.parametrize(
    ("content", "columns", "problem"),
    [
        ("key,words\na,One\n", {}, r"texts\.csv.* --text-column: key, words"),
        ("key,words\na,One\n", {"text": "txt"}, r"texts\.csv.*'txt'.*--text-column.*key, words"),
        ("key,text\na,One\n", {"id": "id"}, r"'id'.*--id-column"),
        ("key,text\na,One\n", {"gold": "truth"}, r"'truth'.*--gold-column"),
        ("id,text\na,One\nb,Two\na,Three\n", {}, r"texts\.csv, rows 2 and 4.*id 'a'"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(
    content: str, columns: dict[str, str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(TableError, match=problem):
        items_of(tmp_path, content, **columns)


def test_gold_that_pandas_wrote_beside_empty_cells_is_a_whole_number(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("text,gold\nA,6.0\nB,\nC,6\nD,7.5\n")
    assert read_source(tmp_path / "data.csv", Columns()).gold == ("6", None, "6", "7.5")


def test_an_object_or_a_list_is_the_same_text_in_json_lines_and_in_parquet(tmp_path: Path) -> None:
    rows = [{"text": {"title": "Ä", "words": [1, None]}}, {"text": None}]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet")
    first, second = (read_source(tmp_path / f"data.{kind}", Columns(text="text")) for kind in ("jsonl", "parquet"))
    assert [item.text for item in first.items] == [item.text for item in second.items]
    assert first.items[0].text == '{"title": "Ä", "words": [1, null]}'


def test_a_public_set_is_a_stream_too(tmp_path: Path) -> None:
    path = tmp_path / "politifact_fake.csv"
    path.write_text("id,title\n" + "".join(f"{row},Title {row}\n" for row in range(6)), encoding="utf-8")
    stream = open_stream(f"fakenewsnet:{tmp_path}", Columns(), limit=5)
    assert [chunk.gold for chunk in stream.chunks(4)] == [("fake",) * 4, ("fake",)]
    assert (stream.rows, stream.check_ids()) == (5, 5)
    before = stream.fingerprint()
    path.write_text("id,title\n1,Another\n", encoding="utf-8")
    assert open_stream(f"fakenewsnet:{tmp_path}", Columns(), limit=5).fingerprint() != before


def test_a_text_of_more_than_a_megabyte_is_refused_with_its_file_and_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.csv"
    path.write_text("text\nshort\n" + "é" * 500_001 + "\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"long\.csv, row 3: .* 1\.0 MB, more than 1 MB: .*PCS_MAX_TEXT_MB=2 "):
        open_stream(path, Columns()).read()
    monkeypatch.setenv("PCS_MAX_TEXT_MB", "2")
    assert len(open_stream(path, Columns()).read().items) == 2
