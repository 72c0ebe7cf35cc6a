import json
from functools import partial
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions, Shown
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, RelationSettings, TaskSettings
from tests.command_line import Pcs
from tests.reviewing.reviewing import judge
from tests.simulated import MODELS, QUICK, RELATIONS, run, simulated_models, simulated_run, truth_of, write_csv

pytestmark = pytest.mark.system  # whole runs, one after the other


OTHER = {"good": "bad", "bad": "good"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coders")
    rows = []
    for row in range(120):
        truth = truth_of(row)
        other = OTHER[truth]
        rows.append(
            {
                "text": f"Case {row} looks {truth}.",
                "gold_ann": other if row % 4 == 0 else truth,
                "gold_bob": other if row % 4 == 1 else truth,
                "gold_cem": other if row % 4 == 2 else truth,
                "site": "x" if row < 50 else "y" if row < 110 else "z",
            }
        )
    config = Config(
        task=TaskSettings(labels=("good", "bad")),
        ask=AskSettings(models=MODELS),
        relations=RelationSettings(use=RELATIONS),
        learn=QUICK,
    )
    with simulated_models():
        run(RunRequest(data=write_csv(folder / "data.csv", rows), folder=folder / "run", config=config))
    return folder / "run"


def test_a_model_is_tested_against_each_coder(made: Path, pcs: Pcs) -> None:
    found = pcs.json("evaluate", made, "--alt-test")
    assert [one["name"] for one in found["coders"]] == ["ann", "bob", "cem"]
    assert found["epsilon"] == 0.2
    printed = pcs("evaluate", made, "--alt-test", "--epsilon", ".1")
    assert "Alternative annotator test (ε = 0.1): the model may" in printed
    stored = json.loads((made / "variables/label/evaluation.json").read_text(encoding="utf-8"))["among_coders"][
        "replacing"
    ]
    parts, rows_for, to_pass = (found.pop(name) for name in ("parts", "rows_for", "rows_to_pass"))
    assert 30 <= to_pass <= 120
    assert "Such rows to pass the test in four of five cases, if the model is as good as it seems:" in printed
    assert stored == {**found, "coders": [{key: one[key] for key in one if key != "name"} for one in found["coders"]]}
    assert [*parts] == ["model says good", "model says bad"]
    assert parts["model says good"]["coders"][0]["rows"] + parts["model says bad"]["coders"][0]["rows"] == 120
    assert rows_for["0.05"] > rows_for["0.1"] > rows_for["0.15"] > 30
    assert "for an interval of κ or α of ± 0.05:" in printed
    assert "Alternative annotator test" in (made / "report.html").read_text(encoding="utf-8")


def test_groups_are_tested_too_and_one_with_few_rows_is_named(made: Path, pcs: Pcs) -> None:
    parts = pcs.json("evaluate", made, "--alt-test", "--by", "site")["parts"]
    assert [*parts][2:] == ["site x", "site y", "site z"]
    assert parts["site x"]["coders"][0]["rows"] == 50
    assert parts["site z"] is None
    assert "site z" in pcs.out("evaluate", made, "--alt-test", "--by", "site")
    assert "nope" in pcs.refused("evaluate", made, "--alt-test", "--by", "nope")


def said(wrong: bool, shown: Shown) -> str:
    truth = truth_of(int(shown.id[1:]))
    return OTHER[truth] if wrong else truth


def test_reviewers_who_judged_blind_are_coders(tmp_path: Path, pcs: Pcs) -> None:
    simulated_run(tmp_path, rows=160, gold_rows=60)
    folder = tmp_path / "run"
    assert Run.open(folder).coders is None
    with Review.open(folder, ReviewOptions(double=1.0)) as review:
        for person, share in (("Ann", 10), ("Bob", 5)):
            for place in range(40):
                judge(review, "random", partial(said, place % share == 0), person)
            if person == "Ann":
                assert Run.open(folder).coders is None  # a single person agrees with nobody
        judge(review, "doubtful", "bad", "Cem")
    coders = Run.open(folder).coders
    assert coders is not None
    assert coders.names == ("Ann", "Bob")  # Cem saw what the model says
    assert ((coders.codes >= 0).all(axis=0)).sum() >= 30
    assert [one["name"] for one in pcs.json("evaluate", folder, "--alt-test")["coders"]] == ["Ann", "Bob"]
    assert main(["fit", str(folder)]) == 0
    assert json.loads((folder / "variables/label/evaluation.json").read_text(encoding="utf-8"))["among_coders"][
        "names"
    ] == ["Ann", "Bob"]


def test_coders_are_columns_of_any_name(tmp_path: Path, pcs: Pcs, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"text": f"Case {row} looks {truth_of(row)}.", "Ann": truth_of(row)} for row in range(80)]
    rows = [{**one, "Bob": one["Ann"] if place % 5 else "good"} for place, one in enumerate(rows)]
    new = str(write_csv(tmp_path / "new.csv", [{"text": one["text"]} for one in rows]))
    data, out = str(write_csv(tmp_path / "data.csv", rows)), str(tmp_path / "run")
    with simulated_models():
        asked = ["run", data, "--labels", "good,bad", "--model", MODELS[0], "--relations", "original", "-o", out]
        assert "data.csv has no column 'Cem' (--coders); there are text, Ann, Bob" in pcs.refused(
            *asked, "--coders", "Ann,Cem"
        )
        assert main([*asked, "--coders", "Ann,Bob"]) == 0
        assert main(["label", new, "--run", out, "-o", str(tmp_path / "labels.csv")]) == 0
    capsys.readouterr()
    assert [one["name"] for one in pcs.json("evaluate", out, "--alt-test")["coders"]] == ["Ann", "Bob"]
    with Review.open(Path(out)) as review:
        assert review.rows.own_columns == []  # nobody's label is shown
