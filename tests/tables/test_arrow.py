import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from pcs_annotator.base.errors import InputError, TableError
from pcs_annotator.tables.arrow import columns_of, text_column, texts_of
from pcs_annotator.tables.find import as_arrow, source_name, table_place, table_stem

ROWS = {"id": ["1", "02"], "a|original": ["fake", ""]}


def written(folder: Path, content: str | bytes, name: str = "votes.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(table: object) -> str:
    with pytest.raises(TableError) as caught:
        columns_of(as_arrow(table))
    return str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("id,a|original\n1,fake\n02,\n", id="comma"),
        pytest.param("id;a|original\n1;fake\n02;\n", id="semicolon"),
        pytest.param("id\ta|original\n1\tfake\n02\t\n", id="tab"),
        pytest.param("\ufeffid,a|original\n1,fake\n02,\n", id="byte order mark"),
        pytest.param("id,a|original\r\n1,fake\r\n02,\r\n", id="Windows line ends"),
        pytest.param("id,a|original\r1,fake\r02,\r", id="old Mac line ends"),
        pytest.param("id,a|original\n1,fake\n02,", id="no line end at the end"),
        pytest.param('"id","a|original"\n"1","fake"\n"02",""\n', id="quotes"),
        pytest.param("\n\nid;a|original\n\n1;fake\n02;\n", id="blank lines"),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".txt", ".csv.gz", ".CSV.GZ"])
def test_every_kind_of_csv_gives_the_same_texts(tmp_path: Path, content: str, ending: str) -> None:
    raw = content.encode()
    path = written(tmp_path, gzip.compress(raw) if ending.lower().endswith(".gz") else raw, f"votes{ending}")
    assert as_arrow(path).to_pydict() == ROWS
    assert as_arrow(str(path)).to_pydict() == ROWS


@pytest.mark.parametrize("ending", [".parquet", ".pq", ".PARQUET"])
def test_parquet_is_known_by_its_ending(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"votes{ending}"
    parquet.write_table(pa.table(ROWS), path)
    assert as_arrow(path).to_pydict() == ROWS


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(ROWS, id="dict of lists"),
        pytest.param({name: np.array(values) for name, values in ROWS.items()}, id="dict of arrays"),
        pytest.param(pa.table(ROWS), id="pyarrow"),
        pytest.param(pa.record_batch(ROWS), id="record batch"),
        pytest.param(pd.DataFrame(ROWS), id="pandas"),
        pytest.param(pd.DataFrame(ROWS, index=[7, 3]), id="pandas with an index of its own"),
        pytest.param(pl.DataFrame(ROWS), id="polars"),
    ],
)
def test_every_kind_of_frame_gives_the_same_columns(table: object) -> None:
    texts = {name: text_column(name, column).to_pylist() for name, column in columns_of(as_arrow(table)).items()}
    assert texts == ROWS


MANY = [f"é{number}|{'r' * 30}" for number in range(3000)]


@pytest.mark.parametrize(
    ("content", "row"),
    [
        ("id,a|r,b|r,c|r\n007,1.0,TRUE, spaced \n", {"id": "007", "a|r": "1.0", "b|r": "TRUE", "c|r": " spaced "}),
        ("id,a|r\n7,null\n", {"id": "7", "a|r": "null"}),
        ('id,"te\nxt"\n007,"He said ""no"",\nthen left."\n', {"id": "007", "te\nxt": 'He said "no",\nthen left.'}),
        (",".join(MANY) + "\n" + ",".join(["007"] * len(MANY)) + "\n", dict.fromkeys(MANY, "007")),
    ],
    ids=["cells", "null", "quotes", "a very long header"],
)
def test_csv_texts_stay_as_they_are_written(tmp_path: Path, content: str, row: dict[str, str]) -> None:
    assert as_arrow(written(tmp_path, content)).to_pylist() == [row]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        pytest.param("", ["votes.csv", "empty"], id="empty"),
        pytest.param("\n\n", ["votes.csv", "cannot be read"], id="nothing but line ends"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["votes.csv", "not a text file"], id="picture"),
        pytest.param("id,a|r\n1,x\n2\n", ["votes.csv", "row 3", "2 columns", "got 1", "'2'"], id="short row"),
        pytest.param("id,a|r\n1,x,y,z\n", ["votes.csv", "row 2", "2 columns", "got 4", "'1,x,y,z'"], id="long row"),
        pytest.param(
            "id;a|r\n" + "1;x\n" * 400_000 + "1;x;y\n2;x;y\n",
            ["votes.csv", "row 400002", "got 3"],
            id="long row far below",
        ),
        pytest.param("id,a|r,id\n1,x,2\n", ["votes.csv", "more than one column", "'id'"], id="column twice"),
        pytest.param(
            'id,"a|r\n' + "1,x\n" * 50_000, ["votes.csv", "cannot be read"], id="quote left open in the header"
        ),
    ],
)
def test_unreadable_csv_is_refused(tmp_path: Path, content: str | bytes, parts: list[str]) -> None:
    message = refusal(written(tmp_path, content))
    assert [part for part in parts if part not in message] == []
    assert len(message) < 400


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("votes.csv.gz", b"id,a|r\n1,x\n", "votes.csv.gz cannot be read"),
        ("votes.csv.gz", gzip.compress(b""), "votes.csv.gz cannot be read"),
        ("votes.csv.gz", gzip.compress(b"id,a|r\n1,x\n" * 99)[:-20], "votes.csv.gz cannot be read"),
        ("votes.parquet", b"id,a|r\n1,x\n", "votes.parquet is a text file"),
    ],
    ids=["not compressed", "compressed nothing", "cut off", "a CSV called Parquet"],
)
def test_file_that_is_not_what_its_ending_says_is_refused(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    message = refusal(written(tmp_path, content, name))
    assert words in message
    assert "\n" not in message


def test_what_is_no_file_is_refused_with_its_full_path(tmp_path: Path) -> None:
    assert f"no file {tmp_path / 'nowhere.csv'}" in refusal(tmp_path / "nowhere.csv")
    assert f"{tmp_path} is a folder" in refusal(str(tmp_path))
    assert "no file" in refusal("id,a|r\n" + "1,x\n" * 5000)  # longer than any name a file can have
    os.mkfifo(tmp_path / "pipe.csv")
    assert "regular file" in refusal(tmp_path / "pipe.csv")


# among them dicts of unequal and of mixed columns, and of scalars
OTHERS = [None, 3, np.ones((2, 2)), [{"id": "1"}], {"id": ["1", "2"], "a|r": ["x"]}, {"id": ["1", 2]}, {"id": 1}]


@pytest.mark.parametrize("table", OTHERS)
def test_other_values_are_refused(table: object) -> None:
    assert f"cannot read a {type(table).__name__}" in refusal(table)


def test_column_that_a_frame_holds_twice_is_refused() -> None:
    names = ["id", "a|r", "a|r"]
    for table in (pa.table([["1"], ["x"], ["y"]], names=names), pd.DataFrame([["1", "x", "y"]], columns=names)):
        assert "a|r" in refusal(table)


COLUMN = ["a", "b"]


COLUMNS: list[object] = [
    COLUMN,
    iter(COLUMN),
    dict.fromkeys(COLUMN).keys(),
    np.array(COLUMN),
    np.array(COLUMN).reshape(-1, 1),
]
COLUMNS += [pd.Series(COLUMN), pl.Series(COLUMN), pa.array(COLUMN), pa.chunked_array([COLUMN])]
COLUMNS += [kind({"x": COLUMN}) for kind in (pd.DataFrame, pl.DataFrame, pa.table)]


@pytest.mark.parametrize("given", COLUMNS)
def test_every_kind_of_column_gives_the_same_values(given: object) -> None:
    assert texts_of(given) == COLUMN


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("a text", "x is a single str"),
        (b"a text", "x is a single bytes"),
        (Path("a.csv"), "x is a single PosixPath"),
        ({"x": COLUMN}, "x is a single dict"),
        (7, "x is a single int"),
        (np.ones((2, 2)), r"x has the shape \(2, 2\)"),
        (pl.DataFrame({"a": [1], "b": [2]}), "x is a DataFrame with the columns a, b: give one of them"),
        (pa.table({"a": [1], "b": [2]}), "x is a Table with the columns a, b: give one of them"),
        (["a", None, float("nan"), 7], "number 4 of x is a int, not a text"),
        (["a", object()], "number 2 of x is a object, not a text"),
        (["a", "\ud800"], "x: .*surrogates not allowed"),
    ],
)
def test_what_is_no_column_of_texts_is_refused_with_its_type(given: object, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        texts_of(given, "x")


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_missing_texts_are_none(missing: object) -> None:
    assert texts_of(["a", missing]) == ["a", None]


@pytest.mark.parametrize(
    ("spec", "stem"),
    [
        ("news.train.csv.gz", "news.train"),
        ("news.jsonl.zst", "news"),
        ("news.v2", "news.v2"),
        ("parts/*.parquet", "parts"),
        ("parts/**/part-[0-9].csv", "parts"),
        ("*.csv", "tables"),
        ("s3://bucket/news/*.parquet", "news"),
        ("https://example.org/news.csv?key=a/b.c", "news"),
        ("simplecache::s3://bucket/news.csv", "news"),
    ],
)
def test_a_table_is_called_after_its_file_or_folder(spec: str, stem: str) -> None:
    assert table_stem(table_place(spec)) == stem


def test_messages_name_the_file_and_an_address_keeps_its_slashes(tmp_path: Path) -> None:
    assert source_name(tmp_path / "votes.csv") == source_name(str(tmp_path / "votes.csv")) == "votes.csv"
    assert source_name(ROWS) == "the table"
    assert table_place("s3://bucket/news.csv") == "s3://bucket/news.csv"
    assert table_place("data//news.csv") == Path("data/news.csv")
    assert table_place(Path("news.csv")) == Path("news.csv")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        pytest.param(pa.array([1, None]), ["1", None], id="ints"),
        pytest.param(pa.array([1.0, None, float("nan")]), ["1", None, None], id="whole floats with gaps"),
        pytest.param(pa.array([0.5, 1.0]), ["0.5", "1"], id="fractions"),
        pytest.param(pa.array([0.5, 123456789012.0]), ["0.5", "123456789012"], id="whole floats beside fractions"),
        pytest.param(pa.array([1e300, float("inf")]), ["1e+300", "inf"], id="floats too large for an int"),
        pytest.param(pa.array([None, None], pa.float64()), [None, None], id="nothing but gaps"),
        pytest.param(pa.array([None, None]), [None, None], id="no type"),
        pytest.param(pa.array([], pa.string()), [], id="no rows"),
        pytest.param(pa.array([True, None]), ["true", None], id="truth values"),
        pytest.param(pa.array(["x", None, "x"]).dictionary_encode(), ["x", None, "x"], id="categories"),
        pytest.param(pa.array([3, None]).dictionary_encode(), ["3", None], id="categories of numbers"),
        pytest.param(pa.array(["x", None], pa.large_string()), ["x", None], id="large strings"),
        pytest.param(pa.array(["x", None], pa.string_view()), ["x", None], id="string views"),
    ],
)
def test_columns_become_texts(values: pa.Array, texts: list[str | None]) -> None:
    assert text_column("a|r", pa.chunked_array([values])).to_pylist() == texts


def test_columns_in_pieces_and_categories_of_polars_become_texts() -> None:
    assert text_column("a|r", pa.chunked_array([["x"], ["y", "z"]])).to_pylist() == ["x", "y", "z"]
    assert text_column("a|r", pa.chunked_array([], pa.string())).to_pylist() == []
    frame = pl.DataFrame({"a|r": ["x", None, "y"]}, schema={"a|r": pl.Categorical})
    assert text_column("a|r", as_arrow(frame)["a|r"]).to_pylist() == ["x", None, "y"]


@pytest.mark.parametrize("values", [[["x"], ["y"]], [{"k": 1}], [b"\xff"]], ids=["lists", "structs", "bytes"])
def test_column_that_holds_no_texts_is_refused_by_name(values: list[object]) -> None:
    with pytest.raises(TableError, match=r"column 'a\|r'"):
        text_column("a|r", pa.chunked_array([pa.array(values)]))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.jsonl", '{"id": 1, "text": "one"}\n\n{"id": 2, "text": null, "more": [1]}\n'),
        ("t.ndjson", '\ufeff{"id": 1, "text": "one"}\n{"id": 2, "more": [1]}'),
        ("t.json", '[{"id": 1, "text": "one"}, {"id": 2, "more": [1]}]'),
    ],
)
def test_json_is_read_as_texts(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    table = as_arrow(tmp_path / name)
    assert table.to_pydict() == {"id": ["1", "2"], "text": ["one", None], "more": [None, "[1]"]}


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("t.jsonl", '{"text": "one"}\n{"text": }\n', r"t\.jsonl, line 2 is not valid JSON"),
        ("t.jsonl", '{"text": "one"}\n"two"\n', r"t\.jsonl, row 2.*'two'"),
        ("t.json", '{"text": "one"}', r"t\.json.*dict.*list"),
        ("t.json", "[]", r"t\.json has no rows"),
        ("t.json", "[1", r"t\.json is not valid JSON"),
    ],
)
def test_broken_json_is_an_error_that_names_the_place(name: str, content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(TableError, match=problem):
        as_arrow(tmp_path / name)
