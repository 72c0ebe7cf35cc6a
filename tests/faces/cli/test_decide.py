"""Decisions on the command line: promises, rows for people to label or check, labelling with fewer questions."""

import json
import random
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.tables.write import write_table
from tests.builders import simulated_votes
from tests.command_line import Pcs
from tests.simulated import MODELS, audited, copy_run, read_csv, simulated_models, truth_of, write_csv, write_texts

pytestmark = pytest.mark.system  # whole runs, one after the other

Captured = pytest.CaptureFixture[str]
QUICK = ["--optimiser", "lr", "--folds", "3", "--resamples", "20"]
PROMISE = ["--max-error", "0.1", "--certainty", "0.9"]


@pytest.fixture(autouse=True)
def with_simulated_models() -> Iterator[None]:
    with simulated_models():
        yield


@pytest.fixture
def run(promising_run: Path) -> str:
    """A run of 260 rows, 150 with gold, whose promise holds; 60 new texts beside it."""
    copy_run(promising_run, Path("run"))
    write_texts(Path("new.csv"), range(1000, 1060))
    return "run"


@pytest.fixture
def table() -> str:
    votes, gold = simulated_votes([0.75, 0.7, 0.5], items=150, relations=2)
    filled = [label if row < 100 else None for row, label in enumerate(gold)]
    write_table(Path("votes.csv"), votes.to_table("wide").append_column("gold", [filled]))
    return "votes.csv"


def test_a_table_gets_a_certificate_and_a_decision_for_every_row(table: str, pcs: Pcs) -> None:
    found = pcs.json("fit", table, *PROMISE, *QUICK)
    certificate = found["certificate"]
    assert (certificate["alpha"], certificate["delta"], certificate["n_gold"]) == (0.1, 0.1, 100)
    assert 0 < certificate["threshold"] < 1
    rows = read_csv(Path("runs/votes/labels.csv"))
    accepted = [row for row in rows if row["pcs_decision"] == "accept"]
    assert len(rows) == 150
    assert certificate["accepted_share"] == pytest.approx(len(accepted) / 150)
    assert certificate["review_rows"] == 150 - len(accepted)
    assert found["decisions"] == {"accept": len(accepted), "review": 150 - len(accepted)}
    # what is written is rounded, so a row at the threshold may read a little below it
    assert min(float(row["pcs_confidence"]) for row in accepted) >= certificate["threshold"] - 1e-6


def test_the_text_shows_what_is_promised_or_why_nothing_is(table: str, pcs: Pcs) -> None:
    text = pcs("fit", table, *PROMISE, *QUICK, "--folds", "5", "--details")
    for words in ("At most 10 %", "90 % certainty", "100 gold rows in 5 folds", "to review"):
        assert words in text
    assert re.search("no promise .*0.1 %", pcs("fit", table, "--max-error", "0.001", *QUICK))


def test_other_promises_and_label_sets_are_given_on_request(table: str, pcs: Pcs) -> None:
    each = pcs.json("fit", table, *PROMISE, *QUICK, "--per-label", "--sets")["certificate"]
    assert each["per_label"]
    assert each["threshold"] is None
    assert all(row["pcs_label"] in row["pcs_set"] for row in read_csv(Path("runs/votes/labels.csv")) if row["pcs_set"])
    assert any(row["pcs_set"] for row in read_csv(Path("runs/votes/labels.csv")))
    other = pcs.json("fit", table, *PROMISE, *QUICK, "--promise", "false-discoveries")["certificate"]
    assert other["promise"] == "false-discoveries"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [(["--max-error", "0"], "'--max-error': 0.0 is not in the range"), (["--promise", "all-right"], "--promise")],
)
def test_what_cannot_be_promised_is_one_sentence_and_code_2(
    options: list[str], complaint: str, table: str, pcs: Pcs
) -> None:
    assert complaint in pcs.refused("fit", table, *QUICK, *options)


def test_few_gold_rows_and_gold_of_one_label_promise_nothing_and_say_why(table: str, pcs: Pcs) -> None:
    rows = read_csv(Path(table))
    write_csv(Path("few.csv"), [{**row, "gold": row["gold"] if place < 8 else ""} for place, row in enumerate(rows)])
    few = pcs.json("fit", "few.csv", *PROMISE, *QUICK)
    assert few["certificate"]["threshold"] is None
    assert "8 gold rows" in few["certificate"]["why_not"]
    assert (few["calibrated"], few["decisions"]) == (False, {"review": 150})
    write_csv(Path("one.csv"), [{**row, "gold": row["gold"] and "neutral"} for row in rows])
    one = pcs.json("fit", "one.csv", *PROMISE, *QUICK)
    assert re.search("100 gold rows .*'neutral'", one["certificate"]["why_not"])
    assert one["decisions"] == {"review": 150}


def test_confidence_from_few_gold_rows_is_said_to_be_rough(table: str, pcs: Pcs) -> None:
    rows = read_csv(Path(table))
    write_csv(Path("few.csv"), [{**row, "gold": row["gold"] if place < 30 else ""} for place, row in enumerate(rows)])
    found = pcs.json("fit", "few.csv", *PROMISE, *QUICK)
    gold_rows = found["gold_rows"]
    assert 10 <= gold_rows < 50
    assert not found["calibrated"]
    assert 0 < found["confidence_margin"] < 0.5
    said = pcs("fit", "few.csv", *PROMISE, *QUICK, "--details")
    assert f"Confidence is rough: from {gold_rows} gold rows, ± {100 * found['confidence_margin']:.0f} points" in said
    assert "ECE calibrated" not in said


def test_a_table_without_gold_gets_labels_of_which_none_is_accepted(table: str, pcs: Pcs) -> None:
    write_csv(Path("bare.csv"), [{**row, "gold": ""} for row in read_csv(Path(table))])
    found = pcs.json("fit", "bare.csv")
    assert (found["decided_by"], found["calibrated"], found["certificate"]) == ("agreement", False, None)
    assert set(found["decisions"]) == {"agree", "review"}
    assert found["look_at"][0]["kind"] == "no gold labels"
    rows = read_csv(Path("runs/bare/labels.csv"))
    assert Counter(row["pcs_decision"] for row in rows) == found["decisions"]
    assert all(row["pcs_reason"].startswith("uncalibrated") and not row["pcs_confidence"] for row in rows)
    text = pcs("fit", "bare.csv", "--details")
    assert "No label is accepted, because there are no gold labels" in text
    assert f"Answers agree on {found['decisions']['agree']} of 150 rows, which promises nothing" in text


def test_a_table_takes_further_gold_by_id(table: str, pcs: Pcs) -> None:
    write_csv(Path("gold.csv"), [{"id": "item-000120", "gold": "neutral"}, {"id": "item-000121", "gold": ""}])
    found = pcs.json("fit", table, *PROMISE, *QUICK, "--gold", "gold.csv")
    assert found["gold_rows"] == 101
    assert found["certificate"]["n_gold"] == 100  # a row that a person chose cannot support a promise
    write_csv(Path("gold.csv"), [{"id": "item-999999", "gold": "neutral"}])
    assert re.search("gold.csv, row 2: .*'item-999999'", pcs.refused("fit", table, "--gold", "gold.csv"))


def test_gold_of_a_table_that_contradicts_itself_is_refused(pcs: Pcs) -> None:
    Path("votes.csv").write_text("id,text,gold,a|original\n1,One,yes,yes\n2,Two,no,no\n3,One,,no\n")
    assert main(["fit", "votes.csv", "-q"]) == 0
    Path("mine.csv").write_text("id,gold\n3,no\n")
    expected = "votes.csv, rows 2 and 4 .*'yes' and 'no'"
    assert re.search(expected, pcs.refused("fit", "votes.csv", "--gold", "mine.csv"))
    Path("votes.csv").write_text("id,text,gold,a|original\n1,One,yes,yes\n2,Two,no,no\n3,One,no,no\n")
    assert re.search(expected, pcs.refused("fit", "votes.csv"))


def test_a_run_is_audited_and_fitted(run: str, pcs: Pcs) -> None:
    audited(Path(run), lambda place: False)
    revoked = pcs.json("fit", run)
    assert revoked["certificate"]["audit"]["finding"] == "revoked"
    assert revoked["decisions"] == {"review": 260}
    assert {row["pcs_decision"] for row in read_csv(Path(run, "labels.csv"))} == {"review"}
    assert "audit revokes" in pcs("fit", run)


def test_a_run_keeps_its_settings_and_hands_rows_out(run: str, pcs: Pcs) -> None:
    first = pcs.json("fit", run, "--max-error", "0.07", "--to-label", "9")
    again = pcs.json("fit", run)
    assert again["certificate"]["alpha"] == first["certificate"]["alpha"] == 0.07
    assert again["optimiser"] == "lr"
    assert again["to_label"]["file"] == "run/to_label.csv"
    row = {"id": "t150", "gold": "awful"}
    assert "'awful'" in pcs.refused("fit", run, "--gold", str(write_csv(Path("mine.csv"), [row])))
    taken = write_csv(Path("mine.csv"), [{"id": f"t{row}", "gold": truth_of(row)} for row in range(200, 220)])
    assert pcs.json("fit", run, "--gold", taken)["gold_rows"] == 170


def test_a_run_without_gold_draws_random_rows_to_label(pcs: Pcs) -> None:
    write_texts(Path("data.csv"), range(40))
    models = [part for model in MODELS for part in ("--model", model)]
    assert re.search(
        "gold 6 random rows to label: runs/data/to_label.csv",
        pcs("run", "data.csv", "--labels", "good,bad", *models, "--relations", "original", "--to-label", "6"),
    )
    assert len(read_csv(Path("runs/data/to_label.csv"))) == 6


def test_new_texts_get_the_labels_of_asking_everything_for_fewer_calls(run: str, pcs: Pcs) -> None:
    fewer = pcs.json("label", "new.csv", "--run", run, "-o", "fewer.csv")
    assert fewer["certificate"]["alpha"] == 0.1
    assert fewer["questions"] + fewer["questions_spared"] == 360
    assert fewer["calls"] < 300
    everything = pcs.json("label", "new.csv", "--run", run, "--ask", "all", "-o", "all.csv")
    assert everything["calls"] + everything["known_already"] == 360
    assert everything["questions_spared"] == 0
    assert [row["pcs_label"] for row in read_csv(Path("fewer.csv"))] == [
        row["pcs_label"] for row in read_csv(Path("all.csv"))
    ]
    text = pcs("label", "new.csv", "--run", run)
    assert f"{100 * fewer['questions_spared'] / 360:.0f} % of the questions were not needed" in text
    assert pcs.out("label", "new.csv", "--run", run, "-q", "--replace") == ""


def test_a_limit_of_calls_is_code_3_and_nothing_is_lost(run: str, pcs: Pcs) -> None:
    short = pcs.json("label", "new.csv", "--run", run, "--max-calls", "20", code=3)
    assert short["calls"] == 20
    rest = pcs.json("label", "new.csv", "--run", run, "--replace")
    assert rest["known_already"] == 20
    assert rest["rows_without_label"] == 0


def test_a_promise_made_by_another_version_lapses_and_unlike_texts_give_a_warning(run: str, pcs: Pcs) -> None:
    write_texts(Path("other.csv"), range(2000, 2150), truths=["good"] * 150)
    model = json.loads(Path(run, "variables/label/model.json").read_text())
    model["certificate"]["fingerprint"]["version"] = "0.0.0"
    Path(run, "variables/label/model.json").write_text(json.dumps(model))
    found = pcs.json("label", "other.csv", "--run", run, "--ask", "all", code=4)
    assert "version changed" in found["certificate"]["why_not"]
    assert found["decisions"] == {"review": 150}
    assert any("texts" in note for note in found["warnings"])
    assert found["drift"]["found"]
    same = pcs.json("label", "new.csv", "--run", run)
    assert same["warnings"] == []
    assert not same["drift"]["found"]
    text = pcs("label", "new.csv", "--run", run, "--details", "--replace")
    assert "New texts are answered like the calibration set" in text
    assert "mall shifts may go unnoticed" in text
    assert "cannot be seen without an audit" in text
    few = pcs.json("label", "new.csv", "--run", run, "--limit", "9", "-o", "few.csv")["drift"]
    assert few["sentence"] == "9 texts are too few to compare: 20 are needed on both sides"


def test_the_remedy_for_texts_of_another_kind_brings_acceptance_back(run: str, pcs: Pcs) -> None:
    write_texts(Path("other.csv"), range(2000, 2300), truths=["good" if n % 5 else "bad" for n in range(300)])
    lines = pcs.out("label", "other.csv", "--run", run, "--replace", code=4).splitlines()
    assert lines[0].startswith("warning   these texts differ from the gold rows the promise was made on")
    assert {row["pcs_decision"] for row in read_csv(Path("other-labels.csv"))} == {"review"}
    printed = " ".join(" ".join(lines).split())
    rows = re.search(r"right labels of (\d+) rows, drawn at random, into a column gold of other.csv", printed)
    command = re.search(r"pcs (run other.csv .* --out run-new)", printed)
    assert rows
    assert command
    drawn = {*random.Random(1).sample(range(300), int(rows[1]))}
    texts = read_csv(Path("other.csv"))
    write_csv(
        Path("other.csv"),
        [{**row, "gold": truth_in(row["text"]) if place in drawn else ""} for place, row in enumerate(texts)],
    )
    found = pcs.json(*shlex.split(command[1]))
    accepted = [row for row in read_csv(Path("run-new/labels.csv")) if row["pcs_decision"] == "accept"]
    assert found["decisions"]["accept"] == len(accepted) > 100
    assert sum(row["pcs_label"] != truth_in(row["text"]) for row in accepted) <= 0.1 * len(accepted)
    assert found["known_already"] > 300


def truth_in(text: str) -> str:
    return "bad" if "looks bad" in text else "good"


def test_new_texts_need_no_gold_column_even_if_settings_name_one(run: str, pcs: Pcs) -> None:
    write_csv(Path("plain.csv"), [{"id": "1", "text": "A text without gold."}])
    Path("pcs.toml").write_text('[data]\ngold_column = "gold"\n')
    assert pcs.json("label", "plain.csv", "--run", run)["rows"] == 1
