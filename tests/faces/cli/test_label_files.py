"""Labels in the files that users name."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from pcs_annotator.faces.cli.main import main
from tests.command_line import Pcs

HEADER = "id;text;gold;year"
ROWS = ["7;The city; bought buses;good;2020", "8;naïve – nein;bad;2021", "9;=1+1;;2022"]
LABEL = ["label", "data.csv", "--run", "runs/data", "-q"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("made")
    lines = [HEADER, '7;"The city; bought buses";good;2020', *ROWS[1:]]
    (home / "data.csv").write_text("".join(f"{line}\r\n" for line in lines), encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert main(["run", "data.csv", "--labels", "good,bad", "--model", "scripted:hash", "-q"]) == 0
    return home


@pytest.fixture(autouse=True)
def in_the_folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)


def test_csv_is_written_as_the_data_is() -> None:
    assert main([*LABEL, "-o", "same.csv"]) == 0
    lines = Path("same.csv").read_bytes().decode().split("\r\n")
    assert lines[0].startswith(f"{HEADER};pcs_label;pcs_confidence;pcs_decision;pcs_reason;")
    assert lines[1].startswith('7;"The city; bought buses";good;2020;')
    assert Path("runs/data/labels.csv").read_bytes().startswith(b"id,text,gold,year,pcs_label")


def test_tabs_of_tsv_do_not_end_up_in_csv() -> None:
    Path("tabs.tsv").write_text("id\ttext\n7\tThe city\n", encoding="utf-8")
    for out, start in (("from-tsv.csv", "id,text,"), ("from-tsv.tsv", "id\ttext\t")):
        assert main(["label", "tabs.tsv", "--run", "runs/data", "-q", "-o", out]) == 0
        assert Path(out).read_text(encoding="utf-8").startswith(start)


def test_parquet_has_numbers_as_numbers() -> None:
    assert main([*LABEL, "-o", "labels.parquet"]) == 0
    table = parquet.read_table("labels.parquet")
    assert table["id"].to_pylist() == ["7", "8", "9"]
    assert str(table.schema.field("score_good").type) == "double"


def test_rows_go_to_standard_output_and_all_else_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["label", "data.csv", "--run", "runs/data", "-o", "-", "--format", "jsonl"]
    assert main(arguments) == 0
    found = capfd.readouterr()
    assert [json.loads(line)["id"] for line in found.out.splitlines()] == ["7", "8", "9"]
    assert "answers from the ledger" in found.err
    assert main([*arguments, "--json"]) == 2
    assert "both write to standard output" in capfd.readouterr().err


def test_a_reader_that_stops_early_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main([*LABEL, "-o", "-"]) == 130
        sys.stdout.close()  # by then, it is another
    assert capsys.readouterr().err == ""


def test_too_many_rows_for_a_sheet_are_refused_before_any_call(monkeypatch: pytest.MonkeyPatch, pcs: Pcs) -> None:
    monkeypatch.setattr("pcs_annotator.tables.workbook.MOST_ROWS", 2)
    Path("new.csv").write_text("text\nnever\nasked\nbefore\n", encoding="utf-8")
    assert "an Excel sheet has at most 2 rows" in pcs.refused(
        "label", "new.csv", "--run", "runs/data", "-o", "new.xlsx", "--max-calls", "1"
    )
    assert not Path("new.xlsx").exists()


def test_what_the_labels_cost_now_is_said(pcs: Pcs) -> None:
    Path("dear.csv").write_text("text\nA text that nobody has asked about yet.\n", encoding="utf-8")
    wanted = ("label", "dear.csv", "--run", "runs/data", "--price", "scripted:hash=1000000,1000000", "--replace")
    assert re.search(r"\d calls; \$\d+\.\d\d", first := pcs.out(*wanted)), first
    again = pcs.out(*wanted)
    assert "answers from the ledger" in again
    assert "$" not in again
