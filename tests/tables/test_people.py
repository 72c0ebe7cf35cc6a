from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import UserError
from pcs_annotator.base.errors import TableError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs.resolve_config import read_settings, task_of
from pcs_annotator.tables.chunks import Columns
from pcs_annotator.tables.people import GivenGold, read_codebook, read_examples, read_gold, write_to_label


def saved(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def written(folder: Path, content: str) -> Path:
    return saved(folder / "filled.csv", content)


def test_rows_to_label_have_an_empty_column_for_the_person(tmp_path: Path) -> None:
    path = tmp_path / "to_label.csv"
    write_to_label(path, [("a", 'says "no", then\nyes', "for review"), ("b", "Two", "at random")])
    lines = path.read_text(encoding="utf-8")
    assert lines.startswith("id,text,gold,drawn\n") or lines.startswith('"id","text","gold","drawn"\n')
    with pytest.raises(TableError, match=r"to_label\.csv.*gold is empty"):
        read_gold(path)


def test_empty_rows_are_left_out_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, "ID, Gold ,text\na,,One\nb, good ,Two\n7,bad,Three\n")
    assert read_gold(path) == [GivenGold(3, "b", "good", text="Two"), GivenGold(4, "7", "bad", text="Three")]


def test_texts_may_be_in_the_column_that_they_have_in_the_data(tmp_path: Path) -> None:
    path = written(tmp_path, "id,Headline,text,gold\na,Short,Long,good\n")
    assert [one.text for one in (*read_gold(path, Columns(text="headline")), *read_gold(path))] == ["Short", "Long"]


def test_without_a_kind_a_row_was_chosen_by_a_person(tmp_path: Path) -> None:
    path = written(tmp_path, "id,gold,drawn\na,good,\nb,bad,for review\n")
    assert [one.kind for one in read_gold(path)] == ["by a person", "for review"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("id,label\na,good\n", r"filled\.csv.*'gold'.*id, label"),
        ("gold\ngood\n", "'id'"),
        ("id,gold,drawn\na,good,by me\n", r"row 2.*'by me'.*at random,.* for review"),
    ],
)
def test_unusable_gold_is_an_error(content: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=problem):
        read_gold(written(tmp_path, content))


def test_a_spreadsheet_runs_no_cell_and_every_cell_is_read_back(tmp_path: Path) -> None:
    ids = ["=1+1", "+1", "-1", "@x", "'=x", "''-x", "'quoted'", "a=b"]
    path = tmp_path / "to_label.csv"
    write_to_label(path, [(name, name, "at random") for name in ids])
    lines = path.read_text(encoding="utf-8").splitlines()
    safe = ["'=1+1", "'+1", "'-1", "'@x", "''=x", "'''-x", "'quoted'", "a=b"]
    assert [line.partition(",")[0] for line in lines[1:]] == safe
    filled = "\n".join(line.replace(",,", ",good,") for line in lines)
    assert [(gold.id, gold.text) for gold in read_gold(saved(path, filled))] == [(name, name) for name in ids]
    write_to_label(path, [("a", "\t=cmd()", "at random")])
    assert "\na,'\t=cmd(),,at random\n" in path.read_text(encoding="utf-8")


def test_gold_is_read_from_the_columns_of_the_data(tmp_path: Path) -> None:
    path = written(tmp_path, "Case,said,code\nc1,One,good\nc2,Two,\n")
    used = Columns(text="said", id="case", gold="code")
    assert read_gold(path, used) == [GivenGold(2, "c1", "good", text="One")]
    numbered = replace(used, id=None)
    assert read_gold(path, numbered) == [GivenGold(2, "1", "good", text="One")]
    with pytest.raises(TableError, match="no column 'id'"):
        read_gold(written(tmp_path, "code\ngood\n"), numbered)


BOOK = (
    "Label,Definition,Example,example 2,instruction\n"
    "sport,about games,A goal.,A match.,What is it about?\n"
    ",,,,\n"
    "money,,Shares fell.,,What is it about?\n"
)


def test_a_codebook_has_labels_meanings_examples_and_an_instruction(tmp_path: Path) -> None:
    book = read_codebook(saved(tmp_path / "book.csv", BOOK))[""]
    assert book.labels == ("sport", "money")
    assert book.meanings == {"sport": "about games"}
    assert [one["text"] for one in book.examples if one["label"] == "sport"] == ["A goal.", "A match."]
    assert book.examples[-1] == {"text": "Shares fell.", "label": "money"}
    assert book.instruction == "What is it about?"
    tabs = read_codebook(saved(tmp_path / "book.tsv", "label\tmeaning\na\tfirst\nb\t\n"))[""]
    assert tabs == (("a", "b"), {"a": "first"}, (), "", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("variable,label\n,a\n", "there is no variable"),
        ("variable,kind,label\nx,one,a\nx,many,b\n", "have different kinds"),
        ("label\na\nA\n", "book.csv, row 3: the label 'A' is in book.csv, row 2 too: keep one row"),
        ("label,example\n,A text\n", "book.csv, row 2: there is no label"),
        ("label,definition\n,x\n", "book.csv, row 2: there is no label"),
        ("label,notes\na,x\n", r"book.csv has a column 'notes', .*: rename or remove it"),
        ("name\na\n", "book.csv has no column 'label'"),
        ("label,instruction\na,One?\nb,Two?\n", "row 2 and book.csv, row 3 have different instructions"),
        ("label\n", "book.csv has no"),
    ],
)
def test_errors_in_a_codebook_name_file_and_row(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message):
        read_codebook(saved(tmp_path / "book.csv", content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\nA goal.,\n", "shown.csv, row 2: the example has no label"),
        ("text,label\nA goal.,sport\n,sport\n", "shown.csv, row 3: the example has no text"),
        ("text,label\n", "shown.csv has no"),
        ("txt,label\nA goal.,sport\n", "shown.csv has no column 'text'; did you mean 'txt'\\? there are txt, label"),
    ],
)
def test_errors_in_a_table_of_examples_name_file_and_row(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message):
        read_examples(saved(tmp_path / "shown.csv", content))


def test_settings_name_tables_from_their_own_folder(tmp_path: Path) -> None:
    saved(tmp_path / "book.csv", BOOK)
    saved(tmp_path / "shown.csv", "id,text,label,why\n1,A cup.,SPORT,a prize\n")
    path = saved(tmp_path / "pcs.toml", '[task]\ncodebook = "book.csv"\nexamples_from = "shown.csv"\n')
    task = task_of(read_settings(path, Path("elsewhere"), {}))
    assert (task.instruction, task.labels) == ("What is it about?", ("sport", "money"))
    assert [one.text for one in task.examples] == ["A goal.", "A match.", "Shares fell.", "A cup."]
    assert task.examples[-1].why == "a prize"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": ["sport", "politics"]}, "the labels sport, money, and the settings have sport, politics"),
        ({"examples": "none.csv"}, "there is no file .*none.csv"),
        ({"examples": "shown.csv"}, r"shown\.csv, row 3, column label: 'politics' is not one of the labels"),
    ],
)
def test_what_does_not_fit_together_is_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    saved(tmp_path / "shown.csv", "text,label\nA goal.,sport\nA vote.,politics\n")
    files = {"examples": tmp_path / given["examples"]} if "examples" in given else {}
    with pytest.raises(UserError, match=message):
        read_settings(None, tmp_path, {"codebook": saved(tmp_path / "book.csv", BOOK), **given, **files})


def test_on_the_command_line_bad_tables_end_with_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = saved(tmp_path / "data.csv", "text,gold\nA goal.,sport\nA loan.,money\n")
    shown = saved(tmp_path / "shown.csv", "text,label\nA vote.,politics\n")
    for given in (["--examples", str(shown)], ["--codebook", str(shown)], ["--examples", str(tmp_path / "none.csv")]):
        assert main(["plan", str(data), "--model", "scripted:hash", *given]) == 2
        printed = capsys.readouterr().err
        assert "error: " in printed
        assert "Traceback" not in printed


def test_a_codebook_may_have_several_variables(tmp_path: Path) -> None:
    sheet = "variable,kind,label,definition\ntone,,warm,kind\ntone,,cold,\nframes,many,conflict,\nframes,many,money,\n"
    books = read_codebook(saved(tmp_path / "book.csv", sheet))
    assert {name: (book.labels, book.kind) for name, book in books.items()} == {
        "tone": (("warm", "cold"), ""),
        "frames": (("conflict", "money"), "many"),
    }
