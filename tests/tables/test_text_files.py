import codecs
import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from pcs_annotator import PcsWarning
from pcs_annotator.base.errors import TableError
from pcs_annotator.tables import source_files
from pcs_annotator.tables.find import as_arrow, open_parts
from pcs_annotator.tables.source_files import Dialect, Reading, SourceFile
from pcs_annotator.tables.text_files import Encoding, find_encoding

TEXTS = {
    "cp1252": ["Die Straße ist schön.", "Le café était fermé à l’heure.", "¿Qué pasó en España?", "Não é possível."],
    "cp1251": ["Погода сегодня хорошая, но поезд опоздал."],
    "cp1253": ["Ο καιρός είναι καλός σήμερα."],
    "cp1256": ["الطقس جميل اليوم لكن القطار متأخر"],
    "cp932": ["今日は天気がいいですが、電車が遅れました。"],
    "gb18030": ["今天天气很好，但是火车晚点了。"],
    "big5": ["今天天氣很好，但是火車誤點了。"],
    "cp949": ["오늘은 날씨가 좋지만 기차가 늦었습니다."],
}


def found(data: bytes, wanted: str = "") -> Encoding:
    reading = Reading(encoding=wanted)
    return find_encoding(
        SourceFile(name="t.csv", size=len(data), open=lambda: io.BytesIO(data), version=str, reading=reading)
    )


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_a_sentence_tells_its_encoding(name: str, text: str) -> None:
    guess = found(f"id;text\n1;{text}\n".encode(name))
    assert guess.guessed
    assert text.encode(name).decode(guess.name) == text


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), block=st.integers(1, 7))
def test_utf_8_is_never_taken_for_anything_else(text: str, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_files, "USUAL_BLOCK", block)
        data = f"text\n{text}".encode()
        assert found(data) == Encoding()


@pytest.mark.parametrize("before", [b"plain words, ", b"x"])
@pytest.mark.parametrize("size", [20_000, 1_100_000])
def test_an_accent_late_in_a_long_line_tells_the_encoding_too(before: bytes, size: int) -> None:
    line = before * (size // len(before)) + "Die Straße ist schön.".encode("cp1252")
    assert found(b"text\n" + line + b"\n") == Encoding("cp1252", guessed=True)
    assert found(b"text\n" + line + b" " + line + b"\n") == Encoding("cp1252", guessed=True)


@pytest.mark.parametrize(
    ("data", "wanted", "words"),
    [
        (b"text\ncaf\xc3", "utf-8", r"not in utf-8 \(line 2\)"),
        ("text\none\n".encode("utf-16-le"), "cp1252", r"not in cp1252 \(line 1\)"),
        (b"Stra\xdfe\n" * 5000 + b"\x81\n", "", "cannot be guessed"),
        (codecs.BOM_UTF16_LE + b"a\0\n\0\0\xd8a\0", "", r"begins like utf-16-le, but is not \(line 2\)"),
        (b"text\n1\n", "hex", "no encoding 'hex'"),
    ],
)
def test_bytes_that_do_not_fit_are_refused_with_the_line(data: bytes, wanted: str, words: str) -> None:
    with pytest.raises(TableError, match=words):
        found(data, wanted)


def test_a_mark_and_a_name_may_say_the_same() -> None:
    assert found("text\n".encode("utf-8-sig"), "UTF-8") == Encoding(bom=True)
    assert found("text\n".encode("utf-16"), "utf-16") == Encoding("utf-16-le", bom=True)


def test_of_a_limited_file_only_the_beginning_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"text\n" + b"plain\n" * 200_000 + b"caf\xe9\n")
    monkeypatch.setattr(source_files, "BLOCK", 1_000)
    parts, _ = open_parts(path, limit=10)
    with pytest.raises(TableError, match=r"t\.csv cannot be read .*--encoding"):
        list(parts.batches(parts.schema))
    with pytest.warns(PcsWarning, match="is read as cp125"):
        assert as_arrow(path)["text"].to_pylist()[-1] == "café"


PACKED: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


def as_csv(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode()


@given(rows=st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=60), block=st.integers(40, 400))
def test_csv_read_in_small_blocks_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], block: int
) -> None:
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_bytes(as_csv([["text", "more"], *rows]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_files, "USUAL_BLOCK", block)
        table = as_arrow(path)
    assert [list(row.values()) for row in table.to_pylist()] == rows


@given(
    rows=st.lists(st.dictionaries(st.sampled_from("abc"), st.none() | CELLS | st.integers(), min_size=1), min_size=1),
    block=st.integers(1, 100),
)
def test_json_lines_read_in_small_blocks_are_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str | int | None]], block: int
) -> None:
    path = tmp_path_factory.mktemp("json") / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_files, "USUAL_BLOCK", block)
        found = as_arrow(path)
    names = list(dict.fromkeys(name for row in rows for name in row))
    assert found.column_names == names
    assert found.to_pylist() == [
        {name: None if row.get(name) is None else str(row[name]) for name in names} for row in rows
    ]


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize(
    ("name", "content"),
    [("t.csv", "id,text\n1,one\n"), ("t.jsonl", '{"id": 1, "text": "one"}'), ("t.json", '[{"id": 1, "text": "one"}]')],
)
def test_texts_may_be_compressed(tmp_path: Path, name: str, content: str, packing: str) -> None:
    path = tmp_path / f"{name}{packing}"
    path.write_bytes(PACKED[packing](content.encode()))
    assert as_arrow(path).to_pylist() == [{"id": "1", "text": "one"}]


@pytest.mark.parametrize("packing", [".gz", ".zst"])
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.json"])
def test_a_compressed_file_that_is_cut_off_is_refused_by_name(tmp_path: Path, name: str, packing: str) -> None:
    path = tmp_path / f"{name}{packing}"
    lines = b'{"text": "one"}\n' * 9
    whole = PACKED[packing](b"text\n" + lines if name == "t.csv" else lines)
    path.write_bytes(whole[:-10])
    with pytest.raises(TableError, match=rf"{name}{packing} cannot be read .*runcated"):
        as_arrow(path)


def test_values_of_json_become_texts_as_a_csv_file_would_hold_them(tmp_path: Path) -> None:
    values = [1, -0.5, 1e30, True, None, "é", [1, "é"], {"a": None}, 10**30, float("nan")]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"a": value}) + "\n" for value in values), encoding="utf-8")
    texts = ["1", "-0.5", "1e+30", "true", None, "é", '[1, "é"]', '{"a": null}', str(10**30), "NaN"]
    assert as_arrow(path)["a"].to_pylist() == texts


def test_a_row_longer_than_a_block_is_read_once_and_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "USUAL_BLOCK", 100)
    rows = [["text"], *([f"row {number}"] for number in range(50)), ["long " * 200], ["the end"]]
    path = tmp_path / "t.csv"
    path.write_bytes(as_csv(rows))
    assert as_arrow(path)["text"].to_pylist() == [cells[0] for cells in rows[1:]]


def test_a_row_longer_than_any_block_is_refused_after_the_rows_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "USUAL_BLOCK", 100)
    monkeypatch.setattr(source_files, "BLOCK", 200)
    path = tmp_path / "t.csv"
    path.write_bytes(as_csv([["text"], *([f"row {number}"] for number in range(50)), ["long " * 200]]))
    parts, _ = open_parts(path)
    texts: list[str] = []
    with pytest.raises(TableError, match=r"t\.csv cannot be read"):
        texts.extend(text for table in parts.batches(parts.schema) for text in table["text"].to_pylist())
    assert texts == [f"row {number}" for number in range(len(texts))]
    assert len(texts) > 30


def test_a_file_removed_after_a_look_at_it_is_an_error_that_says_so(tmp_path: Path) -> None:
    for name, content in (("t.csv", "text\none\n"), ("t.jsonl", '{"text": "one"}')):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        parts, _ = open_parts(path)
        path.unlink()
        with pytest.raises(TableError, match=rf"{name} is no longer there"):
            list(parts.batches(parts.schema))


def test_only_the_columns_that_are_wanted_are_read(tmp_path: Path) -> None:
    makers: dict[str, Callable[[Path], object]] = {
        "t.csv": lambda path: path.write_text("id,text\n1,one\n", encoding="utf-8"),
        "t.jsonl": lambda path: path.write_text('{"id": 1, "text": "one"}', encoding="utf-8"),
        "t.parquet": lambda path: parquet.write_table(pa.table({"id": ["1"], "text": ["one"]}), path),
    }
    for name, make in makers.items():
        make(tmp_path / name)
        (table,) = open_parts(tmp_path / name)[0].batches(pa.schema([("text", pa.string())]))
        assert table.to_pydict() == {"text": ["one"]}


@pytest.mark.parametrize(
    ("name", "content"),
    [("t.csv", ""), ("t.json", ""), ("t.parquet", ""), ("t.jsonl", ""), ("t.jsonl", "\n \n"), ("t.json", "[]")],
)
def test_a_file_without_rows_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(TableError, match=rf"{name} (has no rows|is empty)"):
        as_arrow(tmp_path / name)


def test_json_that_is_too_large_when_unpacked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "MOST_BYTES_UNPACKED", 1_000)
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(json.dumps([{"text": "spam " * 400}]).encode()))
    with pytest.raises(TableError, match=r"t\.json\.gz is larger than"):
        as_arrow(path)


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_json_in_another_encoding_is_guessed_and_the_guess_is_named(tmp_path: Path, name: str) -> None:
    start, end = ("[", "]") if name == "t.json" else ("", "")
    (tmp_path / name).write_bytes(f'{start}{{"text": "café"}}{end}'.encode("latin-1"))
    with pytest.warns(PcsWarning, match=rf"{name} is read as cp125\d \(guessed; --encoding overrides\)"):
        assert as_arrow(tmp_path / name).to_pylist() == [{"text": "café"}]


@pytest.mark.parametrize(
    ("data", "dialect"),
    [
        (b"id,text\n1,a\n", Dialect()),
        (b"\xef\xbb\xbfid;text\r\n1;a\r\n", Dialect(delimiter=";", bom=True, line_end="\r\n")),
        (b'"id"\t"text"\n"1"\t"a"\n', Dialect(delimiter="\t", quote_all=True)),
        (b'"id",text\n1,a\n', Dialect()),
    ],
)
def test_dialect_of_a_csv_file_is_what_it_was_written_with(tmp_path: Path, data: bytes, dialect: Dialect) -> None:
    path = tmp_path / "texts.csv"
    path.write_bytes(data)
    assert open_parts(path)[0].dialect == dialect
