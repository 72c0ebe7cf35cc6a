import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcs_annotator.base.errors import GoldError
from pcs_annotator.faces.cli.main import main
from pcs_annotator.verbs.evaluate import RecordedVotes, Splitting, evaluate_votes, methods_named
from tests.builders import simulated_votes
from tests.command_line import Pcs
from tests.judging.evaluate.graded import graded_votes

pytestmark = pytest.mark.system  # whole runs, one after the other

QUICK = ["--resamples", "20", "--repeats", "1"]
ODD = {
    "negative": 'f&_{50%}$#~^\\ "quoted"',
    "neutral": "<script>alert(1)</script>|x",
    "positive": "שלום",
    "model-0": "model_0 & <script>alert(2)</script> 100%",
    "model-1": "مرحبا",
}


def write_votes(path: Path, *, names: dict[str, str] | None = None, keep: int = 60, gold: bool = True) -> str:
    votes, truth = simulated_votes([0.8, 0.6], items=60)
    called = names or {}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "annotator", "relation", "draw", "label", "gold"])
        for row, name in enumerate(votes.ids[:keep]):
            for place, annotator in enumerate(votes.annotators):
                for view, relation in enumerate(votes.relations):
                    label = votes.labels[votes.codes[row, place, view, 0]]
                    said = called.get(label, label), called.get(truth[row], truth[row]) if gold else ""
                    writer.writerow([name, called.get(annotator, annotator), relation, 0, *said])
    return str(path)


def write_graded(path: Path, *, relations: int = 2) -> str:
    """Votes of a model with log-probabilities, and of one without."""
    votes, gold = graded_votes([1.5, 1.5], items=60, relations=relations)
    assert votes.grades is not None
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "annotator", "relation", "label", "gold", *(f"p_{label}" for label in votes.labels)])
        for row, place, view in np.ndindex(votes.codes.shape[:3]):
            label, truth = votes.labels[int(votes.codes[row, place, view, 0])], votes.labels[int(gold[row])]
            grades = ["", "", ""] if place else votes.grades[row, place, view, 0].tolist()
            writer.writerow([votes.ids[row], votes.annotators[place], votes.relations[view], label, truth, *grades])
    return str(path)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def test_pcs_comes_first_and_every_other_method_is_tested_against_it(pcs: Pcs) -> None:
    found = pcs.json("evaluate", write_votes(Path("votes.csv")), *QUICK)
    names = [one["method"] for one in found["methods"]]
    assert names[0] == "auto"
    assert {"auto", "lr", "uniform", "majority", "zero-shot"} <= set(names)
    assert len(names) == len(set(names))
    assert found["methods"][0]["against"] is None
    assert all(0 <= one["against"]["auroc"]["p_holm"] <= 1 for one in found["methods"][1:])
    assert all(one["figures"]["auroc"]["n"] == 60 for one in found["methods"])
    assert "--draws 5" in found["missing"]["self-consistency"]
    assert any("Self-consistency at equal calls" in note for note in found["notes"])
    assert (found["seeds"], found["folds"], found["resamples"]) == ([0], 5, 20)


def test_the_text_shows_intervals_calls_and_why_hard_and_graded_figures_differ(pcs: Pcs) -> None:
    text = pcs("evaluate", write_votes(Path("votes.csv")), *QUICK, "--methods", "lr, zero-shot", "--details")
    for words in ("60 gold rows", "lr against", "p (Holm)", "Calls per item", "hard"):
        assert words in text
    assert text.count("above noise") == 1
    assert re.search(r"0\.\d{3}–[01]\.\d{3}", text)
    assert "nan" not in text.split()


def test_a_figure_that_is_undefined_is_null_and_a_dash(pcs: Pcs) -> None:
    lines = [f"t{row},{('yes', 'no')[row % 2]},{('yes', 'no')[row % 2]}" for row in range(60)]
    Path("right.csv").write_text("\n".join(["id,gold,one|original", *lines]) + "\n", encoding="utf-8")
    found = pcs.json("evaluate", "right.csv", *QUICK, "--methods", "uniform")
    assert found["methods"][0]["figures"]["auroc"]["value"] == 1
    assert found["methods"][0]["figures"]["auroc_confidence"] is None
    assert "Confidence AUROC is missing where nearly all labels are right" in pcs(
        "evaluate", "right.csv", *QUICK, "--methods", "uniform", "--details"
    )
    fit = ["fit", "right.csv", "--optimiser", "uniform", "--resamples", "20"]
    assert pcs.json(*fit)["cross_validation"][0]["auroc_confidence"] is None
    text = pcs.out(*fit, "--details")
    assert re.search(r"equal weights +1\.00 +\S+ +– +1\.00", text)
    assert "nan" not in text.split()


def test_every_method_is_tried_and_those_without_log_probabilities_say_what_to_record(pcs: Pcs) -> None:
    found = pcs.json("evaluate", write_votes(Path("votes.csv")), *QUICK, "--optimiser", "lr")
    for name in ("logprob", "scaled logprob"):
        assert "--answers graded" in found["missing"][name]
    with_grades = pcs.json("evaluate", write_graded(Path("graded.csv")), *QUICK, "--optimiser", "lr")
    assert {"logprob", "scaled logprob"} <= {one["method"] for one in with_grades["methods"]}


def test_a_fit_of_graded_votes_is_compared_with_one_graded_question(pcs: Pcs) -> None:
    fit = ["fit", write_graded(Path("votes.csv")), "--optimiser", "auto", "--folds", "2", "--resamples", "20"]
    found = pcs.json(*fit)["cross_validation"]
    assert [(one["method"], one["questions"], one["uses_log_probabilities"]) for one in found] == [
        ("auto", 4, True),
        ("uniform", 4, True),
        ("majority", 2, False),
        (found[3]["method"], 1, False),
        ("logprob", 1, True),
        ("scaled logprob", 1, True),
        ("first question only", 2, True),
    ]
    text = pcs(*fit, "--details")
    assert re.search(r"scaled logprob [\d.– ]+ yes 60", text)
    assert re.search(r"majority vote [\d.– ]+ no 60", text)
    assert "Log-probs: methods that use the log-probabilities of answers" in text
    assert text.count("above noise") == 1
    assert re.search(r"Asking twice bought [+−]\d+\.\d points of class AUROC \[", text)
    assert "bought" not in pcs.out("fit", write_graded(Path("one.csv"), relations=1), *fit[2:], "--details")


def test_calls_of_rewriting_are_counted_where_a_model_wrote(pcs: Pcs) -> None:
    votes = write_votes(Path("votes.csv"))
    chosen = ["--methods", "lr,majority"]
    plain = pcs.json("evaluate", votes, *QUICK, *chosen)
    paid = pcs.json("evaluate", votes, *QUICK, *chosen, "--rewritten", "voice", "--rewritten", "synonym")
    assert [one["calls_per_text"]["total"] for one in plain["methods"]] == [8, 2]
    assert [one["calls_per_text"]["total"] for one in paid["methods"]] == [10, 2]


def test_odd_names_stay_in_their_cells_in_all_three_formats(pcs: Pcs) -> None:
    votes = write_votes(Path("votes.csv"), names=ODD)
    options = ["--methods", "lr,uniform", "--out", "tables"]
    found = pcs.json("evaluate", votes, *QUICK, *options)
    assert found["labels"] == sorted((ODD["negative"], ODD["neutral"], ODD["positive"]))
    assert found["annotators"] == [ODD["model-0"], ODD["model-1"]]
    endings = sorted(Path(path).name for path in found["files"])
    assert endings == sorted(
        f"{name}.{ending}"
        for name in ("evaluation", "evaluation-tests", "agreement", "labels", "confusion")
        for ending in ("md", "csv", "tex")
    )
    assert main(["evaluate", votes, *QUICK, "--methods", "lr"]) == 0


def test_a_run_folder_keeps_the_figures_and_knows_which_relations_a_model_rewrote(pcs: Pcs) -> None:
    with open("data.csv", "w", encoding="utf-8") as file:
        file.write("id,text,gold\n")
        file.writelines(f"{n},The city bought {n} old buses.,{'good' if n % 3 else 'bad'}\n" for n in range(20))
    models = ["--labels", "good,bad", "--model", "scripted:hash", "--optimiser", "lr"]
    assert main(["run", "data.csv", *models, "--relations", "original,rule:frame", "-q"]) == 0
    assert main(["evaluate", "runs/data", *QUICK, "--methods", "lr,zero-shot"]) == 0
    kept = json.loads(Path("runs/data/variables/label/evaluation-methods.json").read_text(encoding="utf-8"))
    assert [one["method"] for one in kept["methods"]] == ["lr", "zero-shot"]
    assert kept["rewritten"] == []
    rewriting = ["--relations", "original,llm:voice", "--rewriter", "scripted:hash", "-o", "runs/rewritten"]
    assert main(["run", "data.csv", *models, *rewriting, "-q"]) in (0, 1)
    found = pcs.json("evaluate", "runs/rewritten", *QUICK, "--methods", "lr")
    assert found["rewritten"] == ["llm:voice"]
    assert found["files"] == ["runs/rewritten/variables/label/evaluation-methods.json"]


BAD = {
    "three rows": ({"keep": 3}, [], "10 gold rows and two classes.* 3"),
    "no gold": ({"gold": False}, [], "no gold labels"),
    "an unknown method": ({}, ["--methods", "guessing"], "'guessing'.* zero-shot, majority"),
    "an unknown relation": ({}, ["--rewritten", "limerick"], "'limerick'.* original"),
    "a file for a folder": ({}, ["--out", "votes.csv", "--methods", "lr"], r"votes\.csv .*folder"),
}


@pytest.mark.parametrize(("made", "options", "complaint"), BAD.values(), ids=BAD)
def test_what_cannot_be_evaluated_is_one_clear_sentence(
    made: dict[str, Any], options: list[str], complaint: str, pcs: Pcs
) -> None:
    error = pcs.refused("evaluate", write_votes(Path("votes.csv"), **made), *QUICK, *options)
    assert re.search(complaint, error), error
    assert len(error.splitlines()) == 1


def test_nothing_is_said_of_gold_rows_that_no_model_answered(tmp_path: Path) -> None:
    recorded = RecordedVotes.read(Path(write_votes(tmp_path / "votes.csv")))
    silent = replace(recorded.votes, codes=np.full_like(recorded.votes.codes, -1))
    with pytest.raises(GoldError, match="no model answered about a gold row"):
        evaluate_votes(recorded._replace(votes=silent), methods_named(["lr"]), Splitting())
