from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from pcs_annotator.errors import PcsWarning
from pcs_annotator.faces.cli.main import main
from pcs_annotator.files import workbook
from pcs_annotator.pipeline import for_excel
from pcs_annotator.pipeline.estimating.gold import draw_gold
from pcs_annotator.pipeline.fit import fit_run
from pcs_annotator.pipeline.human_review import FromPeople
from pcs_annotator.pipeline.large import large_table
from tests.simulated import copy_run, read_csv, write_csv

LABELS = ["yes, sure", "no"]
ROWS = [
    {"id": f"{row:03d}", "text": f"=The city number {row} bought buses.", "gold": LABELS[row % 2] if row < 5 else ""}
    for row in range(8)
]
RUN = ["run", "data.csv", "--model", "scripted:hash", "--relations", "original,order", "-q"]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("made")
    write_csv(home / "data.csv", ROWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert main([*RUN, "--excel"]) == 0
    return home


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return Path("runs/data")


def fill(path: Path, column: str, values: dict[str, Any]) -> None:
    """Do what a person does in a spreadsheet: open it, fill cells in, save it."""
    book = openpyxl.load_workbook(path)
    sheet = book.worksheets[0]
    names = [cell.value for cell in sheet[1]]
    for row in sheet.iter_rows(min_row=2):
        row[names.index(column)].value = values.get(str(row[names.index("id")].value))
    book.save(path)


def test_run_folder_has_workbooks_with_the_rows_of_its_tables(folder: Path) -> None:
    labels = list(openpyxl.load_workbook(folder / "labels.xlsx")["rows"].iter_rows(values_only=True))
    rows = read_csv(folder / "labels.csv")
    assert [str(row[0]) for row in labels[1:]] == [row["id"] for row in rows]
    assert labels[0] == tuple(rows[0])
    sheet = openpyxl.load_workbook(folder / "to_label.xlsx")["to_label"]
    assert {cell.value for cell in sheet["A"][1:]} == {"005", "006", "007"}
    assert sheet["B2"].value.startswith("=The city")
    (offered,) = sheet.data_validations.dataValidation
    assert str(offered.sqref) == "C2:C4"


def test_labels_filled_into_a_workbook_become_gold(folder: Path) -> None:
    fill(folder / "to_label.xlsx", "gold", {"005": "Yes, sure", "006": "no"})
    assert main(["fit", str(folder), "--gold", str(folder / "to_label.xlsx"), "-q"]) == 0
    assert {row["id"]: row["gold"] for row in read_csv(folder / "gold.csv")} == {"005": "yes, sure", "006": "no"}
    sheet = openpyxl.load_workbook(folder / "to_label.xlsx")["to_label"]
    assert [cell.value for cell in sheet["A"][1:]] == ["007"]
    assert not list(folder.glob("to_label-*.xlsx"))


def test_workbooks_are_kept_up_to_date_and_changed_ones_are_kept(folder: Path) -> None:
    fill(folder / "to_label.xlsx", "gold", {"005": "no"})
    fill(folder / "labels.xlsx", "gold", {"007": "no"})
    changed = (folder / "labels.xlsx").read_bytes()
    with pytest.warns(PcsWarning) as said:
        fit_run(folder)
    texts = " ".join(str(one.message) for one in said)
    assert "to_label.xlsx was filled in but not read" in texts
    assert "labels.xlsx was changed: it is kept as labels-" in texts
    assert len(list(folder.glob("*-*.xlsx"))) == 2
    assert (folder / "labels.xlsx").read_bytes() != changed
    fit_run(folder)
    assert len(list(folder.glob("*-*.xlsx"))) == 2


def test_gold_is_also_taken_from_the_labels_of_the_run(folder: Path) -> None:
    gold = {row["id"]: row["gold"] for row in ROWS}
    fill(folder / "labels.xlsx", "gold", {**gold, "007": "no"})
    with pytest.warns(PcsWarning):  # also that there are two sheets
        fit_run(folder, None, FromPeople(gold=folder / "labels.xlsx"))
    assert {row["id"]: row["gold"] for row in read_csv(folder / "gold.csv")}["007"] == "no"


def test_rows_drawn_with_known_probabilities_are_also_in_the_workbook(folder: Path) -> None:
    fill(folder / "to_label.xlsx", "gold", {"005": "no"})
    with pytest.warns(PcsWarning, match="to_label.xlsx was filled in but not read"):
        assert draw_gold(folder, 2, "simple").file == folder / "to_label.xlsx"
    sheet = openpyxl.load_workbook(folder / "to_label.xlsx")["to_label"]
    assert [cell.value for cell in sheet["A"][1:]] == [row["id"] for row in read_csv(folder / "to_label.csv")]


def test_verdicts_on_accepted_rows_are_chosen_in_a_workbook(promising_run: Path, tmp_path: Path) -> None:
    copy_run(promising_run, tmp_path / "run")
    fit_run(tmp_path / "run", None, FromPeople(audit=30, excel=True))
    path = tmp_path / "run" / "audit.xlsx"
    sheet = openpyxl.load_workbook(path)["audit"]
    (offered,) = sheet.data_validations.dataValidation
    assert str(offered.sqref) == "D2:D31"
    fill(path, "verdict", {str(cell.value): "right" for cell in sheet["A"][1:]})
    found = fit_run(tmp_path / "run", None, FromPeople(verdicts=path))
    assert found.certificate is not None
    assert found.certificate.audit is not None
    assert (found.certificate.audit.rows, found.certificate.audit.wrong) == (30, 0)


def test_large_table_has_a_workbook_unless_it_has_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_table, "IN_MEMORY_ROWS", 2)
    write_csv(Path("data.csv"), ROWS)
    assert main([*RUN, "--excel"]) == 0
    sheet = openpyxl.load_workbook("runs/data/labels.xlsx")["rows"]
    assert [cell.value for cell in sheet["A"][1:]] == [row["id"] for row in ROWS]
    for module in (workbook, for_excel):
        monkeypatch.setattr(module, "MOST_ROWS", 7)
    Path("runs/data/labels.xlsx").unlink()
    with pytest.warns(PcsWarning, match=r"labels\.xlsx was not written, because an Excel sheet has at most 7 rows"):
        fit_run(Path("runs/data"), None, FromPeople(excel=True))
