"""One run, read on all its faces: terminal, JSON, report, review, labels.csv, paper, evaluate and compare."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.reviewing.session import Review
from tests.command_line import Pcs
from tests.showing.report.reading import Page
from tests.simulated import copy_run, read_csv, simulated_models

pytestmark = pytest.mark.system


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, promising_run: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    copy_run(promising_run, Path("run"))
    with simulated_models():
        assert main(["fit", "run", "-q"]) == 0
        yield


def test_accuracy_has_one_value(pcs: Pcs) -> None:
    fitted = pcs.json("fit", "run")["cross_validation"][0]
    kept = json.loads(Path("run/variables/label/evaluation.json").read_text(encoding="utf-8"))
    first, gold = kept["figures"][0]["figures"]["accuracy"], kept["against_gold"]
    right, rows = sum(line[at] for at, line in enumerate(gold["confusion"])), gold["n"]
    assert (first["value"], first["n"]) == (pytest.approx(right / rows), rows)
    assert gold["figures"]["accuracy"] == first
    assert fitted["accuracy"]["value"] == pytest.approx(right / rows)
    said = f"{100 * right / rows:.0f} %"
    assert f"quality {said} of labels are right" in pcs("fit", "run")
    report = Page(Path("run/report.html").read_text(encoding="utf-8")).text
    assert f"{said} of labels are right" in report
    assert said in pcs("versions", "run")
    assert re.search(rf"Accuracy \| {right / rows:.2f}", pcs("paper", "run"))
    evaluated = pcs.json("evaluate", "run", "--resamples", "20", "--optimiser", "lr")
    assert evaluated["methods"][0]["figures"]["accuracy"]["value"] == pytest.approx(right / rows)
    assert evaluated["against_gold"]["confusion"] == gold["confusion"]
    compared = pcs.json("compare", "run", ":relations=original")
    assert compared["figures"]["a"]["accuracy"]["value"] == pytest.approx(right / rows)
    both = compared["figures"]["right"]
    assert both["both"] + both["only_first"] == right


def test_rows_for_people_have_one_number(pcs: Pcs) -> None:
    labels = read_csv(Path("run/labels.csv"))
    waiting = sum(row["pcs_decision"] == "review" and not row["gold"] for row in labels)
    settled = sum(row["pcs_decision"] == "review" and bool(row["gold"]) for row in labels)
    assert waiting > 0
    assert settled > 0
    fitted = pcs.json("fit", "run")
    assert (fitted["to_review"], fitted["to_label"]["rows"]) == (waiting, waiting)
    text = pcs("fit", "run")
    assert f"{waiting} to review; {settled} labelled by people" in text
    assert len(read_csv(Path("run/to_label.csv"))) == waiting
    report = Page(Path("run/report.html").read_text(encoding="utf-8")).text
    assert f"{waiting} to review of {len(labels)} rows" in report
    assert f"to review {waiting} accepted" in report
    with Review.open(Path("run")) as review:
        assert review.progress("Ana").queues["doubtful"].left == waiting


def test_the_promise_is_called_the_same_on_all_pages(pcs: Pcs) -> None:
    report = Page(Path("run/report.html").read_text(encoding="utf-8")).text
    assert "promise, not audited" in report
    with Review.open(Path("run")) as review:
        assert review.progress("Ana").fit.standing == "given"
    assert "at most 10 % of the accepted" in pcs("fit", "run")
