"""`pcs fit` as a user runs it: in a real process for the essentials, in this process for the rest."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.faces.cli.main import main
from tests.command_line import Pcs
from tests.simulated import read_csv

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "votes.csv"
LABELS = "runs/votes/labels.csv"
QUICK = ["--optimiser", "lr", "--folds", "2", "--resamples", "20"]
AUTO = ["--optimiser", "auto", "--folds", "2", "--resamples", "20"]


def test_the_installed_command_learns_and_labels(tmp_path: Path) -> None:
    pcs = Path(sys.executable).with_name("pcs")
    result = subprocess.run(
        [pcs, "fit", EXAMPLE, *QUICK, "--details"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    words = (
        "large",
        "double-negation",
        "class AUROC",
        "confidence",
        "equal weights",
        "majority",
        "stability",
        "adjusted for the number of methods (Holm)",
    )
    for word in (*words, f"labels {LABELS} (column pcs_final_label)"):
        assert word in " ".join(result.stdout.split())
    written = read_csv(tmp_path / LABELS)
    given = read_csv(EXAMPLE)
    assert [row["id"] for row in written] == [row["id"] for row in given]
    assert list(written[0])[: len(given[0])] == list(given[0])
    assert all(0 < float(row["pcs_confidence"]) < 1 for row in written)
    model = json.loads((tmp_path / "runs/votes/variables/label/model.json").read_text())
    assert model["schema"] == 1
    assert sum(model["weights"]["by_annotator"].values()) == pytest.approx(1)


def test_json_is_one_object_with_everything_the_screen_shows(pcs: Pcs) -> None:
    shown = pcs.json("fit", EXAMPLE, *QUICK)
    assert shown["rows"] == 90
    assert shown["gold_rows"] == 60
    assert set(shown["weights"]["by_annotator"]) == {"large", "small", "cheerful"}
    assert set(shown["weights"]["annotator_intervals"]) == {"large", "small", "cheerful"}
    assert [method["method"] for method in shown["cross_validation"]] == [
        "lr",
        "uniform",
        "majority",
        "zero-shot large",
    ]
    for method in shown["cross_validation"]:
        assert method["auroc"]["low"] <= method["auroc"]["value"] <= method["auroc"]["high"]
    for method in shown["cross_validation"][1:]:
        assert method["behind"]["p_value"] <= method["behind"]["p_holm"] <= 1
        assert method["accuracy_behind"]["p_value"] <= method["accuracy_behind"]["p_holm"] <= 1


def test_the_same_command_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("1", "2"):
        assert main(["fit", str(EXAMPLE), "-q", "-o", folder, *AUTO]) == 0
    for name in ("labels.csv", "variables/label/evaluation.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_a_row_without_votes_is_reported_and_the_exit_code_is_1(tmp_path: Path, pcs: Pcs) -> None:
    text = EXAMPLE.read_text() + "silent,,,,,,,,,,,,,\n"
    (tmp_path / "votes.csv").write_text(text)
    assert "1 row has no label" in pcs.out("fit", "votes.csv", *QUICK, code=1)
    last = read_csv(tmp_path / LABELS)[-1]
    assert (last["pcs_label"], last["pcs_decision"]) == ("", "review")
    assert last["pcs_reason"]


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", [], r"votes\.csv is empty"),
        ("id,gold,a|x\n1,yes,yes\n2,no,maybe\n", ["--labels", "yes,no"], r"id '2': 'maybe'"),
        ("id,gold,a|x\n1,yes,yes\n", [], "at least two labels"),
        ("id,gold,a|x\n1,yes,yes\n2,no,no\n", ["--optimiser", "lrr"], "'lrr'.* 'lr'"),
        ("id,gold,a|x\n1,yes,yes\n2,no,no\n", ["--folds", "1"], "'--folds'"),
    ],
)
def test_bad_input_is_one_clear_sentence_and_exit_code_2(
    text: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("votes.csv").write_text(text)
    assert main(["fit", "votes.csv", *arguments]) == 2
    captured = capsys.readouterr()
    assert re.search(message, captured.err), captured.err
    assert "Traceback" not in captured.err
    assert not Path("runs").exists()


def test_two_rows_are_answered_without_nan(pcs: Pcs) -> None:
    Path("votes.csv").write_text("id,gold,a|x\n1,yes,yes\n2,no,no\n")
    shown = pcs.json("fit", "votes.csv", "--resamples", "20")
    assert shown["cross_validation"] == []
    assert shown["no_cross_validation"]
    assert "nan" not in Path(LABELS).read_text()


def test_other_columns_of_the_table_are_kept_and_mentioned(pcs: Pcs) -> None:
    Path("votes.csv").write_text("id,gold,a|x,text,note\n1,yes,yes,hello,1\n2,no,no,there,2\n")
    shown = pcs("fit", "votes.csv", *QUICK)
    assert "not read as votes: 'note'" in shown
    assert "'text'" not in shown
    assert [row["text"] for row in read_csv(Path(LABELS))] == ["hello", "there"]


VOTES = "id,gold,a|x,text\n1,yes,yes,hello\n2,no,no,there\n"


def test_a_table_with_a_row_per_vote_may_have_texts(pcs: Pcs) -> None:
    lines = [f"{row},{model},original,{'ab'[row % 2]},{'ab'[row % 2]}" for row in range(20) for model in ("x", "y")]
    texts = [f"Text {line.split(',')[0]}" if ",x," in line else "" for line in lines]  # one row of each item has it
    rows = [f"{line},{text}" for line, text in zip(lines, texts, strict=True)]
    Path("long.csv").write_text("\n".join(["id,annotator,relation,label,gold,text", *rows]) + "\n")
    pcs.out("fit", "long.csv", *QUICK)
    assert [row["text"] for row in read_csv(Path("runs/long/labels.csv"))] == [f"Text {row}" for row in range(20)]


def test_the_run_of_another_table_is_kept_under_a_dated_name(tmp_path: Path, pcs: Pcs) -> None:
    fit = ["fit", "votes.csv", *QUICK, "-q"]
    Path("votes.csv").write_text(VOTES)
    assert [main(fit), main(fit)] == [0, 0]  # the same table again is fitted again
    Path("votes.csv").write_text(VOTES.replace("hello", "another"))
    assert re.search(r"1 of 2 rows have another text in votes\.csv.*--replace", pcs.refused(*fit))
    Path("votes.csv").write_text(VOTES.replace("no,no", "maybe,no"))
    assert "results with other labels (no, yes)" in pcs.refused(*fit)
    assert main([*fit, "--replace"]) == 0
    assert len([*tmp_path.glob("runs/votes/earlier-20*/labels.csv")]) == 1


def test_a_folder_of_a_run_that_asked_models_is_not_filled_with_a_table(pcs: Pcs) -> None:
    Path("data.csv").write_text("id,text,gold\n1,hello,yes\n2,there,no\n")
    assert main(["run", "data.csv", "--model", "scripted:hash", "--relations", "original", "-o", "run", "-q"]) == 0
    Path("votes.csv").write_text(VOTES)
    assert "run has results of a run that asked models" in pcs.refused("fit", "votes.csv", "-o", "run")
    Path("book").mkdir()
    Path("book/book.json").write_text('{"variables": {"topic": {}}}')
    assert "book has several variables: name another folder" in pcs.refused("fit", "votes.csv", "-o", "book")


def test_a_run_of_a_table_is_taken_by_commands_that_take_runs(pcs: Pcs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(EXAMPLE), "-q", *QUICK]) == 0
    for command in (
        ["report", "runs/votes"],
        ["evaluate", "runs/votes", "--methods", "uniform", "--resamples", "20"],
        ["estimate", "runs/votes"],
        ["compare", "runs/votes:model=large", "runs/votes:model=small"],
        ["paper", "runs/votes"],
        ["versions", "runs/votes"],
        ["finish", "runs/votes", "--max-error", ".1"],
    ):
        assert main(command) == 0, command
        assert "Traceback" not in capsys.readouterr().err
    assert "made of a table of votes, so no model can be asked" in pcs.refused(
        "label", EXAMPLE, "--run", "runs/votes", "--text-column", "id"
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["fit", "votes.csv", "-o", "votes.csv"], r"votes\.csv is a file"),
        (["fit", "folder", "-o", "labels.csv"], "for a table of votes"),
        (["evaluate", "votes.csv", "--out", "tables.xlsx"], r"tables\.xlsx .*name a folder"),
        (["evaluate", "votes.csv", "--out", "votes.csv"], r"votes\.csv is a file"),
        (["experiment", "rq1", "votes.csv", "--out", "tables.csv"], r"tables\.csv .*name a folder"),
    ],
)
def test_outputs_that_would_be_something_else_are_refused(
    arguments: list[str], complaint: str, tmp_path: Path, pcs: Pcs
) -> None:
    Path("votes.csv").write_text(VOTES)
    Path("folder").mkdir()
    with Ledger(Path("ledger.db")):
        pass
    before = sorted(tmp_path.iterdir())
    assert re.search(complaint, pcs.refused(*arguments))
    assert [path for path in sorted(tmp_path.iterdir()) if not path.name.startswith("ledger.db-")] == before


def test_votes_and_gold_with_and_without_a_decimal_point_are_one_label(pcs: Pcs) -> None:
    rows = [f"{row},{'6.0' if row % 2 else '3.0'},{6 if row % 2 else 3}" for row in range(20)]
    Path("votes.csv").write_text("id,gold,a|x\n" + "\n".join([*rows, "20,,6"]) + "\n")
    shown = pcs.json("fit", "votes.csv", *QUICK)
    assert shown["labels"] == ["3", "6"]


def test_texts_of_a_table_are_not_learned_from_if_that_is_not_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        f"{row},{'yes' if row % 2 else 'no'},{'yes' if row % 3 else 'no'},{'sun' if row % 2 else 'rain'} {row}"
        for row in range(80)
    ]
    Path("votes.csv").write_text("id,gold,a|x,text\n" + "\n".join(rows) + "\n")
    found = []
    for more in ([], ["--no-text"]):
        assert main(["fit", "votes.csv", *more, *QUICK, "--json"]) == 0
        capsys.readouterr()
        found.append(json.loads(Path("runs/votes/variables/label/model.json").read_text()))
    assert [model["learn"]["text"] for model in found] == [True, False]
    assert found[0] != {**found[1], "learn": found[0]["learn"]}
