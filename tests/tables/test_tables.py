from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pcs_annotator import Outcome
from pcs_annotator.base.errors import PcsWarning, TableError
from pcs_annotator.core.review import Reviewed, Verdict
from pcs_annotator.tables.result_columns import with_outcomes
from pcs_annotator.tables.sources import read_source
from pcs_annotator.tables.table_writer import TableStyle
from pcs_annotator.tables.tables import Columns, Dataset, write_table


def outcome(
    name: str,
    label: str | None = "fake",
    labels: Sequence[str] = ("fake", "real"),
    probabilities: Mapping[str, float] | None = None,
) -> Outcome:
    return Outcome(
        id=name,
        label=label,
        scores=dict(zip(labels, (0.75, 0.25, 0.0), strict=False)),
        confidence=None if label is None else 0.123456789,
        decision="review" if label is None else None,
        reason="no votes" if label is None else "",
        probabilities=probabilities or {},
    )


def test_users_columns_come_first_and_in_their_order() -> None:
    table = with_outcomes({"z": [1, 2], "id": ["a", "b"]}, [outcome("a"), outcome("b", None)], ["fake", "real"])
    ours = ["pcs_label", "pcs_confidence", "pcs_decision", "pcs_reason", "score_fake", "score_real"]
    assert table.column_names == ["z", "id", *ours]
    assert table.to_pylist()[0] == {
        "z": 1,
        "id": "a",
        "pcs_label": "fake",
        "pcs_confidence": 0.123457,
        "pcs_decision": None,
        "pcs_reason": "",
        "score_fake": 0.75,
        "score_real": 0.25,
    }
    assert table["pcs_decision"].to_pylist() == [None, "review"]


def test_results_have_the_same_names_whatever_the_users_columns_are_called() -> None:
    taken = ("label", "confidence", "decision", "reason", "score")
    table = with_outcomes({name: ["mine"] for name in taken}, [outcome("a")], ["fake", "real"])
    assert table["label"].to_pylist() == ["mine"]
    assert table["pcs_label"].to_pylist() == ["fake"]
    assert table.column_names[: len(taken)] == list(taken)


def test_a_users_column_with_a_name_of_ours_gets_another_name_and_a_note() -> None:
    mine = {"pcs_label": ["mine"], "input_pcs_label": ["too"], "pcs_verdict": ["old"], "score_fake": [1]}
    with pytest.warns(PcsWarning, match="'pcs_label' is now 'input_pcs_label_2', 'pcs_verdict' is now 'input_pcs_ver"):
        table = with_outcomes(mine, [outcome("a")], ["fake", "real"])
    assert table.column_names[:4] == ["input_pcs_label_2", "input_pcs_label", "input_pcs_verdict", "input_score_fake"]
    assert table["input_pcs_label_2"].to_pylist() == ["mine"]
    assert table["pcs_label"].to_pylist() == ["fake"]
    assert table["score_fake"].to_pylist() == [0.75]


def test_results_of_results_stay_readable() -> None:
    table = with_outcomes({"text": ["t"]}, [outcome("a")], ["fake", "real"])
    for _ in range(2):
        with pytest.warns(PcsWarning, match="names that results have"):
            table = with_outcomes(table, [outcome("a", "real")], ["fake", "real"])
    assert table["pcs_label"].to_pylist() == ["real"]
    assert [table[name].to_pylist() for name in ("input_pcs_label", "input_pcs_label_2")] == [["fake"], ["real"]]


def test_columns_of_labels_never_collide() -> None:
    labels = ["x", "p_x", "label"]
    sure = outcome("a", "x", labels=labels, probabilities={"x": 0.123456789, "p_x": 0.5, "label": 0.376543211})
    with pytest.warns(PcsWarning, match="'p_x' is now 'input_p_x'"):
        table = with_outcomes({"p_x": ["mine", "too"]}, [sure, outcome("b", None, labels=labels)], labels)
    assert table.column_names[-6:] == ["score_x", "score_p_x", "score_label", "p_x", "p_p_x", "p_label"]
    assert table["p_x"].to_pylist() == [table["pcs_confidence"][0].as_py(), None]
    assert [table[name][0].as_py() for name in ("p_p_x", "p_label")] == [0.5, 0.376543]


def test_a_table_with_a_row_per_vote_becomes_one_with_a_row_per_item() -> None:
    table = with_outcomes({"id": ["a", "a", "b"]}, [outcome("a"), outcome("b")], ["fake", "real"])
    assert table["id"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet"])
def test_the_file_extension_decides_how_tables_are_written(tmp_path: Path, name: str) -> None:
    table = pa.table({"id": ["a", "b"], "text": ['says "no", then\nyes', None]})
    write_table(tmp_path / name, table)
    if name.endswith("parquet"):
        assert pq.read_table(tmp_path / name).equals(table)
    else:
        with (tmp_path / name).open(newline="") as file:
            assert list(csv.reader(file)) == [["id", "text"], ["a", 'says "no", then\nyes'], ["b", ""]]


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


def test_columns_can_be_named(tmp_path: Path) -> None:
    found = dataset_of(tmp_path, "key,words,truth\na,One,x\n", text="words", id="key", gold="truth")
    assert found.items[0].id == "a"
    assert found.gold == ("x",)


def test_a_file_without_gold_has_none(tmp_path: Path) -> None:
    assert dataset_of(tmp_path, "text\nOne\n").gold == ()


def test_the_limit_is_the_number_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("text\nOne\nTwo\n", encoding="utf-8")
    found = read_source(path, Columns(), limit=1)
    assert (len(found.items), len(found.table)) == (1, 1)


@pytest.mark.parametrize(
    ("content", "columns", "problem"),
    [
        ("key,words\na,One\n", {}, r"texts\.csv.* --text-column: key, words"),
        (
            "key,words\na,One\n",
            {"text": "txt"},
            r"texts\.csv.*'txt'.*--text-column.*key, words",
        ),
        ("key,text\na,One\n", {"id": "id"}, r"'id'.*--id-column"),
        ("key,text\na,One\n", {"gold": "truth"}, r"'truth'.*--gold-column"),
        ("id,text\na,One\nb,Two\na,Three\n", {}, r"texts\.csv, rows 1 and 3.*id 'a'"),
        ("id,text\n", {}, r"texts\.csv.*no rows"),
        ("id,text\nid,text\na,One\n", {}, r"texts\.csv: row 1.*header"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(
    content: str, columns: dict[str, str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(TableError, match=problem):
        items_of(tmp_path, content, **columns)


def test_labels_are_faithful_unless_they_are_to_be_safe_in_a_spreadsheet(tmp_path: Path) -> None:
    table = pa.table({"=name": ["=1+1", "plain", None], "number": [-1.5, 2.0, None]})
    path = tmp_path / "labels.csv"
    write_table(path, table)
    assert path.read_text(encoding="utf-8") == "=name,number\n=1+1,-1.5\nplain,2.0\n,\n"
    write_table(path, table, TableStyle(spreadsheet_safe=True))
    assert path.read_text(encoding="utf-8") == "'=name,number\n'=1+1,-1.5\nplain,2.0\n,\n"


def reviewed(label: str | None, reviewer: str, *more: str) -> Reviewed:
    given = [(label, reviewer), *((other, f"{reviewer}{place}") for place, other in enumerate(more))]
    verdicts = (
        Verdict(number=number, id="a", text_hash="h", label=one, reviewer=who, at="", queue="learn")
        for number, (one, who) in enumerate(given)
    )
    return Reviewed.of(verdicts)


def test_verdicts_of_people_are_kept_apart_from_the_labels_of_models() -> None:
    people = [reviewed("real", "anna"), None, reviewed(None, "anna"), reviewed("real", "anna", "fake")]
    outcomes = [*(outcome(name) for name in "abc"), outcome("d", None)]
    table = with_outcomes({"id": list("abcd")}, outcomes, ["fake", "real"], people)
    assert table.column_names[-3:] == ["pcs_verdict", "pcs_reviewer", "pcs_final_label"]
    assert table["pcs_label"].to_pylist() == ["fake", "fake", "fake", None]
    assert table["pcs_verdict"].to_pylist() == ["real", None, None, None]
    assert table["pcs_reviewer"].to_pylist() == ["anna", None, None, None]
    assert table["pcs_final_label"].to_pylist() == ["real", "fake", "fake", None]


def test_the_final_label_is_the_verdict_else_gold_as_the_task_spells_it_else_that_of_the_models() -> None:
    people = [reviewed("real", "anna"), None, reviewed("real", "anna", "fake"), None]
    outcomes = [outcome(name) for name in "abcd"]
    gold = ["fake", "REAL", "real", None]
    table = with_outcomes({"id": list("abcd")}, outcomes, ["fake", "real"], people, gold)
    assert table["pcs_final_label"].to_pylist() == ["real", "real", "real", "fake"]
