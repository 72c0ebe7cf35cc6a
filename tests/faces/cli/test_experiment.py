import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator.faces.cli.main import main
from tests.command_line import Pcs
from tests.faces.cli.test_evaluate import ODD, write_votes

pytestmark = pytest.mark.system

QUICK = ["--resamples", "20", "--repeats", "1", "--out", "out"]
NAMES = ["rq1", "rq2", "rq3", "rq4", "size"]


def test_all_experiments_leave_tables_in_three_formats_plots_and_how_they_were_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = write_votes(Path("sentiment.csv"), keep=40), write_votes(Path("other.csv"), keep=30)
    assert main(["experiment", "all", first, f"gossip={second}", *QUICK, "--folds", "2", "--details"]) == 0
    found = {path.name for path in Path("out").iterdir()}
    second_tables = [f"{name}-confidence" for name in ("rq1", "rq3", "rq4")]
    names = [*NAMES, "rq4-tests", *second_tables]
    tables = {f"{name}.{ending}" for name in names for ending in ("md", "csv", "tex")}
    plots = {f"{name}.svg" for name in ("rq1", "rq3", "size")}
    assert found == tables | plots | {"experiments.json"}
    about = json.loads(Path("out/experiments.json").read_text(encoding="utf-8"))
    assert about["experiments"] == NAMES
    assert (about["settings"]["seed"], about["settings"]["repeats"]) == (0, 1)
    assert about["settings"]["optimiser"] == "lr"
    assert {name: one["gold_rows"] for name, one in about["sources"].items()} == {"sentiment": 40, "gossip": 30}
    text = capsys.readouterr()
    for title in ("against its zero-shot labels", "against their majority vote", "Each relation alone"):
        assert title in text.out
    assert "rq1 …" in text.err
    assert not {"nan", "inf"} & set(text.out.split())


def test_one_experiment_as_json_has_all_rows(pcs: Pcs) -> None:
    found = pcs.json("experiment", "rq1", write_votes(Path("votes.csv")), *QUICK, "--optimiser", "uniform")
    table, _ = found["experiments"]["rq1"]
    assert [row[:2] for row in table["rows"]] == [["votes", "model-0"], ["votes", "model-1"]]
    zero_shot = table["rows"][0][2]
    assert zero_shot["low"] <= zero_shot["value"] <= zero_shot["high"]
    assert table["rows"][0][6] is None
    assert any("--draws 5" in note for note in table["notes"])


def test_odd_names_survive_in_markdown_csv_and_latex(capsys: pytest.CaptureFixture[str]) -> None:
    votes = write_votes(Path("votes.csv"), names=ODD)
    dataset = "R&D_50% שלום <script>"
    assert main(["experiment", "rq3", f"{dataset}={votes}", *QUICK, "--details"]) == 0
    both = f"{ODD['model-0']} + {ODD['model-1']}"
    with open("out/rq3.csv", newline="", encoding="utf-8") as file:
        row = next(csv.DictReader(file))
    assert (row["Dataset"], row["LLMs"]) == (dataset, both)
    page = Path("out/rq3.md").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "R&amp;D\\_50% שלום &lt;script&gt;" in page
    assert len({line.count(" | ") for line in page.splitlines() if line.startswith("|")}) == 1
    paper = Path("out/rq3.tex").read_text(encoding="utf-8")
    assert r"R\&D\_50\% שלום $<$script$>$" in paper
    assert r"model\_0 \&" in paper
    assert "<script>" not in Path("out/rq3.svg").read_text(encoding="utf-8")
    assert "<script>" in capsys.readouterr().out


def test_only_the_models_and_relations_named_are_used(pcs: Pcs) -> None:
    votes = write_votes(Path("votes.csv"))
    chosen = ["--model", "model-1", "--relations", "original,voice"]
    table, *_ = pcs.json("experiment", "rq4", votes, *QUICK, *chosen)["experiments"]["rq4"]
    assert table["columns"] == ["Dataset", "LLM", "No MR", "voice", "PCS"]
    assert [row[1] for row in table["rows"]] == ["model-1"]


def test_a_dataset_without_enough_gold_gets_dashes_and_a_note_beside_one_with_enough(pcs: Pcs) -> None:
    good, small = write_votes(Path("good.csv")), write_votes(Path("small.csv"), keep=3)
    table, _ = pcs.json("experiment", "rq1", good, small, *QUICK)["experiments"]["rq1"]
    assert table["rows"][-1] == ["small", *[None] * 6]
    assert any(note.startswith("small: 5-fold") for note in table["notes"])


BAD: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "three rows": ({"keep": 3}, [], "votes: 5-fold .*10 gold rows"),
    "no gold": ({"gold": False}, [], "0 rows of 0"),
    "a missing model": ({}, ["--model", "gpt"], "votes: .*'gpt'.* model-0, model-1"),
    "an unknown rewrite": ({}, ["--rewritten", "limerick"], "'limerick'"),
    "the same name twice": ({}, ["votes=votes.csv"], "two .*'votes'"),
}


@pytest.mark.parametrize(("made", "options", "complaint"), BAD.values(), ids=BAD)
def test_what_cannot_be_answered_is_one_clear_sentence(
    made: dict[str, Any], options: list[str], complaint: str, pcs: Pcs
) -> None:
    error = pcs.refused("experiment", "rq1", write_votes(Path("votes.csv"), **made), *QUICK, *options)
    assert re.search(complaint, error), error
    assert "Traceback" not in error


def test_quiet_prints_nothing_and_an_earlier_result_is_never_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["experiment", "rq3", write_votes(Path("votes.csv")), *QUICK, "-q"]
    assert main(asked) == 0
    assert capsys.readouterr() == ("", "")
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    assert main(asked) == 2
    assert "experiments.json exists" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before
    assert main([*asked, "--replace"]) == 0
    assert len({*Path("out").iterdir()}) == 2 * len(before)
