import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pcs_annotator import PcsWarning, run
from pcs_annotator.base.errors import TableError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.tables.chunks import Columns, open_stream
from pcs_annotator.tables.source_files import Reading
from tests.runs.invented_files import CASES, GERMAN, PLAIN, RUSSIAN, Case, cells, table, workbook

PLAN = ["--model", "scripted:hash", "--labels", "good,bad", "--relations", "original", "--json"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_file_is_read_right_or_refused_with_the_remedy(case: Case, tmp_path: Path) -> None:
    path = tmp_path / case.name
    case.make(path)
    if case.rows is None:
        with pytest.raises(TableError) as refused:
            open_stream(path, Columns(text="text"), reading=case.reading).table()
        said = [str(refused.value)]
        assert said[0].startswith((case.name, "there is no encoding"))
    else:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stream = open_stream(path, Columns(text="text"), reading=case.reading)
            found = stream.table().to_pylist()
        assert found == list(case.rows)
        said = [str(one.message) for one in caught if one.category is PcsWarning]
        assert len(said) == len(caught) == bool(case.words)
        assert stream.rows in (None, len(case.rows))
    assert [word for word in case.words if word not in said[0]] == []


@pytest.mark.parametrize("name", ["windows-1250.csv", "second-sheet.xlsx", "texts.sqlite", "password.xlsx", "old.xls"])
def test_the_command_line_reads_or_refuses_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (case,) = [case for case in CASES if case.name == name]
    case.make(Path(name))
    code = main(["plan", name, *PLAN])
    shown = capsys.readouterr()
    assert [word for word in case.words if word not in shown.err] == []
    if case.rows is None:
        assert code == 2
        assert shown.err.startswith(f"error: {name}")
    else:
        assert code == 0
        assert json.loads(shown.out)["calls"] == sum(bool(row["text"]) for row in case.rows)


@contextmanager
def piped(path: Path) -> Iterator[None]:
    with path.open(encoding="latin-1") as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", file)
        yield


@pytest.mark.parametrize("name", ["utf-16-le-bom.txt", "lines.jsonl", "list.json.gz", "rows.parquet"])
def test_standard_input_is_read_whatever_it_is(name: str, tmp_path: Path) -> None:
    (case,) = [case for case in CASES if case.name == name]
    case.make(tmp_path / name)
    with piped(tmp_path / name):
        stream = open_stream(Path("-"), Columns(text="text"))
    assert [stream.table().to_pylist() for _ in range(2)] == [case.rows] * 2  # it is read more than once


def test_a_run_from_standard_input_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table(PLAIN)(Path("data.csv"))
    calls = []
    for _ in range(2):
        with piped(Path("data.csv")):
            calls.append(run("-", models=["scripted:hash"], relations=["original"]).tally.calls)
    assert calls == [3, 0]
    assert Path("runs/stdin/labels.csv").exists()


def test_standard_input_that_is_a_terminal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(TableError, match=r"pcs plan - < news\.csv"):
        open_stream(Path("-"), Columns())


def test_a_second_run_needs_no_option_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    workbook(("A", cells(RUSSIAN)), ("B", cells(PLAIN)))(Path("data.xlsx"))
    first = run("data.xlsx", models=["scripted:hash"], relations=["original"], sheet="B")
    for _ in range(2):
        again = run("data.xlsx", models=["scripted:hash"], relations=["original"])
        assert again.tally.calls == 0
        assert [one.id for one in again.outcomes] == [one.id for one in first.outcomes] == ["1", "2", "3"]


def test_an_option_that_does_not_suit_the_file_is_refused(tmp_path: Path) -> None:
    table(PLAIN)(tmp_path / "t.csv")
    workbook(("A", cells(PLAIN)))(tmp_path / "t.xlsx")
    for name, reading, words in (
        ("t.csv", Reading(sheet="1"), "has no sheets"),
        ("t.xlsx", Reading(encoding="utf-8"), "not a text file"),
        ("t.xlsx", Reading(sheet="7"), "no sheet '7'"),
    ):
        with pytest.raises(TableError, match=words):
            open_stream(tmp_path / name, Columns(), reading=reading)


def test_files_that_are_guessed_alike_are_named_once(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "c.csv"):
        table(GERMAN, "cp1252")(tmp_path / name)
    with pytest.warns(PcsWarning, match=r"a\.csv is read as cp1252 .* \(and so are 2 more files\)") as caught:
        open_stream(tmp_path, Columns())
    assert len(caught) == 1
