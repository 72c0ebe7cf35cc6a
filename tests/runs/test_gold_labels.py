"""Gold labels as people write them: in spreadsheets, with other spellings, and with typos."""

import codecs
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest

from pcs_annotator import PcsWarning
from pcs_annotator.base.errors import TableError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs.gold_labels import FromPeople, labels_seen, read_labels
from pcs_annotator.tables.chunks import Columns, Dataset, read_source
from pcs_annotator.tables.source_files import AS_FOUND, Reading

TEXTS = {"1": "Good value", "007": 'It\'s "late" - again...', "a b": "Größe 3", "-4": "=SUM(A1)"}
ROWS = [
    ["id", "text", "gold"],
    ["-4", "'=SUM(A1)", "x"],
    ["a b", "Größe 3 ", "y"],
    ["007", "It’s “late” – again…", "x"],
]


def found(path: Path, labels: list[str], reading: Reading = AS_FOUND) -> dict[str, str]:
    given = read_labels(FromPeople(gold=path, reading=reading), TEXTS, labels, "run")
    return {one.id: one.label for one in given}


def as_text(delimiter: str, encoding: str, bom: bytes = b"") -> Callable[[Path], object]:
    text = "".join(delimiter.join(f'"{cell}"' for cell in row) + "\r\n" for row in ROWS)
    return lambda path: path.write_bytes(bom + text.encode(encoding))


def as_workbook(path: Path) -> None:
    book = openpyxl.Workbook()
    for row in ROWS:
        book.active.append(row)
    book.save(path)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param("gold.csv", as_text(";", "cp1252"), id="CSV of a German Excel"),
        pytest.param("gold.txt", as_text("\t", "utf-16-le", codecs.BOM_UTF16_LE), id="Unicode text"),
        pytest.param("gold.csv", as_text(",", "utf-8-sig"), id="CSV UTF-8"),
        pytest.param("gold.xlsx", as_workbook, id="workbook"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*is read as cp1252")
def test_gold_comes_back_from_a_spreadsheet_in_any_order(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    make(tmp_path / name)
    assert found(tmp_path / name, ["x", "y"]) == {"-4": "x", "a b": "y", "007": "x"}


@pytest.mark.parametrize(
    ("labels", "cells", "meant"),
    [
        (["true", "false"], [True, "WAHR", "FAUX", "falso"], ["true", "true", "false", "false"]),
        (["0", "1"], [1, 1.0, "1.0", "0,00"], ["1", "1", "1", "0"]),
        (
            ["don't know", "yes - no"],
            ["don’t know", "Don't\xa0know ", "yes – no", "YES - NO"],
            ["don't know"] * 2 + ["yes - no"] * 2,
        ),
    ],
)
def test_labels_that_a_spreadsheet_changed_are_those_of_the_run(
    tmp_path: Path, labels: list[str], cells: list[object], meant: list[str]
) -> None:
    book = openpyxl.Workbook()
    for row in (["id", "gold"], *zip([1, 7.0, "A\xa0b", "'-4"], cells, strict=True)):
        book.active.append(row)
    book.save(tmp_path / "gold.xlsx")
    assert found(tmp_path / "gold.xlsx", labels) == dict(zip(TEXTS, meant, strict=True))


def test_an_id_that_may_be_two_is_none(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("id,gold\n7.0,x\n", encoding="utf-8")
    people = FromPeople(gold=tmp_path / "gold.csv")
    with pytest.raises(TableError, match=r"no text with the id '7\.0'"):
        read_labels(people, {"7": "a", "07": "b"}, ["x"], "run")


def test_a_fit_takes_gold_from_a_sheet_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{number},{'good' if number % 2 else 'bad'},{'good' if number % 3 else 'bad'}" for number in range(40)]
    Path("votes.csv").write_text("\n".join(["id,a|original,b|original", *rows]), encoding="utf-8")
    book = openpyxl.Workbook()
    sheet = book.create_sheet("Gold")
    for row in (["id", "gold"], *([float(number), "Good " if number % 2 else "BAD"] for number in range(20))):
        sheet.append(row)
    book.save("gold.xlsx")
    assert main(["fit", "votes.csv", "--gold", "gold.xlsx", "--sheet", "Gold", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gold_rows"] == 20
    assert main(["fit", "votes.csv", "--gold", "gold.xlsx", "--sheet", "Silver", "--json"]) == 2


def data(folder: Path, *gold: str) -> Dataset:
    rows = [f"text {row},{label}" for row, label in enumerate(gold)]
    (folder / "data.csv").write_text("\n".join(["text,gold", *rows]) + "\n")
    return read_source(folder / "data.csv", Columns())


def test_a_rare_label_that_is_almost_a_usual_one_is_mentioned(tmp_path: Path) -> None:
    dataset = data(tmp_path, *["positive"] * 12, *["negative"] * 12, "postive")
    with pytest.warns(PcsWarning, match=r"1 row has the gold label 'postive', which is almost 'positive' \(12 rows\)"):
        assert labels_seen(dataset) == ("negative", "positive", "postive")


def test_labels_that_are_common_or_of_few_letters_are_not_doubted(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels_seen(data(tmp_path, *["male"] * 12, *["female"] * 12, "11", *["1"] * 12, *["like"] * 12, "dislike"))
