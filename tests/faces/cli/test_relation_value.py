"""`pcs relations value`: what each relation adds, in a table, in sentences, and as JSON."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcs_annotator import relation_values
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.tables.vote_tables import read_vote_table
from tests.command_line import Pcs
from tests.faces.cli.test_evaluate import write_graded

QUICK = ["--resamples", "50", "--repeats", "1"]


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")


def write_votes(*, rows: int = 200, gold: bool = True, relations: int = 4) -> str:
    """One model: `order` is as good as the original, `rare` applies to 5 rows, `typo` to half of them and is noise."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=rows)

    def said(chance: float) -> list[str]:
        return ["no" if right else "yes" for right in (rng.random(rows) < chance) ^ (truth == 1)]

    columns = {"original": said(0.75), "order": said(0.85), "rare": said(0.9), "typo": said(0.5)}
    columns["rare"][5:] = columns["typo"][rows // 2 :] = []
    names = list(columns)[:relations]
    with open("votes.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["id", "annotator", "relation", "label", *(["gold"] if gold else [])])
        for row in range(rows):
            answers = ((name, columns[name][row]) for name in names if row < len(columns[name]))
            label = [["no", "yes"][truth[row]]] if gold else []
            out.writerows([str(row), "m", name, answer, *label] for name, answer in answers)
    return "votes.csv"


def test_the_table_and_the_sentences_say_what_to_keep(pcs: Pcs) -> None:
    answer = pcs.out("relations", "value", write_votes(), *QUICK)
    assert len(answer.splitlines()) <= 15
    assert "order     100 % (200)" in answer
    assert "verdict  Keep order (+" in answer
    text = pcs("relations", "value", write_votes(), *QUICK, "--details")
    assert "What each relation adds beside 'original' on 200 gold rows" in text
    assert "order 100 % (200) 1.00" in text
    assert "typo 50 % (100) 0.50" in text
    assert "Keep order (+" in text
    assert "200 gold rows cannot tell about" in text
    assert "rare (applies to 5)" in text
    assert "Gold rows to tell a gain of 2 points: about" in text
    assert "All together add +" in text
    assert "by auto on labels only; 5-fold cross-validation, seeds 0." in text


def test_json_has_the_same_figures_as_python(pcs: Pcs) -> None:
    source = write_votes()
    found = pcs.json("relations", "value", source, *QUICK, "--rewritten", "order")
    votes, gold = read_vote_table(source)
    valued = relation_values(votes, gold, rewritten=["order"], repeats=1, resamples=50)
    assert found["conclusions"] == list(valued.conclusions)
    named = {one["relation"]: one for one in found["relations"]}
    order = next(one for one in valued.relations if one.relation == "order")
    assert order.per_question is not None
    assert named["order"]["per_question"]["low"] == pytest.approx(order.per_question.interval.low)
    assert named["order"]["calls_per_text"] == order.calls == 2  # a question and a rewrite
    assert named["order"]["advice"] == "keep"
    assert named["rare"]["per_question"] is None
    assert named["rare"]["covered"] == 5
    assert (found["n"], found["optimiser"], found["graded"], found["absent"]) == (200, "auto", False, [])
    with pytest.raises(ConfigError, match="there is no setting 'fold'"):
        relation_values(votes, gold, fold=2)


def test_log_probabilities_can_be_left_out(pcs: Pcs) -> None:
    source = write_graded(Path("graded.csv"))
    shown = []
    for extra in ([], ["--hard"], ["--hard", "--optimiser", "lr"]):
        found = pcs.json("relations", "value", source, *QUICK, *extra)
        shown.append((found["optimiser"], found["graded"]))
    assert shown == [("auto", True), ("auto", False), ("lr", False)]


def test_a_run_folder_is_read_without_calling_a_model(pcs: Pcs, capsys: pytest.CaptureFixture[str]) -> None:
    with open("texts.csv", "w", encoding="utf-8") as file:
        file.write("text,gold\n" + "".join(f"The city bought {row} old buses.,{'ab'[row % 2]}\n" for row in range(30)))
    options = ["--model", "scripted:hash", "--relations", "original,order,frame", "--optimiser", "lr", "--quiet"]
    assert main(["run", "texts.csv", "--out", "run", *options]) == 0
    before = {path: path.stat().st_mtime_ns for path in Path("run").iterdir()}
    capsys.readouterr()
    found = pcs.json("relations", "value", "run", *QUICK)
    assert {one["relation"] for one in found["relations"]} == {"order", "frame"}
    assert {path: path.stat().st_mtime_ns for path in Path("run").iterdir()} == before


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"gold": False}, "votes.csv has no gold labels"),
        ({"relations": 1}, "ask with more relations, for example --relations original,order,wording"),
        ({"rows": 8}, "label more rows"),
    ],
)
def test_what_cannot_be_measured_ends_with_exit_code_2(given: dict[str, Any], remedy: str, pcs: Pcs) -> None:
    assert remedy in pcs.refused("relations", "value", write_votes(**given))
    assert "no relation is called 'voice'" in pcs.refused("relations", "value", write_votes(), "--rewritten", "voice")
