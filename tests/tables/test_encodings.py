from __future__ import annotations

import codecs
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import PcsWarning
from pcs_annotator.base.errors import TableError
from pcs_annotator.tables import encodings, table_files
from pcs_annotator.tables.encodings import Encoding, NotText, find_encoding
from pcs_annotator.tables.table_formats import local_file
from pcs_annotator.tables.tabular import as_arrow

TEXTS = {
    "cp1252": ["Die Straße ist schön.", "Le café était fermé à l’heure.", "¿Qué pasó en España?", "Não é possível."],
    "cp1250": ["Dziękuję, proszę przyjść później.", "Děkuji, příště přijdu dříve.", "Árvíztűrő tükörfúrógép."],
    "cp1254": ["Bugün hava çok güzel, ama tren geç kaldı. Şimdi gidiyorum."],
    "cp1257": ["Ačiū, šiandien gražus oras, žmonės džiaugiasi."],
    "mac-roman": ["Die Straße ist schön, fährt früh.", "Le café était fermé à midi."],
    "cp850": ["Die Straße ist schön, fährt früh."],
    "cp1251": ["Погода сегодня хорошая, но поезд опоздал."],
    "koi8-r": ["Погода сегодня хорошая, но поезд опоздал."],
    "cp866": ["Погода сегодня хорошая, но поезд опоздал."],
    "cp1253": ["Ο καιρός είναι καλός σήμερα."],
    "cp1255": ["מזג האוויר נחמד היום"],
    "cp1256": ["الطقس جميل اليوم لكن القطار متأخر"],
    "cp932": ["今日は天気がいいですが、電車が遅れました。"],
    "euc_jp": ["今日は天気がいいですが、電車が遅れました。"],
    "gb18030": ["今天天气很好，但是火车晚点了。"],
    "big5": ["今天天氣很好，但是火車誤點了。"],
    "cp949": ["오늘은 날씨가 좋지만 기차가 늦었습니다."],
}


def found(data: bytes, wanted: str = "", most: int | None = None) -> Encoding:
    return find_encoding(lambda: io.BytesIO(data), "t.csv", wanted, most)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_a_sentence_tells_its_encoding(name: str, text: str) -> None:
    guess = found(f"id;text\n1;{text}\n".encode(name))
    assert guess.guessed
    assert text.encode(name).decode(guess.name) == text
    assert codecs.lookup(guess.shown)  # what is shown can be given


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), block=st.integers(1, 7))
def test_utf_8_is_never_taken_for_anything_else(text: str, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encodings, "BLOCK", block)
        data = f"text\n{text}".encode()
        assert found(data) == Encoding()


def test_lines_are_sampled_until_there_are_enough() -> None:
    line = "Die Straße ist schön.\n".encode("cp1252")
    assert found(b"plain\n" * 1000 + line * 5000) == Encoding("cp1252", guessed=True)


@pytest.mark.parametrize("before", [b"plain words, ", b"x"])
@pytest.mark.parametrize("size", [20_000, 1_100_000])
def test_an_accent_late_in_a_long_line_tells_the_encoding_too(before: bytes, size: int) -> None:
    line = before * (size // len(before)) + "Die Straße ist schön.".encode("cp1252")
    assert found(b"text\n" + line + b"\n") == Encoding("cp1252", guessed=True)
    assert found(b"text\n" + line + b" " + line + b"\n") == Encoding("cp1252", guessed=True)


def test_one_line_that_is_not_utf_8_after_many_that_are_is_named() -> None:
    with pytest.raises(TableError, match=r"some lines are UTF-8 and others are not \(line 2,002\)"):
        found(b"text\n" + "Die Straße ist schön.\n".encode() * 2000 + b"Stra\xdfe\n")


@pytest.mark.parametrize(
    ("data", "wanted", "words"),
    [
        (b"text\ncaf\xc3", "utf-8", r"not in utf-8 \(line 2\)"),
        ("text\none\n".encode("utf-16-le"), "cp1252", r"not in cp1252 \(line 1\)"),
        (b"text\n\x81\x8d\x8f one", "", "cannot be guessed"),
        (b"Stra\xdfe\n" * 5000 + b"\x81\n", "", "cannot be guessed"),
        (codecs.BOM_UTF16_LE + b"a\0\n\0\0\xd8a\0", "", r"begins like UTF-16-LE, but is not \(line 2\)"),
        (b"text\n1\n", "hex", "no encoding 'hex'"),
    ],
)
def test_bytes_that_do_not_fit_are_refused_with_the_line(data: bytes, wanted: str, words: str) -> None:
    with pytest.raises(TableError, match=words):
        found(data, wanted)


def test_a_mark_and_a_name_may_say_the_same() -> None:
    assert found("text\n".encode("utf-8-sig"), "UTF-8") == Encoding(bom=True)
    assert found("text\n".encode("utf-16"), "utf-16") == Encoding("utf-16-le", bom=True)


def test_bytes_that_are_no_text_are_none() -> None:
    with pytest.raises(NotText):
        found(b"\x7fELF\2\1\1\0\0\0")


def test_of_a_limited_file_only_the_beginning_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"text\n" + b"plain\n" * 200_000 + b"caf\xe9\n")
    monkeypatch.setattr(table_files, "BLOCK", 1_000)
    file = local_file(path)
    schema = file.contents(limit=10).schema
    with pytest.raises(TableError, match=r"t\.csv is not UTF-8 text .*--encoding"):
        list(file.batches(schema))
    with pytest.warns(PcsWarning, match="Windows-1252"):
        assert as_arrow(path)["text"].to_pylist()[-1] == "café"
